package settings

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"posttrade/ring/must"
)

func TestSecretIsMadeOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "jwt.secret")
	first, err := secretFile(path)
	must.OK(t, err)
	if len(first) != 64 {
		t.Errorf("%d bytes, want 64", len(first))
	}
	again, err := secretFile(path)
	if err != nil || !bytes.Equal(first, again) {
		t.Errorf("the second call differs: %v", err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v; want 0600", info.Mode(), err)
	}
	if other, err := secretFile(path + "2"); err != nil || bytes.Equal(first, other) {
		t.Errorf("two files have one secret: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".secret-*")); len(left) != 0 {
		t.Errorf("temporary files are left: %v", left)
	}
}

func TestProcessesAgreeOnTheSecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "jwt.secret")
	secrets := make([][]byte, 16)
	var all sync.WaitGroup
	for i := range secrets {
		all.Go(func() { secrets[i], _ = secretFile(path) })
	}
	all.Wait()
	for i, s := range secrets {
		if len(s) == 0 || !bytes.Equal(s, secrets[0]) {
			t.Errorf("caller %d got %q, caller 0 %q", i, s, secrets[0])
		}
	}
}

func TestUnsafeSecretsAreRefused(t *testing.T) {
	long := strings.Repeat("s", 40)
	tests := []struct {
		name    string
		content string
		mode    os.FileMode
		want    string
	}{
		{"world readable", long, 0o604, "has mode 0604"},
		{"group writable", long, 0o620, "has mode 0620"},
		{"too short", "   " + long[:31] + "\n", 0o600, "holds 31 bytes"},
		{"empty", "", 0o600, "holds 0 bytes"},
		{"too long", strings.Repeat("s", maxSecretBytes+1), 0o600, "want 32 to"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s")
			must.OK(t, os.WriteFile(path, []byte(tt.content), 0o600))
			must.OK(t, os.Chmod(path, tt.mode))
			_, err := secretFile(path)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if open := tt.mode != 0o600; errors.Is(err, fs.ErrPermission) != open {
				t.Errorf("%v: is a matter of permissions: %v", err, !open)
			}
		})
	}
	if _, err := secretFile(t.TempDir()); err == nil ||
		!strings.Contains(err.Error(), "is not a regular file") {
		t.Errorf("a directory: %v", err)
	}
}

func TestSecretThatCannotBeMade(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	must.OK(t, os.WriteFile(file, nil, 0o600))
	if _, err := secretFile(filepath.Join(file, "jwt.secret")); err == nil ||
		!strings.Contains(err.Error(), "not a directory") {
		t.Errorf("below a file: %v", err)
	}
	if err := makeSecret(filepath.Join(file, "x", "jwt.secret")); err == nil {
		t.Error("a secret was made below a file")
	}
	path := filepath.Join(t.TempDir(), "s")
	must.OK(t, os.WriteFile(path, []byte("mine"), 0o600))
	if err := makeSecret(path); !os.IsExist(err) {
		t.Errorf("an existing file: %v, want that it exists", err)
	}
	if content, _ := os.ReadFile(path); string(content) != "mine" {
		t.Error("an existing file was overwritten")
	}
}

func TestMasterSecretByProfile(t *testing.T) {
	dir := t.TempDir()
	secret, path, err := mustConfig(t, "data.dir", dir).MasterSecret()
	if err != nil || len(secret) != 64 || path != filepath.Join(dir, "dev-token.secret") {
		t.Errorf("dev: %q %q %v", secret, path, err)
	}
	production := []string{"data.dir", dir, "profile", "production", "risk.entitlement.enforced",
		"true",
		"reference.write-auth.enforced", "true"}
	if secret, path, err := mustConfig(t, production...).MasterSecret(); secret != nil || path != "" ||
		err != nil {
		t.Errorf("production: %q %q %v, want none", secret, path, err)
	}
	own := strings.Repeat("m", 32)
	if _, err := Read(Sources{Flags: pairs(append(slices.Clone(production), "auth.jwt.secret",
		own))}); err == nil || !strings.Contains(err.Error(), "auth.jwt.secret") ||
		strings.Contains(err.Error(), own) {
		t.Errorf("production, a secret in a flag: %v", err)
	}
	c, err := Read(Sources{Flags: pairs(production),
		Environ: []string{"AUTH_DEV_TOKEN_MASTER_SECRET=" + own, "AUTH_JWT_SECRET=" + own}})
	must.OK(t, err)
	if secret, path, err := c.MasterSecret(); string(secret) != own || path != "" || err != nil {
		t.Errorf("set: %q %q %v", secret, path, err)
	}
	if secret, err := c.JWTSecret(); string(secret) != own || err != nil {
		t.Errorf("set: %q %v", secret, err)
	}
	if secret, err := mustConfig(t, "data.dir", dir).JWTSecret(); len(secret) != 64 || err != nil {
		t.Errorf("generated: %q %v", secret, err)
	}
}

// TestSecretFileOfASetting: the first line signs, the second is accepted too, and what is no
// secret, or no file, is refused with the setting's name, as an invalid setting.
func TestSecretFileOfASetting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys")
	a, b := strings.Repeat("a", 32), strings.Repeat("b", 32)
	for text, want := range map[string]int{
		a: 1, a + "\n" + b + "\n": 2, a + "\r\n" + b: 2,
		a + "\n" + b + "\n" + b: 0, a + "\nshort": 0, "short": 0,
		"\ufeff" + a: 0,
	} {
		must.OK(t, os.WriteFile(path, []byte(text), 0o600))
		c, err := Read(Sources{Flags: []FlagValue{{Name: "auth.jwt.secret-file", Text: path}}})
		must.OK(t, err)
		got, err := c.JWTSecrets()
		if want == 0 && (Exit(io.Discard, err) != ExitUsage ||
			!strings.Contains(err.Error(), "auth.jwt.secret-file")) ||
			want > 0 && (err != nil || len(got) != want || string(got[0]) != a) {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	missing := mustConfig(t, "auth.jwt.secret-file", path+"s")
	if _, err := missing.JWTSecrets(); Exit(io.Discard, err) != ExitUsage ||
		!strings.Contains(err.Error(), "auth.jwt.secret-file") {
		t.Errorf("no file: %v", err)
	}
}
