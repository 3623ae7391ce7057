package bundle

import (
	"os"
	"path/filepath"

	"posttrade/journal/evidence/verify"
)

// Folder reads the files of a folder.
func Folder(dir string) verify.Read {
	return func(name string) ([]byte, error) {
		return os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	}
}
