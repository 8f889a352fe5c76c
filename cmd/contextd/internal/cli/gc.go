package cli

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcmetadata "google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// retention decides which sessions are kept.
type retention struct {
	// olderThan is the time since the last append after which a session is deleted; negative if age does not
	// matter.
	olderThan time.Duration
	// maxBytes is how much all remaining sessions may hold. Beyond it, the sessions with the oldest last
	// append are deleted first.
	maxBytes uint64
}

// leaving is a session to be deleted.
type leaving struct {
	*contextdv1.Session
	why string
}

// Why a session is deleted.
const (
	whyAge  = "age"
	whySize = "size"
)

// earliest is before there were sessions: one that is dated earlier was last appended to under a clock that was wrong.
var earliest = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// dayAhead is how much later than now a session may be dated without a note.
const dayAhead = 24 * time.Hour

func isTooEarly(s *contextdv1.Session) bool { return s.GetUpdateTime().AsTime().Before(earliest) }

// misdated are notes of sessions whose dates are wrong beyond doubt.
func misdated(all []*contextdv1.Session, now time.Time) (notes []string) {
	early, late := 0, 0
	for _, s := range all {
		switch {
		case s.GetDamaged():
		case isTooEarly(s):
			early++
		case s.GetUpdateTime().AsTime().Sub(now) > dayAhead:
			late++
		}
	}
	if early > 0 {
		notes = append(notes, fmt.Sprintf("%s dated before %d, by a wrong clock: not deleted until something is appended, which dates them right", counted(early, "session"), earliest.Year()))
	}
	if late > 0 {
		notes = append(notes, fmt.Sprintf("%s dated in the future, by a wrong clock: of no age until then, and deleted last for their size; sessions list --sort updated shows them first", counted(late, "session")))
	}
	return notes
}

// plan lists the sessions to be deleted, in that order. Sessions that are damaged or dated too early are kept, since their
// age is not known.
func (r retention) plan(all []*contextdv1.Session, now time.Time) (out []leaving) {
	all = slices.DeleteFunc(slices.Clone(all), func(s *contextdv1.Session) bool { return s.GetDamaged() || isTooEarly(s) })
	slices.SortFunc(all, func(a, b *contextdv1.Session) int {
		return cmp.Or(a.GetUpdateTime().AsTime().Compare(b.GetUpdateTime().AsTime()), strings.Compare(a.GetSessionId(), b.GetSessionId()))
	})
	var bytes uint64
	for _, s := range all {
		bytes += s.GetLogBytes()
	}
	for _, s := range all {
		switch age := now.Sub(s.GetUpdateTime().AsTime()); {
		case r.olderThan >= 0 && age >= r.olderThan:
			out = append(out, leaving{s, whyAge})
		case bytes > r.maxBytes:
			out = append(out, leaving{s, whySize})
		default:
			return out
		}
		bytes -= s.GetLogBytes()
	}
	return out
}

func newGC(c *client) *cobra.Command {
	keep := retention{olderThan: -1, maxBytes: math.MaxUint64}
	list := &contextdv1.ListSessionsRequest{}
	dry := false
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Delete sessions by age and size",
		Long: `Delete the sessions that nothing was appended to for a time, and then, those that were
not appended to for longest first, as many as it takes for the rest to hold no more than
a number of bytes. With --label only sessions with these labels count and go.

The age is by the clock of this machine or that of the daemon, whichever is earlier.
--dry-run shows what would go. The bytes are those of the logs: what a fork shares is
freed with the last session that has it. A session that is appended to meanwhile stays,
and so does one that is damaged, or dated before 2025, which a wrong clock did.`,
		Example: `  contextd gc --older-than 30d --dry-run
  contextd gc --older-than 30d --max-bytes 10GiB --label agent=coder`,
		Args: cobra.NoArgs,
	}
	cmd.PreRun = func(*cobra.Command, []string) { c.reads = dry }
	cmd.RunE = c.run(func(cmd *cobra.Command, api api, _ []string) error {
		if !cmd.Flags().Changed("older-than") && !cmd.Flags().Changed("max-bytes") {
			return usageError{errors.New("--older-than or --max-bytes must be set")}
		}
		var all []*contextdv1.Session
		var header grpcmetadata.MD
		err := eachSession(cmd.Context(), api, list, func(s *contextdv1.Session) error {
			all = append(all, s)
			return nil
		}, grpc.Header(&header))
		if err != nil {
			return err
		}
		now, apart := agreed(time.Now(), header)
		if apart > time.Minute {
			fmt.Fprintf(cmd.ErrOrStderr(), "the clocks of this machine and of the daemon are %s apart: the earlier one counts\n", apart.Round(time.Second))
		}
		for _, note := range misdated(all, now) {
			fmt.Fprintln(cmd.ErrOrStderr(), note)
		}
		return c.collect(cmd, api, keep.plan(all, now), len(all), dry)
	})
	f := cmd.Flags()
	f.Var((*ageValue)(&keep.olderThan), "older-than", "delete what nothing was appended to for this `time`, such as 30d or 12h")
	f.Var(config.SizeValue(&keep.maxBytes), "max-bytes", "delete the oldest until the rest holds at most this, such as 10GiB")
	bindLabels(f, &list.Labels, "only sessions with this label")
	f.BoolVar(&dry, "dry-run", false, "delete nothing and show what would be deleted")
	f.Lookup("older-than").DefValue, f.Lookup("max-bytes").DefValue = "", ""
	return cmd
}

