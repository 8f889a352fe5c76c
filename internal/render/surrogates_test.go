package render

import (
	"encoding/json"
	"reflect"
	"testing"
)

var halves = map[string]string{
	`{"s":"\ud83d"}`:               `{"s":"\ufffd"}`,
	`{"s":"a\udE00b"}`:             `{"s":"a\ufffdb"}`,
	`{"\uD800":1}`:                 `{"\ufffd":1}`,
	`"\ud83d\ud83d\ude00"`:         `"\ufffd\ud83d\ude00"`,
	`"\ude00\ud83d"`:               `"\ufffd\ufffd"`,
	`"\ud83d\\ude00"`:              `"\ufffd\\ude00"`,
	`"\ud83d\n"`:                   `"\ufffd\n"`,
	`"\ud83dude00"`:                `"\ufffdude00"`,
	`"\\\ud83d"`:                   `"\\\ufffd"`,
	`"\ud83d\ude00 \uD83D\uDE00"`:  `"\ud83d\ude00 \uD83D\uDE00"`,
	`"\\ud83d \\\\ude00 \u00e9 é"`: `"\\ud83d \\\\ude00 \u00e9 é"`,
	`"\ud7ff\ue000\/"`:             `"\ud7ff\ue000\/"`,
	`"\ud83`:                       `"\ud83`,
	`"\`:                           `"\`,
	``:                             ``,
}

func TestWholePairs(t *testing.T) {
	for raw, want := range halves {
		if got, changed := wholePairs(raw); got != want || changed != (raw != want) {
			t.Errorf("%s: %s, %t, want %s", raw, got, changed, want)
		}
	}
}

// FuzzWholePairs: it reads as encoding/json reads what it was, and once is enough.
func FuzzWholePairs(f *testing.F) {
	for raw := range halves {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, changed := wholePairs(raw)
		if changed == (got == raw) {
			t.Errorf("%q: %q, %t", raw, got, changed)
		}
		if again, changed := wholePairs(got); changed {
			t.Errorf("%q: %q, then %q", raw, got, again)
		}
		var was, is any
		if json.Unmarshal([]byte(raw), &was) != nil {
			return
		}
		if err := json.Unmarshal([]byte(got), &is); err != nil || !reflect.DeepEqual(was, is) {
			t.Errorf("%q: %q reads otherwise: %v", raw, got, err)
		}
	})
}
