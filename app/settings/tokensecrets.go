package settings

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"

	"posttrade/matcher/gate"
)

// JWTSecret is the key that signs access tokens: the setting, the file that a setting names, or a
// random secret that the process makes once in data.dir.
//
// Errors are those of JWTSecrets.
func (c *Config) JWTSecret() ([]byte, error) {
	secrets, err := c.JWTSecrets()
	if err != nil {
		return nil, err
	}
	return secrets[0], nil
}

// JWTSecrets are the key that signs access tokens and the former one, if it is still accepted.
//
// The first signs and verifies, the second verifies only. The files are read at each call, so
// SIGHUP can exchange the secret. A setting's file that is not there, that others may read, or that
// has a secret shorter than 32 bytes or more than two is a usage error.
//
// When nothing is set, the secret is data.dir/jwt.secret, which the first caller makes.
func (c *Config) JWTSecrets() ([][]byte, error) {
	if s := c.String("auth.jwt.secret"); s != "" {
		return splitSecrets([]byte(s), ","), nil
	}
	path := c.String("auth.jwt.secret-file")
	if path == "" {
		secret, err := secretFile(c.InDataDir("jwt.secret"))
		return [][]byte{secret}, err
	}
	content, err := readSecret(path)
	if errors.Is(err, fs.ErrPermission) { // the start's refusal has a code for it
		return nil, fmt.Errorf("auth.jwt.secret-file: %w", err)
	}
	if err != nil {
		return nil, Usagef("auth.jwt.secret-file: %v", err)
	}
	list := splitSecrets(content, "\n")
	for _, s := range list {
		if len(s) < gate.MinSecretBytes || len(list) > 2 {
			return nil, Usagef("auth.jwt.secret-file: want one or two secrets, a line each, "+
				"of at least %d bytes", gate.MinSecretBytes)
		}
	}
	return list, nil
}

// splitSecrets are the parts of a text without the white space around them.
func splitSecrets(text []byte, separator string) (list [][]byte) {
	for part := range bytes.SplitSeq(text, []byte(separator)) {
		list = append(list, bytes.TrimSpace(part))
	}
	return list
}

// MasterSecret is the secret that POST /auth/dev-token requires. It is the setting, or in the dev
// profile a random one that the process makes once in data.dir, at path. In production there is
// none unless it is set.
//
// A nil secret without an error means that the endpoint does not exist. path is "" when the
// setting has the secret; a caller shows path to the operator, and never the secret.
func (c *Config) MasterSecret() (secret []byte, path string, err error) {
	if s := c.String("auth.dev-token.master-secret"); s != "" {
		return []byte(s), "", nil
	}
	if c.String("profile") != "dev" {
		return nil, "", nil
	}
	path = c.InDataDir("dev-token.secret")
	secret, err = secretFile(path)
	return secret, path, err
}
