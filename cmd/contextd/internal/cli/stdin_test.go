package cli

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

// silent is an input that blocks forever. Reading it interrupts the command.
type silent struct {
	interrupt context.CancelFunc
	released  <-chan struct{}
}

func (s silent) Read([]byte) (int, error) {
	s.interrupt()
	<-s.released
	return 0, io.EOF
}

func TestInterruptedWhileStdinSaysNothing(t *testing.T) {
	dir := t.TempDir()
	for _, command := range []string{
		"tokens",
		"convert - OUT --to codex",
		"import - --session s --embedded DATA",
		"append s --embedded DATA",
		"append s --format anthropic --embedded DATA",
		"compact s --summary-file - --embedded DATA",
		"eval -",
	} {
		t.Run(command, func(t *testing.T) {
			ctx, interrupt := context.WithCancel(t.Context())
			defer interrupt()
			var diagnostics strings.Builder
			p := Program{
				Stdin: silent{interrupt, t.Context().Done()}, Stdout: io.Discard, Stderr: &diagnostics,
				LookupEnv: func(string) (string, bool) { return "", false },
			}
			args := strings.Fields(strings.NewReplacer("OUT", filepath.Join(dir, "out.jsonl"), "DATA", filepath.Join(dir, "data")).Replace(command))
			if code := p.Run(ctx, args); code == ExitOK || !strings.Contains(diagnostics.String(), "interrupted") {
				t.Errorf("exit code %d: %s", code, &diagnostics)
			}
		})
	}
}

func TestInterruptibleReads(t *testing.T) {
	content := []byte(strings.Repeat("all of it", 50_000))
	for name, in := range map[string]io.Reader{
		"whole":         strings.NewReader(string(content)),
		"byte by byte":  iotest.OneByteReader(strings.NewReader(string(content[:1000]))),
		"end with data": iotest.DataErrReader(strings.NewReader(string(content))),
	} {
		t.Run(name, func(t *testing.T) {
			want := content
			if name == "byte by byte" {
				want = content[:1000]
			}
			if err := iotest.TestReader(interruptible(t.Context(), in), want); err != nil {
				t.Error(err)
			}
		})
	}
}
