package transport

import (
	"math"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// FuzzDecodedMemory: whatever bytes come, a request that decodes was estimated to take what its messages
// and list elements take at least, and an estimate beyond a bound stays beyond it.
func FuzzDecodedMemory(f *testing.F) {
	for _, m := range []*contextdv1.AppendEventsRequest{
		{SessionId: "s", Events: slices.Repeat([]*contextdv1.Event{{}}, 9)},
		{Events: []*contextdv1.Event{{EventId: "e", Labels: map[string]string{"a": "b"}, Kind: &contextdv1.Event_Message{Message: &contextdv1.Message{
			Blocks: []*contextdv1.Block{{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: "t"}}}},
		}}}}},
		{Events: []*contextdv1.Event{{Kind: &contextdv1.Event_Compaction{Compaction: &contextdv1.Compaction{Decision: &contextdv1.CompactionDecision{KeptSeqs: []uint64{1, 300}}}}}}},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(append([]byte{0x0b}, b...))
		f.Add(b[:len(b)-1])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m := &contextdv1.AppendEventsRequest{}
		estimated := decodedMemory(b, m.ProtoReflect().Descriptor(), math.MaxUint64)
		if proto.Unmarshal(b, m) == nil {
			if least := memoryOf(m.ProtoReflect()); estimated < least {
				t.Errorf("%d bytes were estimated, and the values take %d", estimated, least)
			}
		}
		if estimated > 0 && decodedMemory(b, m.ProtoReflect().Descriptor(), estimated-1) < estimated {
			t.Errorf("an estimate of %d is not beyond a bound of %d", estimated, estimated-1)
		}
	})
}

// memoryOf is what the messages and list elements in a message take beside their bytes.
func memoryOf(m protoreflect.Message) (n uint64) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap():
			n += uint64(v.Map().Len()) * messageMemory
		case fd.IsList():
			for i := range v.List().Len() {
				if fd.Message() == nil {
					n += 8
				} else {
					n += messageMemory + memoryOf(v.List().Get(i).Message())
				}
			}
		case fd.Message() != nil:
			n += messageMemory + memoryOf(v.Message())
		}
		return true
	})
	return n
}
