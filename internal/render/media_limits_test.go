package render_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/render/rules"
)

// TestMediaLimits lets contexts grow beyond what a provider takes of media in one request: the
// oldest are described, by steps, and nothing is as long as the request is within the limits.
func TestMediaLimits(t *testing.T) {
	base64Of := func(data string) string { return base64.StdEncoding.EncodeToString([]byte(data)) }
	small := eventlog.Media{MIMEType: "image/png", Data: png}
	long := eventlog.Media{MIMEType: "image/png", Data: imageOf(t, "image/png", 2001, 1)}
	pdf := func(megabytes int) eventlog.Block {
		return eventlog.Media{MIMEType: "application/pdf", Data: "%PDF-" + strings.Repeat("x", megabytes*1_000_000)}
	}
	own := func(m eventlog.Media) eventlog.Block {
		return native("anthropic", fmt.Sprintf(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":%q}}`, base64Of(m.Data)))
	}
	inline := native("google", fmt.Sprintf(`{"inlineData":{"mimeType":"image/png","data":%q}}`, base64Of(png)))
	inURL := native("openai", fmt.Sprintf(`{"type":"input_image","image_url":"data:image/png;base64,%s"}`, base64Of(png)))
	most := map[string]int{"anthropic": 32_000_000, "gemini": 20_000_000, "openai_chat": 50_000_000, "openai_responses": 50_000_000}
	at := func(n int, with eventlog.Block) func(int) eventlog.Block {
		return func(i int) eventlog.Block {
			if i == n {
				return with
			}
			return small
		}
	}
	always := func(b eventlog.Block) func(int) eventlog.Block { return func(int) eventlog.Block { return b } }
	for _, c := range []struct {
		name, format string
		block        func(i int) eventlog.Block
		results      bool // in results rather than of the user
		n            int
		steps        []int // how many are described once there are as many as the index in at says
		at           []int
	}{
		{"images", "anthropic", always(small), false, 160, []int{51, 102}, []int{101, 152}},
		{"images of results", "anthropic", always(small), true, 101, []int{51}, []int{101}},
		{"Anthropic's own", "anthropic", always(own(small)), false, 101, []int{51}, []int{101}},
		{"long sides", "anthropic", always(long), true, 32, []int{11, 22}, []int{21, 32}},
		{"long sides of Anthropic's own", "anthropic", always(own(long)), true, 21, []int{11}, []int{21}},
		{"one long side, old", "anthropic", at(3, long), false, 90, []int{4}, []int{21}},
		{"one long side, new", "anthropic", at(29, long), false, 90, []int{20, 30}, []int{30, 41}},
		{"bytes", "anthropic", always(pdf(5)), false, 8, []int{3, 6}, []int{5, 8}},
		{"one that is too large", "anthropic", func(i int) eventlog.Block { return pdf(1 + 24*(i%2)) }, false, 2, []int{2}, []int{2}},
		{"a large one at the end", "anthropic", func(i int) eventlog.Block { return pdf(4 + 14*(i/3)) }, false, 4, []int{3}, []int{4}},
		{"bytes", "gemini", always(pdf(3)), true, 6, []int{3, 5}, []int{5, 7}},
		{"Gemini's own", "gemini", always(inline), false, 20, nil, nil},
		{"bytes", "openai_chat", always(pdf(9)), true, 5, []int{3}, []int{5}},
		{"bytes", "openai_responses", always(pdf(9)), true, 5, []int{3}, []int{5}},
		{"images", "openai_responses", always(inURL), false, 1501, []int{751}, []int{1501}},
		{"images", "openai_chat", always(inURL), true, 1501, []int{751}, []int{1501}},
	} {
		t.Run(c.format+" "+c.name, func(t *testing.T) {
			f, _ := render.FormatNamed(c.format)
			fragments := f.Fragments(user(text("go")))
			var before []render.Encoded
			described := 0
			for i := range c.n {
				shown := user(c.block(i))
				if c.results {
					id := fmt.Sprintf("call%d", i)
					fragments = append(fragments, f.Fragments(by("", run(id, "{}")))...)
					shown = result(id, "bash", c.block(i))
				}
				fragments = append(fragments, f.Fragments(shown)...)
				fragments = append(fragments, f.Fragments(by("", text("ok")))...)
				want := described
				if step := slices.Index(c.at, i+1); step >= 0 {
					want = c.steps[step]
				}
				if got := f.Described(fragments, nil); got != want {
					t.Fatalf("%d of %d are described, not %d", got, i+1, want)
				}
				large := len(fragments[len(fragments)-2].JSON) > 1<<20
				if (large || c.n > 200) && want == described && i < c.n-1 {
					continue
				}
				now := f.Join(fragments)
				if all := bytes.Join(linesOf(now), nil); large && len(all) > most[c.format] {
					t.Fatalf("with %d: %d bytes", i+1, len(all))
				}
				if !large && (want != described || i == c.n-1) {
					for _, v := range rules.Of(f.Name)(linesOf(now)) {
						t.Fatalf("with %d: %v", i+1, v)
					}
				}
				same := 0
				for same < len(before)-1 && bytes.Equal(before[same].JSON, now[same].JSON) {
					same++
				}
				if same < len(before)-1 && want == described {
					t.Fatalf("with %d: message %d changed", i+1, same)
				}
				before, described = now, want
				for _, m := range now {
					for _, c := range m.Conversions {
						if c.Kind == render.Described {
							want--
						}
					}
				}
				if want != 0 {
					t.Errorf("with %d: %d are described without a word", i+1, want)
				}
			}
		})
	}
}
