package transport

import (
	"errors"
	"testing"
	"unicode/utf8"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	eventlog "github.com/contextd/contextd/internal/log"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// decode runs bytes through the codec as the server does.
func decode(b []byte, m proto.Message) error {
	if err := newCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, m); err != nil {
		return err
	}
	return checkDecoded(m)
}

func TestFaultsAreNamed(t *testing.T) {
	str := func(num protowire.Number, s string) []byte {
		return protowire.AppendString(protowire.AppendTag(nil, num, protowire.BytesType), s)
	}
	cat := func(parts ...[]byte) string {
		var out []byte
		for _, p := range parts {
			out = append(out, p...)
		}
		return string(out)
	}
	tests := map[string]struct {
		bytes, field string
	}{
		"the session":            {cat(str(1, "\xff")), "session_id"},
		"the first bad event":    {cat(str(1, "s"), str(2, ""), str(2, cat(str(2, "\xc3")))), "events[1].event_id"},
		"a block":                {cat(str(2, cat(str(10, cat(str(2, cat(str(1, cat(str(1, "\xff"))))), str(2, cat(str(1, "")))))))), "events[0].message.blocks[0].text.text"},
		"a label's value":        {cat(str(2, cat(str(5, cat(str(1, "k"), str(2, "\xff")))))), `events[0].labels["k"]`},
		"a label's key":          {cat(str(2, cat(str(5, cat(str(1, "\xff"), str(2, "v")))))), "events[0].labels"},
		"a message cut off":      {cat(str(1, "s"), []byte{0x12, 0x7f}), "AppendEventsRequest"},
		"a broken tag":           {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "AppendEventsRequest"},
		"a message within cut":   {cat(str(2, cat(str(10, "\x12\x7f")))), "AppendEventsRequest"},
		"a note of the client's": {cat(str(noteField, "x")), "x"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := decode([]byte(test.bytes), &contextdv1.AppendEventsRequest{})
			var invalid *eventlog.InvalidError
			if !errors.As(err, &invalid) || invalid.Field != test.field {
				t.Errorf("got %v; want %s named", err, test.field)
			}
		})
	}
}

func TestUnknownFieldsPass(t *testing.T) {
	b := protowire.AppendVarint(protowire.AppendTag(nil, 1000, protowire.VarintType), 7)
	if err := decode(b, &contextdv1.AppendEventsRequest{}); err != nil {
		t.Errorf("a field of a newer client: %v", err)
	}
}

// FuzzDecode holds the search to protobuf's own verdict, and to naming texts
// that are at fault.
func FuzzDecode(f *testing.F) {
	good, err := proto.Marshal(&contextdv1.AppendEventsRequest{
		SessionId: "s",
		Events: []*contextdv1.Event{{EventId: "e", Labels: map[string]string{"k": "v"}, Kind: &contextdv1.Event_Message{Message: &contextdv1.Message{
			Role:   contextdv1.Role_ROLE_TOOL,
			Blocks: []*contextdv1.Block{{Kind: &contextdv1.Block_ToolResult{ToolResult: &contextdv1.ToolResult{CallId: "c"}}}},
		}}}},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	for i := range good {
		bad := append([]byte(nil), good...)
		bad[i] = 0xff
		f.Add(bad)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m, plain contextdv1.AppendEventsRequest
		want := proto.Unmarshal(b, &plain)
		got := decode(b, &m)
		if want == nil {
			if got != nil && !carriesNote(&plain) {
				t.Fatalf("a valid message is refused: %v", got)
			}
			return
		}
		if got == nil {
			t.Fatal("a message that protobuf refuses is accepted")
		}
		if !proto.Equal(withoutUnknown(&m), &contextdv1.AppendEventsRequest{}) {
			t.Fatal("a refused message has content")
		}
		var invalid *eventlog.InvalidError
		if !errors.As(got, &invalid) || !utf8.ValidString(invalid.Field) {
			t.Fatalf("the fault has no name that can be sent: %v", got)
		}
	})
}

func carriesNote(m proto.Message) bool { return checkDecoded(m) != nil }

func withoutUnknown(m *contextdv1.AppendEventsRequest) proto.Message {
	m.ProtoReflect().SetUnknown(protoreflect.RawFields(nil))
	return m
}
