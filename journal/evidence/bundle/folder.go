package bundle

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"posttrade/journal/evidence/verify"
)

// The bounds of a file of a folder that is verified, in bytes: it is read into memory. The records
// of 100 million commands are smaller than maxFile. A manifest, a note and a tile are smaller than
// maxSmall, so that one with a hole of gigabytes takes no memory.
const (
	maxFile  = 4 << 30
	maxSmall = 1 << 20
)

// mostOf is the bound of a file of a log or a bundle.
func mostOf(name string) int64 {
	switch name {
	case ManifestName, CheckpointName, AttestedName:
		return maxSmall
	}
	if _, _, _, tile := verify.ParseTile(name); tile {
		return maxSmall
	}
	return maxFile
}

// Folder reads the files of a folder. A device or a pipe in it is not read: it need not end.
//
// A file that is not there wraps fs.ErrNotExist.
func Folder(dir string) verify.Read {
	return func(name string) ([]byte, error) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is not a plain file", path)
		}
		return ReadFile(path, mostOf(name))
	}
}

// ReadFile reads a whole file of at most so many bytes. What is verified comes from strangers, and
// may have no end.
//
// A file that is larger is an error, not a shorter text.
func ReadFile(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(text)) > most {
		err = fmt.Errorf("%s is larger than %d bytes", path, most)
	}
	if err != nil {
		return nil, err
	}
	return text, nil
}
