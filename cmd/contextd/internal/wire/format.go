package wire

import (
	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

var formatsToDomain = map[contextdv1.Format]string{
	contextdv1.Format_FORMAT_UNSPECIFIED:      render.NameContextd,
	contextdv1.Format_FORMAT_ANTHROPIC:        render.NameAnthropic,
	contextdv1.Format_FORMAT_OPENAI_CHAT:      render.NameOpenAIChat,
	contextdv1.Format_FORMAT_OPENAI_RESPONSES: render.NameOpenAIResponses,
	contextdv1.Format_FORMAT_GEMINI:           render.NameGemini,
}

var formatsToProto = inverse(formatsToDomain)

// FormatToDomain names a format as the domain does.
func FormatToDomain(f contextdv1.Format) (string, error) {
	name, ok := formatsToDomain[f]
	if !ok {
		return "", invalid("format", "%d is not a format", f)
	}
	return name, nil
}

var conversionKinds = map[render.ConversionKind]string{
	render.Described: "described", render.LeftOut: "left_out", render.Renamed: "renamed", render.Moved: "moved", render.Wrapped: "wrapped",
}

func conversionsToProto(all []render.Conversion) []*contextdv1.Conversion {
	out := make([]*contextdv1.Conversion, len(all))
	for i, c := range all {
		out[i] = &contextdv1.Conversion{SourceSeq: uint64(c.Seq), SourceBlock: uint32(c.Block), Kind: conversionKinds[c.Kind], What: c.What}
		if c.Seq > 0 {
			out[i].Pointer = reduce.Pointer(c.Seq, c.Block)
		}
	}
	return out
}

func breakpointToProto(b assemble.Breakpoint) *contextdv1.CacheBreakpoint {
	out := &contextdv1.CacheBreakpoint{MessageIndex: uint32(b.Message)}
	if b.Item != nil {
		out.ContentIndex = new(uint32(*b.Item))
	}
	return out
}
