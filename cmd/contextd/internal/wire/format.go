package wire

import (
	"strings"

	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

const formatPrefix = "FORMAT_"

// FormatToDomain returns the format for an enum value, by the value's name.
func FormatToDomain(f contextdv1.Format) (*render.Format, error) {
	name := render.NameContextd
	if f != contextdv1.Format_FORMAT_UNSPECIFIED {
		name = strings.ToLower(strings.TrimPrefix(f.String(), formatPrefix))
	}
	format, ok := render.FormatNamed(name)
	if !ok {
		return nil, invalid("format", "%d is not a format", f)
	}
	return format, nil
}

// formatToProto returns the enum value for a format's name; FORMAT_UNSPECIFIED if there is none, as for
// contextd's own format.
func formatToProto(name string) contextdv1.Format {
	return contextdv1.Format(contextdv1.Format_value[formatPrefix+strings.ToUpper(name)])
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
