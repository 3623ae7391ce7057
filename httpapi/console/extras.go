package console

import (
	"context"
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// What an administrator sees of the installation that no service shows: the members of the cluster,
// and the files that it writes for people.

// listed is a file in a folder.
//
// Modified is RFC 3339 in UTC, to the second.
type listed struct {
	Name     string `json:"name"` // with the folders above it, below Folder
	Bytes    int64  `json:"bytes"`
	Modified string `json:"modified"`
}

const (
	maxListed = 500 // newest first; what is older is on the disk
	maxDepth  = 3   // of folders below a Folder
)

// serveCluster is GET /api/cluster: the state of each member, as it says itself.
//
// The caller is an administrator. On a single node members is empty and clustered false.
func (c *Console) serveCluster(w http.ResponseWriter, r *http.Request) {
	var members any = []any{}
	if c.Cluster != nil {
		members = c.Cluster(r.Context())
	}
	sendJSON(w, map[string]any{"clustered": c.Cluster != nil, "members": members})
}

// serveFolder is GET /api/files/<folder>: its files, and /api/files/<folder>/<name>: one of them.
//
// A folder that does not exist yet is an empty list: what writes there has not run. The caller is
// an administrator.
func (c *Console) serveFolder(w http.ResponseWriter, r *http.Request, rest string) {
	name, inside := cutPath(rest)
	dir, known := c.Folders[name]
	if !known {
		refuse(w, http.StatusNotFound, "NOT_FOUND", "no such folder")
		return
	}
	root, err := os.OpenRoot(dir) // nothing outside of it can be opened, by no path and no link
	if os.IsNotExist(err) && strings.Trim(inside, "/") == "" {
		sendJSON(w, map[string]any{"items": []listed{}})
		return
	}
	if err != nil {
		refuse(w, http.StatusNotFound, "NOT_FOUND", "the folder cannot be read")
		return
	}
	defer root.Close()
	if inside = strings.Trim(inside, "/"); inside != "" {
		sendFile(w, root, inside)
		return
	}
	sendJSON(w, map[string]any{"items": listFiles(root)})
}

// listFiles lists the regular files, newest first, without those whose name begins with a dot. A
// file that goes away meanwhile is left out.
func listFiles(root *os.Root) []listed {
	items := []listed{}
	_ = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return nil // it has gone meanwhile
		case d.IsDir() && strings.Count(name, "/") >= maxDepth:
			return fs.SkipDir
		case !d.Type().IsRegular() || strings.HasPrefix(d.Name(), "."):
			return nil
		}
		if info, err := d.Info(); err == nil {
			items = append(items, listed{name, info.Size(), info.ModTime().UTC().Format(time.RFC3339)})
		}
		return nil
	})
	slices.SortFunc(items, func(a, b listed) int {
		return strings.Compare(b.Modified+b.Name, a.Modified+a.Name)
	})
	return items[:min(len(items), maxListed)]
}

// sendFile sends a file as one to keep: the browser shows none of it.
//
// It is read while it is sent. A file that is being written is sent as far as it is.
func sendFile(w http.ResponseWriter, root *os.Root, name string) {
	f, err := root.Open(name)
	if err != nil {
		refuse(w, http.StatusNotFound, "NOT_FOUND", "no such file")
		return
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		refuse(w, http.StatusNotFound, "NOT_FOUND", "no such file")
		return
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", `attachment; filename="`+path.Base(name)+`"`)
	h.Set("Cache-Control", "no-store")
	_, _ = io.Copy(w, f) // the peer may be gone
}

// sendJSON answers with v. No cache keeps it: it is what one administrator may see.
func sendJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(v) // the peer may be gone
}

// ClusterStatus asks every member how it is; the elements become JSON.
type ClusterStatus func(ctx context.Context) any
