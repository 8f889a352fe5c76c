package cli

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
)

// progress shows how far a command is, to a person at a terminal. It shows nothing to
// anybody else, and nothing of it stays. That a terminal cannot be written to is no
// fault of the command.
type progress struct {
	bar   *progressbar.ProgressBar // nil for nobody
	total int
}

// newProgress shows progress on stderr if that is a terminal, and the command is not to be quiet.
func newProgress(cmd *cobra.Command) *progress {
	w := cmd.ErrOrStderr()
	if os.Getenv("TERM") == "dumb" || isQuiet(cmd) || terminalOf(w) == nil {
		return &progress{}
	}
	return showProgress(w, 0, 100*time.Millisecond)
}

// newByteProgress is newProgress for bytes, of which there may be any number until some are
// expected.
func newByteProgress(cmd *cobra.Command) *progress {
	p := newProgress(cmd)
	if p.bar != nil {
		p = showProgress(cmd.ErrOrStderr(), -1, 100*time.Millisecond, progressbar.OptionShowBytes(true), progressbar.OptionSetSpinnerChangeInterval(0))
	}
	return p
}

// showProgress draws at most once in so long a time. A maximum of -1 is not known.
func showProgress(w io.Writer, maximum int, every time.Duration, more ...progressbar.Option) *progress {
	return &progress{bar: progressbar.NewOptions(maximum, append(more,
		progressbar.OptionSetWriter(w),
		progressbar.OptionShowCount(),
		progressbar.OptionSetWidth(30),
		progressbar.OptionThrottle(every),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetElapsedTime(false),
	)...)}
}

// expect adds to what there is to do.
func (p *progress) expect(n int) {
	if p.bar != nil {
		p.total += n
		p.bar.ChangeMax(p.total)
	}
}

// at says what is being done: at once, as long as nothing is done.
func (p *progress) at(what string) {
	if p.bar != nil {
		p.bar.Describe(fit(what, 30))
		_ = p.bar.RenderBlank()
	}
}

// done counts one thing as done.
func (p *progress) done() { p.add(1) }

func (p *progress) add(n int) {
	if p.bar != nil {
		_ = p.bar.Add(n)
	}
}

// Write counts bytes as done.
func (p *progress) Write(b []byte) (int, error) {
	p.add(len(b))
	return len(b), nil
}

// close takes the bar away.
func (p *progress) close() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
