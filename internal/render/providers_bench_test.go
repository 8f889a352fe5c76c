package render_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/render"
)

// BenchmarkProviders renders a conversation of a hundred turns, each with a call and a
// result of 4 KiB, and puts it together.
func BenchmarkProviders(b *testing.B) {
	messages := []render.Message{system("You repair builds."), user(text("go"))}
	for i := range 100 {
		id := fmt.Sprint("call_", i)
		messages = append(messages, by(claude, text("I look."), run(id, `{"command": "make", "timeout": 60.0}`)), result(id, "bash", text(strings.Repeat("a line\n", 585))))
	}
	for _, f := range providerFormats() {
		b.Run(f.Name, func(b *testing.B) {
			var fragments []render.Fragment
			for _, m := range messages {
				fragments = append(fragments, f.Fragments(m)...)
			}
			bytes := 0
			for _, m := range f.Join(fragments) {
				bytes += len(m.JSON)
			}
			b.Run("fragments", func(b *testing.B) {
				b.SetBytes(int64(bytes))
				for b.Loop() {
					for _, m := range messages {
						f.Fragments(m)
					}
				}
			})
			b.Run("join", func(b *testing.B) {
				b.SetBytes(int64(bytes))
				for b.Loop() {
					f.Join(fragments)
				}
			})
		})
	}
}