// agreed is the earlier of the time here and the daemon's, which dates what is appended: by both a session must be old.
func agreed(here time.Time, header grpcmetadata.MD) (now time.Time, apart time.Duration) {
	for _, text := range header.Get(wire.ClockHeader) {
		if there, err := time.Parse(time.RFC3339Nano, text); err == nil {
			apart = here.Sub(there).Abs()
			if there.Before(here) {
				here = there
			}
		}
	}
	return here, apart
}

// collect deletes the sessions of a plan, or with dry only lists them, and writes how many they are.
func (c *client) collect(cmd *cobra.Command, api api, plan []leaving, of int, dry bool) error {
	var t *table
	if !c.output.structured() {
		t = newTable(cmd, "SESSION", "UPDATED", "BYTES", "WHY")
	}
	gone, bytes := 0, uint64(0)
	var failed error
	for _, s := range plan {
		if !dry {
			var why string
			if why, failed = deleteUnchanged(cmd, api, s.Session); failed != nil {
				break
			}
			if why != "" {
				fmt.Fprintf(cmd.ErrOrStderr(), "%s stays: %s\n", oneLine(s.GetSessionId(), 0), why)
				continue
			}
		}
		gone++
		bytes += s.GetLogBytes()
		if t != nil {
			t.row(s.GetSessionId(), when(s.GetUpdateTime()), s.GetLogBytes(), s.why)
		} else if failed = c.output.write(cmd.OutOrStdout(), s.Session); failed != nil {
			break
		}
	}
	// Also after an error, report what was deleted.
	if t != nil {
		failed = errors.Join(failed, t.flush())
	}
	verb := "deleted"
	if dry {
		verb = "would be deleted"
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%d of %s, %s, %s\n", gone, counted(of, "session"), counted(bytes, "byte"), verb)
	return failed
}

// deleteUnchanged deletes a session if it is still as it was listed; otherwise it returns why it is kept.
func deleteUnchanged(cmd *cobra.Command, api api, listed *contextdv1.Session) (stays string, err error) {
	now, err := api.GetSession(cmd.Context(), &contextdv1.GetSessionRequest{SessionId: listed.GetSessionId()})
	switch {
	case isNotFound(err):
		return "it was deleted meanwhile", nil
	case status.Code(err) == codes.DataLoss:
		return "it is damaged", nil
	case err != nil:
		return "", err
	case now.GetSession().GetIncarnation() != listed.GetIncarnation() || !proto.Equal(now.GetSession().GetUpdateTime(), listed.GetUpdateTime()):
		return "it was used meanwhile", nil
	}
	// Appends and new sessions of the same id may come between GetSession and DeleteSession, so name what was
	// seen.
	_, err = api.DeleteSession(cmd.Context(), &contextdv1.DeleteSessionRequest{
		SessionId: listed.GetSessionId(), ExpectedHead: proto.Uint64(listed.GetHeadSeq()),
		Known: &contextdv1.LogMark{
			Incarnation: listed.GetIncarnation(), HeadSeq: listed.GetHeadSeq(), ChainHead: listed.GetChainHead(),
		},
	})
	switch reason(status.Convert(err)) {
	case apierr.ReasonHeadMismatch, apierr.ReasonLogLost:
		return "it was used meanwhile", nil
	}
	if isNotFound(err) {
		return "it was deleted meanwhile", nil
	}
	return "", err
}

// ageValue is a flag for a duration in Go's notation, or in days such as 30d.
type ageValue time.Duration

// Set implements pflag.Value.
func (v *ageValue) Set(text string) error {
	var age time.Duration
	var err error
	if days, found := strings.CutSuffix(text, "d"); found {
		var n uint64
		n, err = strconv.ParseUint(days, 10, 16)
		age = time.Duration(n) * 24 * time.Hour
	} else {
		age, err = time.ParseDuration(text)
	}
	if err != nil || age < 0 {
		return errors.New("must be a time such as 30d, 12h or 90m")
	}
	*v = ageValue(age)
	return nil
}

// String implements pflag.Value.
func (v *ageValue) String() string { return time.Duration(*v).String() }

// Type implements pflag.Value.
func (*ageValue) Type() string { return "time" }
