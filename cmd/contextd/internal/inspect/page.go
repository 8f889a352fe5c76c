package inspect

import (
	"embed"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

//go:generate make -C ../../../.. inspector

// built are the files that vite builds from /inspector.
//
//go:embed dist
var built embed.FS

// pageFile is the page. Scripts and styles are in assets, with a hash in their names.
const pageFile = "index.html"

// newPage serves the built files. Any other path gets the page itself, which shows what the path names: so
// each call has an address of its own.
func newPage() http.Handler {
	files, err := fs.Sub(built, "dist")
	if err != nil {
		panic(err) // only for an invalid path
	}
	server := http.FileServerFS(files)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
		switch {
		case strings.HasPrefix(name, "assets/"):
			// The name contains a hash of the content.
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
			server.ServeHTTP(w, r)
		case name == "favicon.svg":
			server.ServeHTTP(w, r)
		default:
			w.Header().Set("Cache-Control", "no-cache")
			http.ServeFileFS(w, r, files, pageFile)
		}
	})
}
