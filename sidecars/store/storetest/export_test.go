package storetest

import "os"

// What the rig's own tests look at.
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
	// The value that the tests of a binary share would keep it; here only the kernel does.
	forever = append(forever, s)
	return s.admin.Query().Get("host"), nil
}

var forever []*server
