package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"regexp"
	"slices"
	"strings"
)

//go:embed assets
var assets embed.FS

// Pages are the addresses of the pages, without the slash. Each is the same document, which shows
// the page that its address names.
var Pages = []string{"overview", "trade", "blotter", "positions", "reconciliation", "settlement",
	"tca", "contracts", "controls", "time", "evidence", "cluster", "latency"}

// file is a file of the console, ready to be sent.
//
// All of it is made at the start, so that a request compresses and hashes nothing.
type file struct {
	kind string
	// encoding is gzip or empty. etag is the first eight bytes of the content's SHA-256, in quotes.
	encoding string
	etag     string
	text     []byte
}

// files are all files of the console, by path without the leading slash.
//
// It is constant after New.
type files map[string]file

// kinds are the content types by extension. A file of another kind does not belong here.
var kinds = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
	".txt":  "text/plain; charset=utf-8",
	".wasm": "application/wasm",
}

// docComment is a documentation comment that has its lines for itself.
var docComment = regexp.MustCompile(`(?m)^[ \t]*/\*\*(?:[^*]|\*+[^*/])*\*+/[ \t]*\n`)

// withoutDocs is a module without its documentation, which no browser needs. Each line keeps its
// number, so that an error of a browser names the line of the source.
func withoutDocs(module []byte) []byte {
	return docComment.ReplaceAllFunc(module, func(comment []byte) []byte {
		return bytes.Repeat([]byte{'\n'}, bytes.Count(comment, []byte{'\n'}))
	})
}

// readFiles reads the embedded files under their own names, which begin with assets/. Modules are
// without their documentation; those of others, in assets/vendor, are as they are.
func readFiles() (files, error) {
	all := files{}
	err := fs.WalkDir(assets, "assets", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if _, known := kinds[path.Ext(name)]; !known {
			return fmt.Errorf("console: file=%s: no content type for it", name)
		}
		text, err := assets.ReadFile(name)
		if path.Ext(name) == ".js" && path.Dir(name) != "assets/vendor" {
			text = withoutDocs(text)
		}
		all.add(name, text, "")
		return err
	})
	return all, err
}

// add keeps a file; text is then the map's.
func (f files) add(name string, text []byte, encoding string) {
	sum := sha256.Sum256(text)
	f[name] = file{kind: kinds[path.Ext(name)], encoding: encoding,
		etag: `"` + hex.EncodeToString(sum[:8]) + `"`, text: text}
}

// serveFile sends a file, or the document for the address of a page.
//
// No token is needed: the files are the same for every caller and hold no data.
func (c *Console) serveFile(w http.ResponseWriter, r *http.Request) {
	if !allow(w, r, http.MethodGet, http.MethodHead) {
		return
	}
	name := strings.TrimPrefix(r.URL.Path, "/")
	switch {
	case name == "":
		http.Redirect(w, r, "/"+Pages[0], http.StatusFound)
		return
	case slices.Contains(Pages, name):
		name = "assets/index.html"
	case !strings.HasPrefix(name, "assets/") || name == "assets/index.html":
		name = ""
	}
	f, found := c.files[name]
	if !found {
		refuse(w, http.StatusNotFound, "NOT_FOUND", "no such page or file")
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.kind)
	h.Set("Cache-Control", "no-cache") // the ETag decides: a newer binary has newer files
	h.Set("ETag", f.etag)
	if f.encoding != "" {
		h.Set("Content-Encoding", f.encoding) // every browser that has WebAssembly takes it
	}
	if slices.Contains(strings.Split(r.Header.Get("If-None-Match"), ", "), f.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(f.text) // the peer may be gone; of HEAD the server sends the head only
}
