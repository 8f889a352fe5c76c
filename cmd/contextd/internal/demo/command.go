package demo

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// defaultMaxTokens is so small that the bundled session fills it several times.
const defaultMaxTokens = 16_000

// At a terminal there is a pause between turns: terminalDelay, or shorter so that all pauses take at most
// terminalTime.
const (
	terminalDelay = 150 * time.Millisecond
	terminalTime  = 20 * time.Second
)

// options are the flags.
type options struct {
	maxTokens uint64
	session   string
	delay     time.Duration
	delaySet  bool
	json      bool
	keep      bool
}

// NewCommand returns the command "demo".
func NewCommand() *cobra.Command {
	o := options{maxTokens: defaultMaxTokens}
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Replay a recorded session through a daemon under a tight budget",
		Long: `Replay a recorded session through a daemon under a tight budget.

The daemon runs in this process, with its disk store in a temporary directory
and its API on a loopback port. The session is appended turn by turn; before
each model call the context is assembled, checked and drawn. Exits with 1 if a
check fails.`,
		Example: `  contextd demo
  contextd demo --max-tokens 32k --json
  contextd log my-session --json > session.jsonl && contextd demo --session session.jsonl`,
		Args: cobra.NoArgs,
	}
	f := cmd.Flags()
	f.Func("max-tokens", fmt.Sprintf("budget in `tokens`, such as 32000 or 32k; %d if not given", defaultMaxTokens), func(text string) (err error) {
		o.maxTokens, err = config.ParseTokens(text)
		return err
	})
	f.StringVar(&o.session, "session", "", "replay this `file` of JSON lines, as \"contextd log --json\" writes them, instead of the bundled session")
	f.DurationVar(&o.delay, "delay", 0, "pause between turns; on a terminal "+terminalDelay.String()+" unless it is set")
	f.BoolVar(&o.json, "json", false, "write one JSON object per turn and one with the totals")
	f.BoolVar(&o.keep, "keep", false, "keep the data directory and say where it is")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		o.delaySet = cmd.Flags().Changed("delay")
		return run(cmd.Context(), o, terminalOf(cmd.OutOrStdout()), cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	return cmd
}

// errChecks is returned where the replay finished but a check failed.
var errChecks = errors.New("the demo's checks failed; see above")

func run(ctx context.Context, o options, terminal *os.File, out, diagnostics io.Writer) (err error) {
	events, err := loadSession(o.session)
	if err != nil {
		return err
	}
	if terminal != nil && !o.delaySet && !o.json {
		o.delay = min(terminalDelay, terminalTime/time.Duration(len(events)))
	}
	dir, err := os.MkdirTemp("", "contextd-demo-")
	if err != nil {
		return err
	}
	defer func() {
		if !o.keep {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	d, err := start(ctx, dir, diagnostics)
	if err != nil {
		return err
	}
	totals, err := replayTo(ctx, o, d, events, newWriter(o, terminal, out))
	if err := errors.Join(err, d.close()); err != nil {
		return err
	}
	if o.keep {
		fmt.Fprintf(diagnostics, "kept; look at it with: contextd assemble %s --embedded %s/data --max-tokens %d --explain\n", sessionID, dir, o.maxTokens)
	}
	if len(totals.Problems) > 0 {
		return errChecks
	}
	return nil
}

func loadSession(name string) ([]*contextdv1.Event, error) {
	if name == "" {
		return readSession(bytes.NewReader(bundled))
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	events, err := readSession(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return events, nil
}

func replayTo(ctx context.Context, o options, d *running, events []*contextdv1.Event, w writer) (*Totals, error) {
	watch, err := newWatch(ctx, contextdv1.NewCompactionServiceClient(d.conn))
	if err != nil {
		return nil, err
	}
	defer watch.close()
	r := &replay{
		api:    contextdv1.NewContextServiceClient(d.conn),
		watch:  watch,
		budget: &contextdv1.Budget{MaxTokens: o.maxTokens},
		report: func(t *Turn) error {
			if t.Turn > 1 {
				if err := pause(ctx, o.delay); err != nil {
					return err
				}
			}
			return w.turn(t)
		},
	}
	totals, err := r.run(ctx, events)
	if err != nil {
		return nil, err
	}
	return totals, w.totals(totals)
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// writer shows a replay.
type writer interface {
	turn(*Turn) error
	totals(*Totals) error
}

func newWriter(o options, terminal *os.File, out io.Writer) writer {
	if o.json {
		return jsonWriter{json.NewEncoder(out)}
	}
	p := &picture{w: out, width: plainWidth}
	if terminal != nil {
		p.colour = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		if width, _, err := term.GetSize(int(terminal.Fd())); err == nil && width > 0 {
			p.width = min(max(width, leastWidth), mostWidth)
		}
	}
	return p
}

// terminalOf returns the terminal that w writes to, or nil.
func terminalOf(w io.Writer) *os.File {
	if f, ok := w.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		return f
	}
	return nil
}

type jsonWriter struct{ *json.Encoder }

func (w jsonWriter) turn(t *Turn) error { return w.Encode(t) }

func (w jsonWriter) totals(t *Totals) error {
	return w.Encode(struct {
		Totals *Totals `json:"totals"`
	}{t})
}
