package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestWholeRecords(t *testing.T) {
	long := `{"a":"` + strings.Repeat("x", 200<<10) + `"}`
	tests := []struct{ name, text, whole string }{
		{"nothing", "", ""},
		{"part of a line", `{"a":1`, ""},
		{"a line without its end", `{"a":1}`, `{"a":1}`},
		{"a line", "{\"a\":1}\n", "{\"a\":1}\n"},
		{"a line and a part", "{\"a\":1}\n{\"b\"", "{\"a\":1}\n"},
		{"a line and one without its end", "{\"a\":1}\n{\"b\":2}", "{\"a\":1}\n{\"b\":2}"},
		{"long lines", long + "\n" + long + "\n" + long[:150<<10], long + "\n" + long + "\n"},
		{"damage in the middle", "{\"a\":1}\n{broken\n{\"b\":2}\n{", "{\"a\":1}\n{broken\n{\"b\":2}\n"},
		{"a document", "{\n \"a\": [\n  1\n ]\n}\n", "{\n \"a\": [\n  1\n ]\n}\n"},
		{"part of a document", "{\n \"a\": [\n  1\n ]\n", ""},
		{"part of a list", "[{\"a\":1},\n{\"b\":2},\n", ""},
		{"a list", "[{\"a\":1},\n{\"b\":2}]", "[{\"a\":1},\n{\"b\":2}]"},
	}
	for _, tt := range tests {
		n, err := wholeRecords(strings.NewReader(tt.text), int64(len(tt.text)))
		if err != nil || n != int64(len(tt.whole)) {
			t.Errorf("%s: %d bytes, %v; want %d", tt.name, n, err, len(tt.whole))
		}
	}
}

// FuzzWholeRecords: no truncated record is read, and appending never makes the readable part shorter.
func FuzzWholeRecords(f *testing.F) {
	f.Add([]byte("{\"a\":1}\n{\"b\""), []byte(":2}\n"))
	f.Add([]byte("[1,\n"), []byte("2]"))
	f.Fuzz(func(t *testing.T, text, more []byte) {
		before, err := wholeRecords(bytes.NewReader(text), int64(len(text)))
		if err != nil || before < 0 || before > int64(len(text)) {
			t.Fatalf("%d of %d bytes, %v", before, len(text), err)
		}
		if lined, err := firstIsLine(bytes.NewReader(text), int64(len(text))); err != nil || !lined || before == 0 || text[before-1] != '\n' {
			return
		}
		grown := append(bytes.Clone(text), more...)
		if after, err := wholeRecords(bytes.NewReader(grown), int64(len(grown))); err != nil || after < before {
			t.Errorf("%d bytes were whole, and %d with more after them: %v", before, after, err)
		}
	})
}

// followed is a follower of a real file; the test controls its signals and its clock.
type followed struct {
	t       *testing.T
	path    string
	signals chan struct{}
	waits   chan time.Duration
	release chan time.Time
	got     chan string
	ended   chan error
	cancel  context.CancelFunc
}

func startFollowing(t *testing.T, text string, fail error) *followed {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	f := &followed{
		t: t, path: filepath.Join(t.TempDir(), "live.jsonl"), signals: make(chan struct{}), waits: make(chan time.Duration),
		release: make(chan time.Time), got: make(chan string), ended: make(chan error, 1), cancel: cancel,
	}
	f.append(text)
	clock := time.Unix(0, 0)
	run := &follower{
		path: f.path, changes: f.signals,
		// Every import takes a second.
		now: func() time.Time { clock = clock.Add(time.Second); return clock },
		after: func(d time.Duration) <-chan time.Time {
			f.waits <- d
			return f.release
		},
		importBytes: func(_ context.Context, in io.Reader) error {
			data, err := io.ReadAll(in)
			f.got <- string(data)
			return errors.Join(err, fail)
		},
	}
	go func() { f.ended <- run.run(ctx) }()
	return f
}

func (f *followed) append(text string) {
	f.t.Helper()
	file, err := os.OpenFile(f.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		f.t.Fatal(err)
	}
	_, err = file.WriteString(text)
	if err := errors.Join(err, file.Close()); err != nil {
		f.t.Fatal(err)
	}
}

// change appends text between a signal and the next step of the follower. It returns how long the follower
// wanted to wait.
func (f *followed) change(text string) time.Duration {
	f.t.Helper()
	f.signals <- struct{}{}
	wait := <-f.waits
	f.append(text)
	f.release <- time.Time{}
	return wait
}

func TestFollow(t *testing.T) {
	defer goleak.VerifyNone(t)
	f := startFollowing(t, "{\"a\":1}\n", nil)
	if got := <-f.got; got != "{\"a\":1}\n" {
		t.Errorf("first imported %q", got)
	}
	if wait := f.change("{\"b\""); wait != time.Second {
		t.Errorf("after an import that took a second it waits %s", wait)
	}
	// Only a part of a line was appended: nothing is imported, as the next import shows.
	if wait := f.change(":2}\n{"); wait != followQuiet {
		t.Errorf("after no import it waits %s", wait)
	}
	if got := <-f.got; got != "{\"a\":1}\n{\"b\":2}\n" {
		t.Errorf("then imported %q", got)
	}
	f.change("") // nothing new
	f.change("}\n")
	if got := <-f.got; got != "{\"a\":1}\n{\"b\":2}\n{}\n" {
		t.Errorf("at last imported %q", got)
	}
	f.cancel()
	if err := <-f.ended; err != nil {
		t.Errorf("interrupted: %v", err)
	}
}

func TestFollowFails(t *testing.T) {
	defer goleak.VerifyNone(t)
	refused := errors.New("refused")
	f := startFollowing(t, "{\"a\":1}\n", refused)
	<-f.got
	if err := <-f.ended; !errors.Is(err, refused) {
		t.Errorf("ended with %v", err)
	}
	f.cancel()
	gone := startFollowing(t, "{", nil)
	gone.signals <- struct{}{} // wait for the end of the first step
	<-gone.waits
	if err := os.Remove(gone.path); err != nil {
		t.Fatal(err)
	}
	gone.release <- time.Time{}
	if err := <-gone.ended; !errors.Is(err, os.ErrNotExist) {
		t.Errorf("ended with %v", err)
	}
	gone.cancel()
}

// TestWatchFile: a change is signalled whether the file is written or replaced.
func TestWatchFile(t *testing.T) {
	defer goleak.VerifyNone(t)
	path := filepath.Join(t.TempDir(), "live.jsonl")
	if err := os.WriteFile(path, []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	changes, stop, err := watchFile(path)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := os.WriteFile(path, []byte("12"), 0o600); err != nil {
		t.Fatal(err)
	}
	<-changes
	if err := os.WriteFile(path+".new", []byte("123"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
	<-changes
}
