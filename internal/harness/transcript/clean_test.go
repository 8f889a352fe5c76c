package transcript_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/harness/transcript"
)

func TestClean(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes"))
		got := transcript.Clean(s)
		if !utf8.ValidString(got) || strings.IndexByte(got, 0) >= 0 {
			t.Fatalf("Clean(%q) = %q", s, got)
		}
		if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 && got != s {
			t.Fatalf("Clean changes %q to %q", s, got)
		}
	})
}

func TestParseTime(t *testing.T) {
	at := time.Date(2026, 3, 1, 10, 0, 0, 500_000_000, time.UTC)
	for in, want := range map[string]time.Time{
		"2026-03-01T10:00:00.5Z": at, "2026-03-01T11:00:00.5+01:00": at, "2026-03-01T10:00:00.500": at,
		"2026-03-01 10:00:00.5": at, "": {}, "yesterday": {},
	} {
		if got := transcript.ParseTime(in); !got.Equal(want) || got.Location() != time.UTC {
			t.Errorf("ParseTime(%q) = %v, want %v", in, got, want)
		}
	}
}

func TestProbe(t *testing.T) {
	p := transcript.NewProbe([]byte(`{"type":"a","n":{"x":[{"y":"z"},{"y":"w"}]}} {"type":"b","cut":{"off":"he`))
	if !p.Has("type", "n.x[].y") || !p.Is("n.x[].y", "z") || p.Is("n.x[].y", "w") {
		t.Errorf("paths of the first record: %v", p.Records)
	}
	if !p.Has("type", "cut", "cut.off") || !p.Is("cut.off", "") || p.Has("n", "cut") || !p.Cut {
		t.Errorf("paths of the record that is cut off: %v", p.Records)
	}
	if !p.Is("type", "x", "b") || p.Is("missing", "") {
		t.Errorf("values: %v", p.Records)
	}
	if p := transcript.NewProbe([]byte("# Markdown\n{}")); len(p.Records) != 0 {
		t.Errorf("no JSON gives %v", p.Records)
	}
	many := strings.Repeat(`{"a":[`+strings.Repeat("1,", 500)+`1]}`, 1000)
	if p := transcript.NewProbe([]byte(many)); len(p.Records) > 30 {
		t.Errorf("the probe reads on: %d records", len(p.Records))
	}
}
