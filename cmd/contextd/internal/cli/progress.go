package cli

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress shows how far a command is, to a person at a terminal. It shows nothing to
// anybody else, and nothing of it stays. That a terminal cannot be written to is no
// fault of the command.
type progress struct {
	bar   *progressbar.ProgressBar // nil for nobody
	total int
}

// newProgress shows progress on w if that is a terminal.
func newProgress(w io.Writer) *progress {
	if os.Getenv("TERM") == "dumb" || terminalOf(w) == nil {
		return &progress{}
	}
	return showProgress(w, 100*time.Millisecond)
}

// showProgress draws at most once in so long a time.
func showProgress(w io.Writer, every time.Duration) *progress {
	return &progress{bar: progressbar.NewOptions(0,
		progressbar.OptionSetWriter(w),
		progressbar.OptionShowCount(),
		progressbar.OptionSetWidth(30),
		progressbar.OptionThrottle(every),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetElapsedTime(false),
	)}
}

// expect adds to what there is to do.
func (p *progress) expect(n int) {
	if p.bar != nil {
		p.total += n
		p.bar.ChangeMax(p.total)
	}
}

// at says what is being done.
func (p *progress) at(what string) {
	if p.bar != nil {
		p.bar.Describe(fit(what, 30))
	}
}

// done counts one thing as done.
func (p *progress) done() {
	if p.bar != nil {
		_ = p.bar.Add(1)
	}
}

// close takes the bar away.
func (p *progress) close() {
	if p.bar != nil {
		_ = p.bar.Clear()
	}
}
