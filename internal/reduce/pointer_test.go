package reduce_test

import (
	"strings"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

func TestPointer(t *testing.T) {
	for _, c := range []struct {
		text  string
		seq   eventlog.Seq
		block int
	}{
		{"ctx:1.0", 1, 0},
		{"ctx:12.3", 12, 3},
		{"ctx:9223372036854775807.2147483647", 1<<63 - 1, 1<<31 - 1},
	} {
		if got := reduce.Pointer(c.seq, c.block); got != c.text {
			t.Errorf("Pointer(%d, %d) is %q, want %q", c.seq, c.block, got, c.text)
		}
		if seq, block, err := reduce.ParsePointer(c.text); err != nil || seq != c.seq || block != c.block {
			t.Errorf("ParsePointer(%q) is %d, %d, %v", c.text, seq, block, err)
		}
	}
	for _, text := range []string{
		"", "ctx:", "ctx:1", "ctx:1.", "ctx:.1", "1.0", "ctx:0.0", "ctx:-1.0", "ctx:+1.0", "ctx:1.-1", "ctx:1.0.0", "ctx:1.0 ",
		"CTX:1.0", "ctx:01.0", "ctx:1.00", "ctx:1_0.0", "ctx:0x1.0", "ctx:9223372036854775808.0", "ctx:1.2147483648", "ctx:１.0",
	} {
		if _, _, err := reduce.ParsePointer(text); err == nil || !strings.Contains(err.Error(), "ctx:12.0") {
			t.Errorf("ParsePointer(%q): %v", text, err)
		}
	}
}

func FuzzParsePointer(f *testing.F) {
	for _, seed := range []string{"ctx:12.0", "ctx:0.1", "ctx:18446744073709551615.1", "ctx:1.4294967296", "ctx:1.0\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		seq, block, err := reduce.ParsePointer(text)
		if err == nil && (seq == 0 || block < 0 || reduce.Pointer(seq, block) != text) {
			t.Errorf("%q is read as event %d, block %d", text, seq, block)
		}
	})
}
