package inspect

import (
	"embed"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

//go:generate make -C ../../../.. inspector

// built are the files that vite makes of /inspector.
//
//go:embed dist
var built embed.FS

// pageFile is the page; scripts and styles lie below assets under names with their hash.
const pageFile = "index.html"

// newPage serves the built files. What names none of them is a place within the page, which the
// page reads from its address; so a link to a call is an address.
func newPage() http.Handler {
	files, err := fs.Sub(built, "dist")
	if err != nil {
		panic(err) // only of a name that is no path
	}
	server := http.FileServerFS(files)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(path.Clean(r.URL.Path), "/")
		switch {
		case strings.HasPrefix(name, "assets/"):
			// The name says what is in it.
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
