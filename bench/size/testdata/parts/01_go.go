// Go: its runtime, and HTTP with TLS.
package main

import (
	"log/slog"
	"net/http"
	"os"
)

func main() {
	slog.New(slog.NewJSONHandler(os.Stderr, nil)).Error("serve", "cause", http.ListenAndServeTLS("", "", "", nil))
}
