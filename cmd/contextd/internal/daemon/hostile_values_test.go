package daemon_test

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// brokenMark is replaced in the encoded message by as many bytes that are not UTF-8.
const brokenMark = "(not UTF-8)"

func brokenText(b []byte) []byte {
	return bytes.ReplaceAll(b, []byte(brokenMark), []byte("\xff\xfe\xc0\x80\xed\xa0\x80\xf5\x80\x80\xf4")[:len(brokenMark)])
}

// scalar is a value for a field: what it is for, or what it is not for.
func (r *requests) scalar(f protoreflect.FieldDescriptor) protoreflect.Value {
	hostile := r.hostile()
	rules, _ := proto.GetExtension(f.Options(), validate.E_Field).(*validate.FieldRules)
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(r.IntN(2) == 0)
	case protoreflect.EnumKind:
		values := f.Enum().Values()
		n := values.Get(r.IntN(values.Len())).Number()
		if hostile {
			n = pick(r, []protoreflect.EnumNumber{-1, 0, 99, math.MaxInt32, math.MinInt32})
		}
		return protoreflect.ValueOfEnum(n)
	case protoreflect.StringKind:
		if hostile {
			return protoreflect.ValueOfString(r.badText(f, rules))
		}
		return protoreflect.ValueOfString(r.goodText(f, rules))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes(r.bytes(f, hostile))
	case protoreflect.DoubleKind, protoreflect.FloatKind:
		if hostile {
			return protoreflect.ValueOfFloat64(pick(r, []float64{
				math.NaN(), math.Inf(1), math.Inf(-1), -1, math.MaxFloat64, math.SmallestNonzeroFloat64, math.Copysign(0, -1), 1, 1.0000001,
			}))
		}
		return protoreflect.ValueOfFloat64(pick(r, []float64{0, 0.05, 0.3, 0.5, 0.8, 0.95}))
	default:
		return r.number(f, hostile)
	}
}

// number is a seq, a number of things, or of tokens.
func (r *requests) number(f protoreflect.FieldDescriptor, hostile bool) protoreflect.Value {
	n := uint64(r.IntN(12))
	switch {
	case hostile:
		n = pick(r, []uint64{0, 1, 1000, 1001, 1e6, 1e9, 1e9 + 1, math.MaxInt32, math.MaxUint32, math.MaxInt64, math.MaxInt64 + 1, math.MaxUint64})
	case strings.Contains(string(f.Name()), "token"), f.Name() == "output_reserve":
		n = pick(r, []uint64{0, 10, 100, 1000, 4000, 20_000, 100_000})
	}
	switch f.Kind() {
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		return protoreflect.ValueOfInt32(int32(n))
	case protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return protoreflect.ValueOfInt64(int64(n))
	default:
		return protoreflect.ValueOfUint64(n)
	}
}

// fillTime sets the seconds and nanos of a time or a duration.
func (r *requests) fillTime(m protoreflect.Message) {
	seconds, nanos := int64(r.IntN(2)), int32(r.IntN(1e9))
	if r.hostile() {
		seconds = pick(r, []int64{0, -1, 600, 601, 315_576_000_000, 315_576_000_001, 253_402_300_800, math.MaxInt64, math.MinInt64})
		nanos = pick(r, []int32{0, -1, 999_999_999, 1_000_000_000, math.MaxInt32, math.MinInt32})
	}
	fields := m.Descriptor().Fields()
	m.Set(fields.ByName("seconds"), protoreflect.ValueOfInt64(seconds))
	m.Set(fields.ByName("nanos"), protoreflect.ValueOfInt32(nanos))
}

// learnedAs are the fields of answers whose texts belong into a field of a request.
var learnedAs = map[protoreflect.Name]string{
	"session_id": "session_id", "new_session_id": "session_id", "session_ids": "session_id", "page_token": "next_page_token",
	"event_id": "event_id", "kept_event_ids": "event_id", "call_id": "call_id", "task_id": "task_id", "incarnation": "incarnation",
	"projection_id": "projection_id", "prefix_hash": "prefix_hash", "summary_id": "summary_id", "idempotency_key": "idempotency_key",
}

