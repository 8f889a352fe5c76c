package render

import (
	"encoding/base64"
	"slices"
	"strings"

	eventlog "github.com/contextd/contextd/internal/log"
)

// mediaLimits are how much media a provider takes in one request. It refuses a request with more, and every later one
// of the session. So the oldest media are replaced by descriptions: once a limit is exceeded, down to half of it, so
// that not every further medium changes the cached prefix.
type mediaLimits struct {
	// most is how many media a request may have; if images is set, only images count.
	most   int
	images bool
	// bytes is how large the messages may be.
	bytes int
	// In a request of more than few images none may have a side of more than side pixels; there
	// is no such limit where side is 0.
	few, side int
	// carries finds a block that the format sends as media.
	carries func(at mediaPlace, block eventlog.Block) (medium, bool)
}

// causeMedia is the cause in reports of a message that mediaLimits changed.
const causeMedia = "media_limits"

// mediaPlace is where a block is: with whom, and whether in a result, or in one that failed.
type mediaPlace struct {
	role           eventlog.Role
	result, failed bool
}

// medium is a block that is sent as media.
type medium struct {
	// block is where it is in the message, and inner where in the content of a result there;
	// -1 for a block of the message itself.
	block, inner int
	bytes        int
	image        bool
	side         int // the longer side of an image, in pixels; 0 where it is not known
}

// mediumOf returns what a block of media counts towards the limits. Without a type it counts as an image.
func mediumOf(b eventlog.Media) medium {
	kind := mediaType(b)
	m := medium{bytes: base64.StdEncoding.EncodedLen(len(b.Data)), image: kind == "" || strings.HasPrefix(kind, "image/")}
	if m.image {
		m.side = longestSide(b.Data)
	}
	return m
}

// of are the media of a message, in their order.
func (l *mediaLimits) of(m *Message) []medium {
	var out []medium
	add := func(at mediaPlace, b eventlog.Block, block, inner int) {
		switch b.(type) {
		case eventlog.Media, eventlog.ProviderBlock:
			if found, ok := l.carries(at, b); ok {
				found.block, found.inner = block, inner
				out = append(out, found)
			}
		}
	}
	for i, b := range m.Blocks {
		r, ok := b.(eventlog.ToolResult)
		if !ok || m.Role != eventlog.RoleTool {
			add(mediaPlace{role: m.Role}, b, i, -1)
			continue
		}
		for j, inner := range r.Content {
			add(mediaPlace{m.Role, true, r.IsError}, inner, i, j)
		}
	}
	return out
}

// noted sets the message's media on the first of its fragments.
func (l *mediaLimits) noted(m *Message, fragments []Fragment) []Fragment {
	if len(fragments) == 0 {
		return fragments
	}
	if media := l.of(m); media != nil {
		first := &fragments[0]
		if first.notes == nil {
			first.notes = &notes{}
		}
		first.notes.media = media
	}
	return fragments
}

// tally adds up the media of a request.
type tally struct{ bytes, count, images, long int }

func (t *tally) add(l *mediaLimits, m medium, sign int) {
	if m.image || !l.images {
		t.count += sign
	}
	if m.image {
		t.images += sign
	}
	if l.side > 0 && m.side > l.side {
		t.long += sign
	}
}

// exceeds reports whether the tally exceeds the limits divided by by.
func (t *tally) exceeds(l *mediaLimits, by int) bool {
	return t.count > l.most/by || t.bytes > l.bytes/by || t.long > 0 && t.images > l.few/by
}

// described is how many of a request's first media are replaced by descriptions. It replays the messages in order, so
// that further messages change nothing until a limit is exceeded again.
func (l *mediaLimits) described(fragments []Fragment) int {
	var shown []medium
	var has tally
	first := 0
	for i := range fragments {
		f := &fragments[i]
		has.bytes += len(f.JSON) + 1
		if f.Role == eventlog.RoleTool {
			has.bytes += len(f.Elsewhere)
		}
		before := len(shown)
		for _, m := range f.shown() {
			shown = append(shown, m)
			has.add(l, m, 1)
		}
		if !has.exceeds(l, 1) {
			continue
		}
		// The newest message's own are described only as far as they must be.
		for first < len(shown) && (first < before && has.exceeds(l, 2) || has.exceeds(l, 1)) {
			has.add(l, shown[first], -1)
			has.bytes -= shown[first].bytes
			first++
		}
	}
	return first
}

// within replaces the media that are too much for a request by descriptions. render makes the fragments of a message.
func (l *mediaLimits) within(fragments []Fragment, render func(Message) []Fragment) []Fragment {
	left := l.described(fragments)
	if left == 0 {
		return fragments
	}
	out := make([]Fragment, 0, len(fragments))
	for i := 0; i < len(fragments); i++ {
		f := &fragments[i]
		n := min(left, len(f.shown()))
		if left -= n; n == 0 {
			out = append(out, *f)
			continue
		}
		for i+1 < len(fragments) && fragments[i+1].Blocks == nil {
			i++ // of the same message
		}
		out = append(out, f.describing(n, render)...)
	}
	return out
}

// shown are the media of the fragment's message.
func (f *Fragment) shown() []medium {
	if f.notes == nil {
		return nil
	}
	return f.notes.media
}

// describing renders a fragment's message again, with its first n media described.
func (f *Fragment) describing(n int, render func(Message) []Fragment) []Fragment {
	m := f.Message
	m.Blocks = slices.Clone(m.Blocks)
	told := slices.Clone(f.Conversions)
	if m.Cause == "" {
		m.Cause = causeMedia
	}
	cloned := -1 // the last block whose content was
	for _, at := range f.shown()[:n] {
		block := &m.Blocks[at.block]
		if r, ok := (*block).(eventlog.ToolResult); ok {
			if cloned != at.block {
				r.Content = slices.Clone(r.Content)
				*block, cloned = r, at.block
			}
			block = &r.Content[at.inner]
		}
		what := ""
		switch b := (*block).(type) {
		case eventlog.Media:
			what = describeMedia(b)
		case eventlog.ProviderBlock:
			what = nativeKind(b)
		}
		told = append(told, m.conversion(at.block, Described, what))
		*block = eventlog.Text{Text: description(what, m.place(at.block), m.Recall)}
	}
	out := settled(render(m))
	out[0].Conversions = besides(told, out[0].Conversions)
	return out
}
