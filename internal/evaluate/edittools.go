package evaluate

import (
	"strings"

	"github.com/contextd/contextd/internal/fileview"
	"github.com/contextd/contextd/internal/fileview/fileop"
)

// replaced are the texts that a call has to reproduce to the letter: what it has to replace,
// and for each place of a patch its context and removed lines.
func replaced(tool, arguments string) []string {
	var out []string
	for _, op := range fileview.Operations(tool, arguments) {
		switch {
		case op.Kind == fileop.Replace, op.Kind == fileop.Substitute:
			out = append(out, op.Old)
		case op.Kind == fileop.Write && (strings.HasSuffix(op.Path, ".patch") || strings.HasSuffix(op.Path, ".diff")):
			out = append(out, replaced("apply_patch", op.New)...) // which a later call applies
		}
	}
	return out
}
