package render_test

import (
	"github.com/contextd/contextd/internal/render"
)

// providerFormats are the formats of Anthropic and Google.
func providerFormats() []*render.Format {
	var out []*render.Format
	for _, name := range []string{"anthropic", "gemini"} {
		f, ok := render.FormatNamed(name)
		if !ok {
			panic("no format " + name)
		}
		out = append(out, f)
	}
	return out
}

func linesOf(messages []render.Encoded) [][]byte {
	lines := make([][]byte, len(messages))
	for i := range messages {
		lines[i] = messages[i].JSON
	}
	return lines
}

// joined renders messages and puts them together.
func joined(f *render.Format, messages []render.Message) []render.Encoded {
	var fragments []render.Fragment
	for _, m := range messages {
		fragments = append(fragments, f.Fragments(m)...)
	}
	return f.Join(fragments)
}
