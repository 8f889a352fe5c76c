package cli

import (
	"bytes"
	"encoding/json"
	"testing"
)

// TestInert has what a terminal would act on written, in one piece and byte by byte.
func TestInert(t *testing.T) {
	for in, want := range map[string]string{
		"plain\ttext é 漢 🙂\nand more": "plain\ttext é 漢 🙂\nand more",
		escapes:                       `\u001b[2J\u001b]52;c;eA==\u0007\u009b31m\u202e`,
		"a\rb\x00\x7f\xff":            `a\u000db\u0000\u007f\xff`,
		"a\u200bb\U000E0041 👩\u200d💻": "a\\u200bb\\udb40\\udc41 👩\u200d💻",
		"\xc2":                        "",
		"one\r\ntwo\r":                "one\ntwo",
	} {
		var whole, pieces bytes.Buffer
		if _, err := (&inert{w: &whole}).Write([]byte(in)); err != nil {
			t.Fatal(err)
		}
		w := &inert{w: &pieces}
		for _, b := range []byte(in) {
			if _, err := w.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
		if whole.String() != want || pieces.String() != want {
			t.Errorf("%q: %q, and in pieces %q", in, whole.String(), pieces.String())
		}
	}
	line, err := json.Marshal("a\u009b\u202e\x1b")
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	var again string
	if _, err := (&inert{w: &out}).Write(line); err != nil || json.Unmarshal(out.Bytes(), &again) != nil || again != "a\u009b\u202e\x1b" {
		t.Errorf("JSON means something else: %s, %v", out.String(), err)
	}
}
