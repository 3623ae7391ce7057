package installation

import (
	"bytes"
	"errors"
	"log/slog"
	"sync"
	"time"

	"posttrade/app/settings"
	"posttrade/httpapi"
	"posttrade/matcher/gate"
)

// tokens are the secrets of a running installation, which SIGHUP replaces.
//
// mu guards all of them. The check of a token does not take it: each verifier has its own copy of
// the secrets, which Renew exchanges.
type tokens struct {
	mu sync.Mutex
	// The verifiers of the services, the console and backups, in the order in which they were made.
	// Sessions have their own.
	verifiers []*gate.Verifier
	// The master secret of POST /auth/dev-token; nil when the endpoint does not exist.
	master []byte
	// The settings that SIGHUP has read the secrets from; nil while those of the start are in force.
	read *settings.Config
}

// newVerifier checks access tokens as the settings say, and refuses those that are revoked at a
// gate.
//
// The first secret signs, and all of them verify. Errors are those of the secret files.
func newVerifier(c *settings.Config, g *gate.Gate) (*gate.Verifier, error) {
	secrets, err := c.JWTSecrets()
	if err != nil {
		return nil, err
	}
	v, err := gate.NewVerifier(secrets[0], c.String("auth.jwt.issuer"),
		c.Duration("auth.jwt.leeway"), time.Now, secrets[1:]...)
	if err == nil {
		v.Obey(g)
	}
	return v, err
}

// newVerifier is newVerifier of the installation, whose secrets change with it.
//
// A verifier that is made through it follows SIGHUP.
func (in *Installation) newVerifier(c *settings.Config) (*gate.Verifier, error) {
	v, err := newVerifier(c, in.Core.Gate)
	if err == nil {
		in.tokens.mu.Lock()
		defer in.tokens.mu.Unlock()
		in.tokens.verifiers = append(in.tokens.verifiers, v)
	}
	return v, err
}

// readMaster reads the master secret of POST /auth/dev-token, once at a start: later only SIGHUP
// replaces it.
//
// The path of a generated secret is logged, so that an operator finds it; the secret never is.
func (in *Installation) readMaster(c *settings.Config, log *slog.Logger) error {
	master, path, err := c.MasterSecret()
	if err != nil {
		return err
	}
	if path != "" {
		log.Info("the master secret of POST /auth/dev-token is in a file", "path", path)
	}
	in.tokens.mu.Lock()
	defer in.tokens.mu.Unlock()
	in.tokens.master = master
	return nil
}

// mint is POST /auth/dev-token with the master secret as it is at each request.
//
// Without a master secret the endpoint does not exist.
func (t *tokens) mint() httpapi.TokenMint {
	return httpapi.TokenMint{MasterSecret: func() []byte {
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.master
	}}
}

// readSecrets reads the secrets of the tokens again, and reports whether any is another one. After
// an error those before stay.
//
// All secrets are read before the first one is exchanged. From then on tokens of a secret that is
// gone are refused; the former secret of a pair still verifies.
func (in *Installation) readSecrets() (changed bool, err error) {
	c, err := in.listeners.c.Again()
	if err != nil {
		return false, err
	}
	secrets, err := c.JWTSecrets()
	if err != nil {
		return false, err
	}
	master, _, err := c.MasterSecret()
	if err != nil {
		return false, err
	}
	t := &in.tokens
	t.mu.Lock()
	defer t.mu.Unlock()
	changed = !bytes.Equal(t.master, master) || len(t.verifiers) > 0 && !t.verifiers[0].Has(secrets)
	t.master, t.read = master, c
	var failed error
	for _, v := range t.verifiers {
		failed = errors.Join(failed, v.Renew(secrets[0], secrets[1:]...))
	}
	if s := in.Core.Session; s != nil {
		failed = errors.Join(failed, s.Renew(secrets[0], secrets[1:]...))
	}
	return changed, failed
}

// inForce is c, the settings of the start, with the secrets that are in force. An installation that
// is opened again in the same process begins with them: it must not accept what SIGHUP has removed.
func (t *tokens) inForce(c *settings.Config) *settings.Config {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.read == nil {
		return c
	}
	return c.WithSecretsOf(t.read)
}

// replicaTokenLife is how long a replica's own token is valid: one fetch.
//
// A fetch that begins later asks for another token.
const replicaTokenLife = 2 * time.Minute

// replicaToken is the token that the replica sends to the sources, "" when they require none. The
// secret that the services check signs it, also when a setting has another one already.
//
// After a change of the secret by SIGHUP, c still has the one of the start.
func (in *Installation) replicaToken(c *settings.Config, now time.Time) string {
	if !c.Bool("controlfeed.snapshot-auth") {
		return ""
	}
	in.tokens.mu.Lock()
	defer in.tokens.mu.Unlock()
	return in.tokens.verifiers[0].Mint(gate.Claims{Subject: "replica", Admin: true},
		replicaTokenLife, now)
}
