package records_test

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/records"
)

func TestHashOfNothing(t *testing.T) {
	const want = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	if got := records.NewHasher().Sum(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestHashName(t *testing.T) {
	if got := records.HashName([]byte{0, 0xab, 0xff}); got != "sha256:00abff" {
		t.Errorf("%s", got)
	}
}

// The hash after every message is that of the lines so far.
func TestHasherAgainstJoinedLines(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := records.NewHasher()
		var file []byte
		for _, line := range rapid.SliceOfN(rapid.SliceOf(rapid.Byte()), 0, 10).Draw(t, "lines") {
			h.Add(line)
			file = append(append(file, line...), '\n')
			for range rapid.IntRange(0, 2).Draw(t, "sums between") {
				if got, want := h.Sum(), fmt.Sprintf("sha256:%x", sha256.Sum256(file)); got != want {
					t.Fatalf("after %q: %s, want %s", file, got, want)
				}
			}
		}
		if got, want := h.Sum(), fmt.Sprintf("sha256:%x", sha256.Sum256(file)); got != want {
			t.Fatalf("%q: %s, want %s", file, got, want)
		}
	})
}
