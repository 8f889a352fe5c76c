package cli

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
)

// progress shows a bar to a person at a terminal, and nothing elsewhere. The bar is removed at the end.
// Errors of writing to the terminal are ignored.
type progress struct {
	bar   *progressbar.ProgressBar // nil: show nothing
	total int
}

// newProgress shows progress on stderr if that is a terminal and --quiet is not set.
func newProgress(cmd *cobra.Command) *progress {
	w := cmd.ErrOrStderr()
	if os.Getenv("TERM") == "dumb" || isQuiet(cmd) || terminalOf(w) == nil {
		return &progress{}
	}
	return showProgress(w, 0, 100*time.Millisecond)
}

// newByteProgress is newProgress for bytes. The total is unknown until expect is called.
func newByteProgress(cmd *cobra.Command) *progress {
	p := newProgress(cmd)
	if p.bar != nil {
		p = showProgress(cmd.ErrOrStderr(), -1, 100*time.Millisecond, progressbar.OptionShowBytes(true), progressbar.OptionSetSpinnerChangeInterval(0))
	}
	return p
}

// showProgress redraws at most once per interval. A maximum of -1 is unknown.
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

// expect adds to the total.
func (p *progress) expect(n int) {
	if p.bar != nil {
		p.total += n
		p.bar.ChangeMax(p.total)
	}
}

// at shows what is being done. It is drawn at once, even if nothing is done yet.
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

// close removes the bar.
func (p *progress) close() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