// wordsOf are texts that mean something in fields of a name.
var wordsOf = map[protoreflect.Name][]string{
	"expression": {"true", `age > 2 ? "drop" : "keep"`, `errors > 0 ? "stub" : "keep"`, `result_chars > 100 ? "clip" : "keep"`},
	"tokenizer":  {"", "o200k_base", "cl100k_base", "estimate"},
	"model":      {"", "gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro", "unheard-of"},
	"harness":    {"", "claude", "codex", "opencode", "pi", "gemini", "cursor", "copilot", "openhands", "aider", "vscode", "chat"},
	"from":       {"", "claude", "codex", "opencode", "pi", "gemini", "cursor", "copilot", "openhands", "aider", "vscode", "chat"},
	"to":         {"claude", "codex", "opencode", "pi"},
	"summarizer": {"", "house", "extractive"},
	"mime_type":  {"image/png", "", "text/plain"},
	"provider":   {"anthropic", "openai", "x"},
	"dedupe_key": {"", "a", "b"},
	"name":       {"f", "", "default"},
}

// goodText is what belongs into a field.
func (r *requests) goodText(f protoreflect.FieldDescriptor, rules *validate.FieldRules) string {
	if in := rules.GetString().GetIn(); len(in) > 0 {
		return pick(r, append([]string{""}, in...))
	}
	name := f.Name()
	if f.ContainingMessage().IsMapEntry() {
		switch {
		case f.ContainingMessage().Name() == "TierCapsEntry":
			return pick(r, []string{"dialogue", "tools", "system", "summaries"})
		case name == "key":
			return pick(r, []string{"a", "harness.injected", "f", "f*", "[a-z]?"})
		}
	}
	if name == "event_id" && r.IntN(3) > 0 {
		return ""
	}
	if name == "idempotency_key" && r.IntN(2) == 0 {
		return fmt.Sprintf("key-%d", r.IntN(20))
	}
	if name == "pointer" {
		return fmt.Sprintf("ctx:%d.%d", r.IntN(20), r.IntN(3))
	}
	if known := r.known(learnedAs[name]); known != "" {
		return known
	}
	if words := wordsOf[name]; len(words) > 0 {
		return pick(r, words)
	}
	most := 40
	if rules.GetString().GetMaxLen() > 0 {
		most = 8
	}
	return strings.Repeat(pick(r, []string{"word ", "Ünïcode ", "line\n", "x"}), 1+r.IntN(most))
}

// badText is what does not belong into a field: bombs for what it is read as, tricks with
// names, and what breaks its rules by one.
func (r *requests) badText(f protoreflect.FieldDescriptor, rules *validate.FieldRules) string {
	if most := rules.GetString().GetMaxLen(); most > 0 && most < 1<<17 && r.IntN(4) == 0 {
		return strings.Repeat(pick(r, []string{"x", "é", "a/", "*a"}), int(most)+r.IntN(2))
	}
	if bombs := bombsOf[f.Name()]; len(bombs) > 0 && r.IntN(2) == 0 {
		return pick(r, bombs)
	}
	if f.Name() == "key" && r.IntN(2) == 0 {
		return pick(r, bombsOf["key"])
	}
	return pick(r, badTexts)
}

// badTexts are what no name is, and what some content is.
var badTexts = []string{
	"", " ", "\x00", "a\x00b", "\n", "\x1b[2J", "\u202e", "\ufeff", "\ufffd", "é", strings.Repeat("e\u0301", 100), brokenMark, "a" + brokenMark,
	"..", "../../../../etc/passwd", "/etc/passwd", "a/../b", "a//b", "./a", "a/", "~first/mine", "~/mine", "~t1/s1", "first/mine", "mine/../mine",
	"%2e%2e%2f", `..\..\a`, "a:b@c", "CON", "file:///etc/passwd", "http://127.0.0.1:1/", "${HOME}", "$(id)", "`id`", "{{.}}", "%s%n%d", "'; --",
	"s1-mine", "mine.1.1", "p1-0001", "p1-9999", "p-1--1", "p99999999999999999999-0001", "ctx:", "ctx:1.0", "ctx:-1.0", "ctx:1.-1", "ctx:0.0",
	"ctx:18446744073709551615.0", "ctx:18446744073709551616.0", "ctx:1.4294967295", "ctx:1.0.0", "ctx:0x1.0", "ctx:1e3.0",
	"sha256:", "sha256:" + strings.Repeat("0", 64), "md5:0", "bm90aGluZw", "cDAtMDAwMA", "////", "AAAAAAAAAAAAAAAAAAAAAA==", "-1", "NaN", "1e999",
	"{}", "[]", "null", strings.Repeat("a", 1<<16), strings.Repeat("[", 1<<14), strings.Repeat("\n", 1<<14), strings.Repeat("日本", 1<<12),
	"<system-reminder>", "</tool_result>", "<|endoftext|>", strings.Repeat("<|im_start|>", 500), strings.Repeat("a ", 1<<15),
}

