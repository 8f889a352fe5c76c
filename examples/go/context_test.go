package main

import (
	"encoding/json"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func messages(lines ...string) (out []*contextdv1.RenderedMessage) {
	for i, l := range lines {
		out = append(out, &contextdv1.RenderedMessage{Index: uint32(i), Json: []byte(l), System: strings.HasPrefix(l, `{"system"`)})
	}
	return out
}

// What the daemon says must agree with what came, in every part.
func TestCheck(t *testing.T) {
	held := messages(`{"a":1.0}`, `{"b":2}`)
	const hash = "sha256:3f40c6ce3a4ab6d7cb61b2ed81a7a2e4acc16fdbc4f1ae03e5e8d45ef3b5ec52"
	good := func() (*contextdv1.ContextHeader, *contextdv1.ContextTrailer) {
		h := hashOf(held)
		return &contextdv1.ContextHeader{MessageCount: 2, PrefixMessages: 2, ContextHash: h, PrefixHash: h, SkippedMessages: 1},
			&contextdv1.ContextTrailer{MessageCount: 2, ContextHash: h}
	}
	for _, test := range []struct {
		name  string
		spoil func(*contextdv1.ContextHeader, *contextdv1.ContextTrailer)
		want  string
	}{
		{"all agrees", func(*contextdv1.ContextHeader, *contextdv1.ContextTrailer) {}, ""},
		{"hash of the header", func(h *contextdv1.ContextHeader, _ *contextdv1.ContextTrailer) { h.ContextHash = hash }, "hash to"},
		{"hash of the trailer", func(_ *contextdv1.ContextHeader, t *contextdv1.ContextTrailer) { t.ContextHash = hash }, "hash to"},
		{"prefix hash", func(h *contextdv1.ContextHeader, _ *contextdv1.ContextTrailer) { h.PrefixHash = hash }, "the prefix hash is"},
		{"count", func(h *contextdv1.ContextHeader, _ *contextdv1.ContextTrailer) { h.MessageCount = 3 }, "the header says 3"},
		{"skipped less and says nothing", func(h *contextdv1.ContextHeader, _ *contextdv1.ContextTrailer) { h.SkippedMessages = 0 }, "0 of its 1"},
		{"skipped less and says why", func(h *contextdv1.ContextHeader, _ *contextdv1.ContextTrailer) {
			h.SkippedMessages, h.HaveBroken = 0, &contextdv1.PrefixBreak{}
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, tr := good()
			test.spoil(h, tr)
			err := check(held, &contextdv1.Have{MessageCount: 1}, h, tr)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// Marks go on copies, on the item that is named, and leave every other byte.
func TestRequestMarksCopies(t *testing.T) {
	held := heldContext{
		messages: messages(`{"system":[{"type":"text","text":"a"}]}`, `{"role":"user","content":[{"type":"text","text":"b"},{"n":1e400}]}`),
		header: &contextdv1.ContextHeader{CacheBreakpoints: []*contextdv1.CacheBreakpoint{
			{MessageIndex: 0}, {MessageIndex: 1, ContentIndex: proto.Uint32(0)},
		}},
	}
	before := hashOf(held.messages)
	req, err := held.request("m")
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"model":"m","max_tokens":1024,"system":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}],` +
		`"messages":[{"role":"user","content":[{"type":"text","text":"b","cache_control":{"type":"ephemeral"}},{"n":1e400}]}]}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if hashOf(held.messages) != before {
		t.Error("the held messages were changed")
	}
}
