package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/contextd/contextd/cmd/contextd/internal/daemon"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
)

func (p Program) newRepair() *cobra.Command {
	c := &client{program: p}
	dir, dry := "", false
	cmd := &cobra.Command{
		Use:   "repair",
		Short: "Make a data directory that is damaged work again",
		Long: `Read what is left in the files of a data directory that no daemon has open, and make a
store of it: of each session the events before the first that is lost, with the same
chain head, and of the records beside the log those that are whole. Everything is
verified. Where nothing is wrong, nothing is changed.

No file is deleted: those that were there are moved into a directory damaged-TIME of the
data directory, which holds all that was given up, and sessions that are deleted later.
Remove it when it is not needed any more. As much room as the sessions take is needed.

The exit code is 1 where something is lost, or may be, and with --dry-run, where something is wrong.
A lost key of an encrypted store, and a directory without any table or log file, are for
a backup: contextd restore BACKUP NEW.`,
		Example: `  contextd repair --data-dir /var/lib/contextd --dry-run
  contextd repair --data-dir /var/lib/contextd`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			settings, err := c.settings()
			if err != nil {
				return err
			}
			if dir == "" {
				return usageError{errors.New("--data-dir must be set")}
			}
			if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
				return noStore(dir)
			}
			encryption, err := daemon.Encryption(cmd.Context(), settings)
			if err != nil {
				return err
			}
			logger := slog.New(slog.NewTextHandler(p.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
			done, err := disklog.RepairDir(cmd.Context(), dir, disklog.Options{Logger: logger, Encryption: encryption}, dry, time.Now())
			if err != nil {
				return err
			}
			return c.writeRepair(cmd, dir, done, dry)
		},
	}
	cmd.Flags().StringVar(&dir, "data-dir", "", "the `directory` to repair")
	cmd.Flags().BoolVar(&dry, "dry-run", false, "change nothing and show what would be lost")
	c.output.bind(cmd.Flags())
	return cmd
}

// repairReport is the result of a repair, for --json.
type repairReport struct {
	Faults      []string     `json:"faults,omitempty"`
	Losses      []repairLoss `json:"losses,omitempty"`
	Whole       int          `json:"whole_sessions"`
	StrayEvents int          `json:"stray_events,omitempty"`
	Unnamed     bool         `json:"unnamed_sessions_may_be_lost,omitempty"`
	MovedTo     string       `json:"moved_to,omitempty"`
}

type repairLoss struct {
	SessionID string       `json:"session_id"`
	Gone      bool         `json:"gone,omitempty"`
	Kept      eventlog.Seq `json:"kept_events"`
	LostFrom  eventlog.Seq `json:"lost_from,omitempty"`
	LostTo    eventlog.Seq `json:"lost_to,omitempty"`
	Unsure    bool         `json:"newer_events_may_be_lost,omitempty"`
	Records   int          `json:"lost_records,omitempty"`
	Settings  bool         `json:"lost_settings,omitempty"`
	Why       string       `json:"why,omitempty"`
}

func (l repairLoss) events() string {
	switch {
	case l.Gone:
		return "all"
	case l.LostFrom > 0:
		return fmt.Sprintf("%d-%d", l.LostFrom, l.LostTo)
	case l.Unsure:
		return "perhaps the newest"
	default:
		return "-"
	}
}

func (c *client) writeRepair(cmd *cobra.Command, dir string, done *disklog.Repair, dry bool) error {
	report := repairReport{Faults: done.Faults, Whole: done.Whole, StrayEvents: done.Strays, Unnamed: done.Unnamed, MovedTo: done.Aside}
	for _, l := range done.Losses {
		report.Losses = append(report.Losses, repairLoss{l.Session, l.Gone, l.Kept, l.From, l.To, l.Unsure, l.Records, l.Settings, l.Why})
	}
	if c.output.structured() {
		if err := writeLines(cmd.OutOrStdout(), c.output, []repairReport{report}); err != nil {
			return err
		}
	} else if err := report.write(cmd, dir); err != nil {
		return err
	}
	const backup = "it may be in a backup: contextd restore BACKUP NEW, then contextd export --embedded NEW"
	switch n := len(report.Losses); {
	case n > 0:
		return fmt.Errorf("something of %s is lost; %s", counted(n, "session"), backup)
	case report.Unnamed || report.StrayEvents > 0:
		return errors.New("sessions of which no name is left may be lost; " + backup)
	case dry && len(report.Faults) > 0:
		return fmt.Errorf("%s needs a repair", dir)
	}
	return nil
}

func (r repairReport) write(cmd *cobra.Command, dir string) error {
	out := cmd.OutOrStdout()
	if len(r.Faults) == 0 {
		_, err := fmt.Fprintf(out, "nothing is wrong with %s: %s whole\n", dir, counted(r.Whole, "session"))
		return err
	}
	for _, fault := range r.Faults {
		if _, err := fmt.Fprintln(out, oneLine(fault, 0)); err != nil {
			return err
		}
	}
	if len(r.Losses) > 0 {
		fmt.Fprintln(out)
		t := newTable(cmd, "SESSION", "KEPT", "LOST EVENTS", "LOST RECORDS", "LABELS AND SETTINGS", "WHY")
		for _, l := range r.Losses {
			settings := "kept"
			if l.Settings {
				settings = "lost"
			}
			t.row(l.SessionID, l.Kept, l.events(), l.Records, settings, dash(oneLine(l.Why, 0)))
		}
		if err := t.flush(); err != nil {
			return err
		}
	}
	if r.Whole == 0 && len(r.Losses) == 0 && r.StrayEvents == 0 && !r.Unnamed && r.MovedTo == "" {
		return nil // nothing was checked yet
	}
	_, err := fmt.Fprintf(out, "\n%s with losses, %d whole; %s of no session\n", counted(len(r.Losses), "session"), r.Whole, counted(r.StrayEvents, "event"))
	if r.Unnamed {
		fmt.Fprintln(out, "there may have been other sessions, of which nothing is left that names them")
	}
	if r.MovedTo != "" {
		fmt.Fprintf(out, "what was there is in %s\n", oneLine(r.MovedTo, 0))
	}
	return err
}
