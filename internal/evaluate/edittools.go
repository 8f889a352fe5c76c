package evaluate

import (
	"strings"

	"github.com/contextd/contextd/internal/fileview"
	"github.com/contextd/contextd/internal/fileview/fileop"
)

// replaced are the texts that a call must reproduce exactly: the texts to be replaced, and the context and
// removed lines of each hunk of a patch.
func replaced(tool, arguments string) []string {
	var out []string
	for _, op := range fileview.Operations(tool, arguments) {
		switch {
		case op.Kind == fileop.Replace, op.Kind == fileop.Substitute, op.Kind == fileop.Window:
			out = append(out, op.Old)
		case op.Kind == fileop.Splice:
			out = append(out, op.New) // which has the lines that stay
		case op.Kind == fileop.Write && (strings.HasSuffix(op.Path, ".patch") || strings.HasSuffix(op.Path, ".diff")):
			out = append(out, replaced("apply_patch", op.New)...) // a later call applies this file
		}
	}
	return out
}
