package evaluate

import "github.com/contextd/contextd/internal/fileview"

// replaced are the texts that a call has to reproduce to the letter: what it has to replace,
// and for each place of a patch its context and removed lines.
func replaced(tool, arguments string) []string {
	var out []string
	for _, op := range fileview.Operations(tool, arguments) {
		if op.Kind == fileview.Replace {
			out = append(out, op.Old)
		}
	}
	return out
}