// bombsOf are texts that are much work for what reads them.
var bombsOf = map[protoreflect.Name][]string{
	"expression": {
		strings.Repeat("(", 5000) + "true" + strings.Repeat(")", 5000),
		strings.Repeat("!", 8000) + "true", strings.Repeat("-", 4001) + "1 > 0",
		strings.Repeat("true && ", 3000) + "true", strings.Repeat("true ? ", 1000) + "true",
		`[1,2,3].all(a, [1,2,3].all(b, [1,2,3].all(c, [1,2,3].all(d, [1,2,3].all(e, [1,2,3].all(f, true))))))`,
		`[1,2,3,4,5,6,7,8,9].map(a, [1,2,3,4,5,6,7,8,9].map(b, [1,2,3,4,5,6,7,8,9].map(c, a*b*c))).size() > 0`,
		`"` + strings.Repeat("a", 4000) + `b".matches("(a+)+$")`, `"a".matches("(((a{100}){100}){100})")`, `"a".matches("[")`,
		strings.Repeat(`"a" + `, 2000) + `"a" == "b"`, "age / 0 > 1", "age % 0 == 0", "9223372036854775807 + age > 0", "-9223372036854775808 / -1 > 0",
		`timestamp("x") > timestamp("y")`, `duration("9e99s") > duration("0s")`, `string(bytes("\xff")) == ""`, "age", `"soup"`, `{"a": 1}`, "null", "[1][age]",
		"unknown_variable", "size(1)", "has(a.b.c)", "type(age)", "dyn(1) + dyn('a')", "this", "", `"\ud800" == ""`,
	},
	"key": {
		"[", "[[[[", "[z-a]", `\`, "[^", "[]a]", "{a,b}", strings.Repeat("*", 512), strings.Repeat("*a", 256), strings.Repeat("[a-z]", 100), strings.Repeat("?", 512),
	},
	"harness": {"../claude", "claude\x00", "CLAUDE", "all", strings.Repeat("a", 64)},
	"page_token": {
		"%", strings.Repeat("A", 1<<16), "AA==", "_-_-", "CgA", "cDE4NDQ2NzQ0MDczNzA5NTUxNjE1LTAwMDE", "fmZpcnN0L21pbmU", "bWluZQ",
	},
}

// bytes are JSON or a part of a transcript.
func (r *requests) bytes(f protoreflect.FieldDescriptor, hostile bool) []byte {
	if f.Name() == "data" {
		b := bytes.Clone(pick(r, r.transcripts))
		if hostile {
			b = pick(r, jsonBombs)
		}
		for range r.IntN(3) * r.IntN(3) {
			b = r.brokenFile(b)
		}
		return b
	}
	if hostile {
		return pick(r, jsonBombs)
	}
	if f.Name() == "tools_json" {
		return []byte(`[{"name":"f","description":"d","input_schema":{"type":"object"}}]`)
	}
	return []byte(pick(r, []string{"{}", `{"a":1}`, `{"type":"text","text":"x"}`}))
}

// brokenFile changes a file somewhere.
func (r *requests) brokenFile(b []byte) []byte {
	if len(b) == 0 {
		return b
	}
	at := r.IntN(len(b))
	switch r.IntN(6) {
	case 0:
		return b[:at]
	case 1:
		b[at] ^= 1 << r.IntN(8)
		return b
	case 2: // a line again
		line := b[at:]
		if end := bytes.IndexByte(line, '\n'); end >= 0 {
			line = line[:end+1]
		}
		return append(b, line...)
	case 3: // lines in another order
		lines := bytes.SplitAfter(b, []byte("\n"))
		r.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		return bytes.Join(lines, nil)
	case 4: // a value of another type
		old := pick(r, []string{`"user"`, `"assistant"`, `"type"`, `"content"`, `"id"`, `"uuid"`, `"role"`, `[`, `{`, `null`, `true`})
		return bytes.Replace(b, []byte(old), []byte(pick(r, []string{`null`, `-1e308`, `[]`, `{}`, `"\ud800"`, `""`, `[[[`, `"type"`})), 1+r.IntN(3))
	default:
		return bytes.Join([][]byte{b[:at], pick(r, jsonBombs), b[at:]}, nil)
	}
}

// jsonBombs are what a reader of JSON or of files may trip over.
var jsonBombs = [][]byte{
	nil, []byte("{"), []byte("]"), []byte("\x00"), []byte("\xff\xfe"), []byte("\xef\xbb\xbf{}"), []byte("nul"), []byte("1e999999999"), []byte("-0"),
	[]byte(`{"a":1,"a":2}`), []byte(`"\ud800"`), []byte(`"\u0000"`), []byte(`{"\u0000":"\u0000"}`), []byte(`{"a":1}{"b":2}`), []byte("0x10"), []byte("NaN"),
	[]byte(strings.Repeat("[", 200_000)), []byte(strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000)), []byte(strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000)),
	[]byte(strings.Repeat(`{"a":`, 900) + "1" + strings.Repeat("}", 900)), []byte("[" + strings.Repeat("[],", 50_000) + "[]]"), []byte(strings.Repeat("9", 50_000)),
	[]byte("{" + strings.Repeat(`"a":0,`, 20_000) + `"a":0}`), []byte(`"` + strings.Repeat(`\u00e9`, 10_000) + `"`), []byte(strings.Repeat("\n", 100_000)),
	[]byte(strings.Repeat("{}\n", 5_000)), []byte("SQLite format 3\x00" + strings.Repeat("\x00", 4096)), []byte("PK\x03\x04" + strings.Repeat("\x00", 100)), []byte("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"),
	[]byte(`{"type":"user","message":{"role":"user","content":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + "}}\n"),
	[]byte(strings.Repeat(`{"type":"user","uuid":"u","parentUuid":"u","sessionId":"one","message":{"role":"user","content":"x"}}`+"\n", 300)),
}

// transcripts are files as harnesses write them.
func transcripts(t *testing.T) (all [][]byte) {
	t.Helper()
	paths, err := filepath.Glob("../../../../internal/harness/*/testdata/*.in.json*")
	if err != nil || len(paths) == 0 {
		t.Fatalf("there are no transcripts: %v", err)
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) < 1<<16 {
			all = append(all, b)
		}
	}
	return all
}

// broken changes an encoded message so that it breaks the encoding, or means something else.
func (r *requests) broken(b []byte) []byte {
	b = slices.Clone(b)
	switch r.IntN(9) {
	case 0:
		return b[:r.IntN(len(b)+1)]
	case 1:
		for range 1 + r.IntN(4) {
			if len(b) > 0 {
				b[r.IntN(len(b))] ^= 1 << r.IntN(8)
			}
		}
		return b
	case 2: // a field that nobody knows, as large as it may be
		b = protowire.AppendTag(b, protowire.Number(1+r.IntN(1<<29-1)), protowire.BytesType)
		return protowire.AppendBytes(b, make([]byte, 1<<r.IntN(18)))
	case 3: // the number of the note by which the daemon marks what it could not decode
		b = protowire.AppendTag(b, protowire.MaxValidNumber, protowire.BytesType)
		return protowire.AppendString(b, pick(r, []string{"", "session_id", "\xff"}))
	case 4: // the fields with other types
		for i := range 8 {
			b = protowire.AppendTag(b, protowire.Number(i+1), protowire.Type(r.IntN(6)))
			b = protowire.AppendVarint(b, pick(r, []uint64{0, 1, 1 << 31, 1<<64 - 1}))
		}
		return b
	case 5: // messages within messages
		n := pick(r, []int{100, 5000, 20_000})
		deep := []byte{}
		for range n {
			deep = append(deep, byte(1+r.IntN(4))<<3|3)
		}
		return append(b, deep...)
	case 6: // blocks within blocks
		return append(b, nested(pick(r, []int{50, 500, 2000}))...)
	case 7:
		for range r.IntN(200) {
			b = append(b, byte(r.IntN(256)))
		}
		return b
	default:
		return append(b, b...) // everything twice
	}
}

// nested is AppendEventsRequest.events with a block in a block.
func nested(depth int) []byte {
	wrap := func(inner []byte, fields ...protowire.Number) []byte {
		for _, field := range fields {
			inner = protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), inner)
		}
		return inner
	}
	block := wrap([]byte("x"), 1, 1)
	for range depth {
		block = wrap(block, 3, 4)
	}
	return wrap(block, 2, 10, 2)
}
