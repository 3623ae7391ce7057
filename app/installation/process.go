package installation

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"posttrade/app/settings"
	"posttrade/httpapi"
	"posttrade/ring/disk"
)

// processFile is the file in data.dir with the name of the process that serves it.
//
// ports.json outlives its process, and the ports may be another installation's by then. The admin
// listener says the name on every answer, so a command sees whose answer it has got.
const processFile = "process"

// errOtherProcess reports an answer of a process that does not serve this data.dir.
var errOtherProcess = errors.New("no server runs on this data.dir: another process has its port")

// writeProcess gives this process a name that no other one has, and writes it to a file.
func writeProcess(path string) (string, error) {
	name := rand.Text()
	if err := disk.ReplaceText(path, 0o644, []byte(name)); err != nil {
		return "", fmt.Errorf("data.dir: %w", err)
	}
	return name, nil
}

// ProcessHeader is the header of the admin listener that SameProcess wants.
const ProcessHeader = httpapi.ProcessHeader

// SameProcess reports an error when an answer of an admin listener, which named its process so,
// is not of the server on data.dir. name is empty for an answer without that header.
//
// A server of a build that names no process has written no file either: the two agree.
func SameProcess(c *settings.Config, at, name string) error {
	path := c.InDataDir(processFile)
	want, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read %s: %w", path, settings.Cause(err))
	}
	if name != string(want) {
		return fmt.Errorf("%s: %w, %s", c.String("data.dir"), errOtherProcess, at)
	}
	return nil
}
