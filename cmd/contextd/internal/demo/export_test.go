package demo

import "flag"

// Rewrite makes golden files, and what README.md shows, what the code gives:
// go test ./cmd/contextd/internal/demo -rewrite
var Rewrite = flag.Bool("rewrite", false, "write golden files and the README's output instead of comparing with them")
