package transcript_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/harness/transcript"
)

// shapes has a field of every kind that records have.
type shapes struct {
	Type  string            `json:"type"`
	A     json.RawMessage   `json:"a"`
	B     *shapes2          `json:"b"`
	List  []shapes2         `json:"l"`
	Raws  []json.RawMessage `json:"r"`
	Words []string          `json:"w"`
	Yes   bool              `json:"y"`
	Map   map[string]string `json:"m"`
	Count transcript.Count  `json:"c"`
	Opt   *uint64           `json:"o"`
}

type shapes2 struct {
	Type string           `json:"type"`
	A    int              `json:"a"`
	B    *bool            `json:"b,omitempty"`
	C    transcript.Count `json:"c"`
	D    struct {
		Type int64 `json:"type"`
	} `json:"d"`
}

// sameDecoding holds DecodePart to Decode, for what is JSON.
func sameDecoding[T any](t interface{ Fatalf(string, ...any) }, raw []byte) {
	var want, got T
	errWant, errGot := transcript.Decode(raw, &want), transcript.DecodePart(raw, &got)
	if (errWant == nil) != (errGot == nil) || (errWant != nil && errWant.Error() != errGot.Error()) {
		t.Fatalf("%s: error %v instead of %v", raw, errGot, errWant)
	}
	if errWant == nil && !reflect.DeepEqual(want, got) {
		t.Fatalf("%s: %+v instead of %+v", raw, got, want)
	}
}

func sameDecodings(t interface{ Fatalf(string, ...any) }, raw []byte) {
	sameDecoding[shapes](t, raw)
	sameDecoding[[]shapes2](t, raw)
	sameDecoding[*shapes2](t, raw)
	sameDecoding[string](t, raw)
	sameDecoding[json.RawMessage](t, raw)
	sameDecoding[map[string]json.RawMessage](t, raw)
	sameDecoding[map[string]*shapes2](t, raw)
}

// partCases are what generated values seldom are.
var partCases = []string{
	`{"type":"x","a":{"b": 1},"b":{"type":"y","a":-7,"b":true,"c":12,"d":{"type":9}},"l":[{"a":1},{}],"r":[1,"x",null],"w":["a","\n"],"y":true,"m":{"k":"v"},"c":1.9,"o":3}`,
	`{"type":null,"a":null,"b":null,"l":null,"r":null,"w":null,"y":null,"m":null,"c":null,"o":null}`,
	`{"l":[],"r":[],"w":[],"m":{},"b":{}}`, `{"l":[null,{"a":1}],"w":[null]}`,
	`{"type":"a","type":"b"}`, `{"b":{"a":1},"b":{"c":2}}`, `{"w":["a"],"w":["b"]}`, `{"b":{"a":1},"b":null}`,
	`{"ty\u0070e":"x"}`, `{"TYPE":"x"}`, `{"type":"\ud83d\ude00 \u00e9 \/ \"\\"}`, `{"type":"\ud800"}`, "{\"type\":\"\xff\"}",
	`{"b":{"a":1.5}}`, `{"b":{"a":1e3}}`, `{"b":{"a":99999999999999999999}}`, `{"b":{"a":-0}}`, `{"o":-1}`, `{"b":{"a":"1"}}`,
	`{"type":7}`, `{"y":"true"}`, `{"y":0}`, `{"b":[]}`, `{"l":{}}`, `{"l":[1]}`, `{"a": [ 1 , { "x" : "]" } ] }`,
	` {"type":"x"} `, `{"m":{"a":"b","\u0061":"c","b":null}}`, `{"m":[]}`, `{"m":{"a":1}}`, `[]`, `[{"a":1}, {"a":2},{"a":3},{"a":4},{"a":5},{"c":6}]`, `"text"`, `"te\\xt\""`, `null`, `7`, `{}`, `true`,
}

func TestDecodePart(t *testing.T) {
	for _, raw := range partCases {
		sameDecodings(t, []byte(raw))
	}
	rapid.Check(t, func(t *rapid.T) {
		raw, err := json.MarshalIndent(jsonValue(4).Draw(t, "value"), "", " ")
		if err != nil {
			t.Fatal(err)
		}
		sameDecodings(t, raw)
	})
}

// TestDecodePartShares: raw JSON is a piece of what was read, and ends where it ends.
func TestDecodePartShares(t *testing.T) {
	raw := []byte(`{"a":[1,2],"type":"x"}`)
	var s shapes
	if err := transcript.DecodePart(raw, &s); err != nil {
		t.Fatal(err)
	}
	if &s.A[0] != &raw[5] || cap(s.A) != len(`[1,2]`) {
		t.Errorf("%s with room for %d is a copy or runs on", s.A, cap(s.A))
	}
}

func FuzzDecodePart(f *testing.F) {
	for _, raw := range partCases {
		f.Add([]byte(raw))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if transcript.Valid(raw) {
			sameDecodings(t, raw)
		}
	})
}
