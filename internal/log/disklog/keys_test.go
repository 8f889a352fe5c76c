package disklog

import (
	"bytes"
	"cmp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	eventlog "github.com/contextd/contextd/internal/log"
)

// rawText draws strings in which the bytes that matter to the encoding are
// frequent.
func rawText() *rapid.Generator[string] {
	return rapid.Map(rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 2, 'a', 'b', 0xfe, 0xff}), 0, 6), func(b []byte) string { return string(b) })
}

func genArtifactName() *rapid.Generator[artifactName] {
	return rapid.Custom(func(t *rapid.T) artifactName {
		return artifactName{
			kind: rawText().Draw(t, "kind"),
			seq:  eventlog.Seq(rapid.Uint64().Draw(t, "seq")),
			id:   rawText().Draw(t, "id"),
			put:  rapid.Uint64().Draw(t, "put"),
		}
	})
}

func TestArtifactKeysAreOrderedAsTheirNames(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		a, b := genArtifactName().Draw(rt, "a"), genArtifactName().Draw(rt, "b")
		if rapid.Bool().Draw(rt, "alike") {
			b.kind, b.seq = a.kind, a.seq
		}
		ka, kb := artifactKey(5, a.kind, a.seq, a.id, a.put), artifactKey(5, b.kind, b.seq, b.id, b.put)
		want := cmp.Or(strings.Compare(a.kind, b.kind), cmp.Compare(a.seq, b.seq), strings.Compare(a.id, b.id), cmp.Compare(a.put, b.put))
		if got := bytes.Compare(ka, kb); got != want {
			rt.Fatalf("keys of %+v and %+v compare as %d, want %d", a, b, got, want)
		}
		if got, ok := parseArtifactKey(ka); !ok || got != a {
			rt.Fatalf("the key of %+v reads as %+v, %t", a, got, ok)
		}
		for cut := range len(ka) {
			if got, ok := parseArtifactKey(ka[:cut]); ok {
				rt.Fatalf("%d bytes of the key of %+v read as %+v", cut, a, got)
			}
		}
		prefix := artifactPrefix(5, b.kind, b.seq, b.id)
		same := a.kind == b.kind && a.seq == b.seq && a.id == b.id
		if bytes.HasPrefix(ka, prefix) != same {
			rt.Fatalf("the versions of %+v and %+v are mixed up", a, b)
		}
	})
}

func TestPrefixEnd(t *testing.T) {
	for prefix, want := range map[string]string{"a": "b", "a\xff": "b", "a\xff\xff": "b", "\x00": "\x01"} {
		if got := prefixEnd([]byte(prefix)); string(got) != want {
			t.Errorf("the end of %q is %q, want %q", prefix, got, want)
		}
	}
	if got := prefixEnd([]byte("\xff\xff")); got != nil {
		t.Errorf("the end of the last prefix is %q, want none", got)
	}
}

func TestKeysSayWhatTheyStandFor(t *testing.T) {
	for want, key := range map[string][]byte{
		`session "a b"`:               sessionKey("a b"),
		"event 3 of segment 2":        eventKey(2, 3),
		"reference to segment 2":      referenceKey(2, "s"),
		"artifact k/4/i of segment 2": artifactKey(2, "k", 4, "i", 1),
		"key 70 of segment 2":         putsKey(2),
		"key 61 of segment 2":         kindPrefix(2, keyArtifact),
		"key 640000000000000001":      deletionKey(1),
		"an empty key":                nil,
		"key 670000000000000002":      segmentPrefix(2),
	} {
		if got := describeKey(key); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
