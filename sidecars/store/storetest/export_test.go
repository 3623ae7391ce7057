package storetest

import "os"

// What the rig's own tests use.
var (
	ErrNoPostgres = errNoPostgres
	FindPrograms  = findPrograms
	Allowed       = sqliteAlone
	Chosen        = chosen
)

// StartPrivate starts a private server that inherits alive, and returns its folder.
func StartPrivate(alive *os.File) (folder string, err error) {
	programs, err := findPrograms(debianPrograms)
	if err != nil {
		return "", err
	}
	s, err := startPrivate(programs, alive)
	if err != nil {
		return "", err
	}
	// forever keeps the value, as theServer does for the tests of a binary. So only the kernel closes
	// the lifeline.
	forever = append(forever, s)
	return s.admin.Query().Get("host"), nil
}

var forever []*server
