package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/disklog/backup"
)

func newVerify(c *client) *cobra.Command {
	witnessFile := ""
	cmd := &cobra.Command{
		Use:   "verify [SESSION...]",
		Short: "Check the logs and rebuild every recorded projection",
		Long: `Check the logs of all sessions, or of some, and rebuild every recorded projection of
them. The exit code is 0 where nothing has changed, and 1 otherwise.

With --embedded the directory is opened without a daemon: the hash chain of every
log is computed again, and everything that is stored with an event is compared
with what follows from the log. A daemon that runs has the directory to itself: it
is asked to read every event, which it checks for damage, not for forgery.

Each log's chain head says what the log held. Keep the output of --json where who
can write the directory cannot, and give it back with --witness: then a log that was
cut, forged or removed since is detected as well.`,
		Example: `  contextd verify --embedded /var/lib/contextd
  contextd verify my-session
  contextd verify --json > heads.jsonl
  contextd verify --witness heads.jsonl`,
	}
	overAPI := c.run(func(cmd *cobra.Command, api api, sessions []string) error {
		return c.audit(cmd, remoteSource{api}, sessions, witnessFile)
	})
	cmd.RunE = func(cmd *cobra.Command, sessions []string) error {
		if c.embedded == "" {
			return overAPI(cmd, sessions)
		}
		return c.verifyDirectory(cmd, sessions, witnessFile)
	}
	sessionsFirst(cmd, cobra.ArbitraryArgs)
	cmd.Flags().StringVar(&witnessFile, "witness", "", "`file` with what --json wrote before, - for stdin: what those logs held must still be there")
	return cmd
}

// audit verifies the named sessions, or all, and prints the findings.
func (c *client) audit(cmd *cobra.Command, source auditSource, sessions []string, witnessFile string) error {
	known, err := readWitness(cmd, witnessFile)
	if err != nil {
		return usageError{fmt.Errorf("--witness: %w", err)}
	}
	all, err := source.sessions(cmd.Context(), sessions)
	if err != nil {
		return err
	}
	a := auditor{source: source, progress: newProgress(cmd), known: known}
	found, err := a.run(cmd.Context(), all, len(sessions) == 0)
	a.progress.close()
	if err != nil {
		return err
	}
	return c.writeAudit(cmd, found)
}

// verifyDirectory verifies a backup's files, and the sessions of a data directory.
func (c *client) verifyDirectory(cmd *cobra.Command, sessions []string, witnessFile string) (err error) {
	faults, err := backup.Faults(cmd.Context(), vfs.Default, c.embedded)
	if err != nil {
		return err
	}
	if len(faults) > 0 {
		return c.writeStoreFaults(cmd, faults, c.embedded+" is not what was backed up")
	}
	local, err := c.openLocal(cmd.Context())
	if missing, ok := errors.AsType[*disklog.MissingError](err); ok {
		return c.writeStoreFaults(cmd, missing.Missing, missing.Dir+" holds less than the event log wrote there; nothing in it was changed or checked")
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, local.close()) }()
	err = c.audit(cmd, local, sessions, witnessFile)
	if tables := local.store.DamagedTables(); len(sessions) == 0 && len(tables) > 0 {
		faults := c.writeStoreFaults(cmd, tables, c.embedded+" is damaged: there may be sessions that are not listed; see contextd repair")
		if err == nil {
			err = faults
		}
	}
	return err
}

// auditSource gives access to the sessions to verify.
type auditSource interface {
	// sessions returns the ids of all sessions, or those of names, which must exist.
	sessions(ctx context.Context, names []string) ([]string, error)
	// life is the session's incarnation, "" if it does not exist. Where sessions cannot be deleted meanwhile,
	// or the incarnation is not known, it is a constant other than "".
	life(ctx context.Context, id string) (string, error)
	// log reads a session's whole log, up to the first fault.
	log(ctx context.Context, id string) (auditedLog, error)
	// chain is the hash chain's value after an event; empty if there is none.
	chain(ctx context.Context, id string, seq uint64) (string, error)
	// projections returns the ids of the recorded projections, oldest first.
	projections(ctx context.Context, id string) ([]string, error)
	// replay rebuilds a projection and returns how it differs from the recorded one; "" if it does not.
	replay(ctx context.Context, id, projection string) (difference string, err error)
}

// auditedLog is the result of reading a log.
type auditedLog struct {
	events uint64
	chain  string
	how    string // one of the constants below
}

// How a log was checked.
const (
	logChained = "chained" // every record's hash was checked against the chain
	logRead    = "read"    // every event was read, which finds damage and gaps
	logGone    = "gone"    // the session does not exist
)

// auditor verifies sessions against the logs and against a witness.
type auditor struct {
	source   auditSource
	progress *progress
	known    []witness
}

// run verifies sessions. With all, sessions of the witness that are not among ids are verified too, as
// missing.
func (a *auditor) run(ctx context.Context, ids []string, all bool) ([]sessionAudit, error) {
	if all {
		listed := map[string]bool{}
		for _, id := range ids {
			listed[id] = true
		}
		for _, w := range a.known {
			if !listed[w.SessionID] {
				listed[w.SessionID] = true
				ids = append(ids, w.SessionID)
			}
		}
	}
	a.progress.expect(len(ids))
	out := make([]sessionAudit, 0, len(ids))
	for _, id := range ids {
		a.progress.at(id)
		found, err := a.session(ctx, id)
		if err != nil {
			return nil, err
		}
		a.progress.done()
		out = append(out, found)
	}
	return out, nil
}

// lives is how often to retry a session that is deleted while it is verified.
const lives = 3

// session verifies a session. Faults are discarded if the session was deleted or replaced meanwhile.
func (a *auditor) session(ctx context.Context, id string) (sessionAudit, error) {
	for range lives {
		before, err := a.source.life(ctx, id)
		if err != nil {
			return sessionAudit{}, err
		}
		out, err := a.look(ctx, id)
		if err != nil || len(out.Faults) == 0 {
			return out, err
		}
		after, err := a.source.life(ctx, id)
		if err != nil || after == before && (after != "" || out.Log == logGone) {
			return out, err
		}
	}
	return sessionAudit{SessionID: id, Log: logGone}, nil
}

// look verifies a session once.
func (a *auditor) look(ctx context.Context, id string) (sessionAudit, error) {
	out := sessionAudit{SessionID: id}
	var known []witness
	for _, w := range a.known {
		if w.SessionID == id && w.ChainHead != "" {
			known = append(known, w)
		}
	}
	found, err := a.source.log(ctx, id)
	out.Events, out.ChainHead, out.Log = found.events, found.chain, found.how
	if isNotFound(err) {
		if len(known) > 0 {
			err = out.fault(faultOfWitness, "", err)
		} else {
			err = nil // it was deleted after it was listed
		}
		out.Log = logGone
		return out, err
	}
	if err := out.fault(faultOfLog, "", err); err != nil {
		return out, err
	}
	for _, w := range known {
		now, err := a.source.chain(ctx, id, w.Events)
		if err == nil && now != w.ChainHead {
			err = fmt.Errorf("the chain after event %d is %s; the witness has %s", w.Events, dash(now), w.ChainHead)
		}
		if err := out.fault(faultOfWitness, "", err); err != nil {
			return out, err
		}
	}
	err = a.replayAll(ctx, &out)
	return out, err
}

// replayAll rebuilds every recorded projection of a session and compares it.
func (a *auditor) replayAll(ctx context.Context, out *sessionAudit) error {
	projections, err := a.source.projections(ctx, out.SessionID)
	if err := out.fault(faultOfRecords, "", err); err != nil {
		return err
	}
	a.progress.expect(len(projections))
	for _, p := range projections {
		difference, err := a.source.replay(ctx, out.SessionID, p)
		if err == nil && difference != "" {
			out.Faults = append(out.Faults, auditFault{Kind: faultOfProjection, ProjectionID: p, Text: difference, Rebuilt: true})
		}
		if err := out.fault(faultOfProjection, p, err); err != nil {
			return err
		}
		out.Projections++
		a.progress.done()
	}
	return nil
}

// fault adds an error to the session's faults. Errors that are not about the session, such as an unreachable
// daemon, are returned instead.
func (s *sessionAudit) fault(kind, projection string, err error) error {
	if err == nil {
		return nil
	}
	if endsAudit(err) {
		return err
	}
	text := err.Error()
	if st, ok := statusOf(err); ok {
		text = statusText(st)
	}
	if corrupt, ok := errors.AsType[*eventlog.CorruptError](err); ok {
		text = (&eventlog.CorruptError{What: corrupt.What, Reason: corrupt.Reason}).Error()
	}
	// A damaged log makes reading the records fail with the same error: report it once.
	if slices.ContainsFunc(s.Faults, func(f auditFault) bool { return f.Text == text }) {
		return nil
	}
	s.Faults = append(s.Faults, auditFault{Kind: kind, ProjectionID: projection, Text: text})
	return nil
}

// endsAudit reports whether no session can be verified after this error.
func endsAudit(err error) bool {
	if st, ok := statusOf(err); ok {
		switch st.Code() {
		case codes.Unavailable, codes.Canceled, codes.DeadlineExceeded, codes.Unimplemented, codes.InvalidArgument, codes.ResourceExhausted:
			return true
		default:
			return false
		}
	}
	var failed *eventlog.UnavailableError
	return errors.As(err, &failed) || errors.Is(err, eventlog.ErrClosed) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, io.ErrClosedPipe)
}

func isNotFound(err error) bool {
	st, ok := statusOf(err)
	return eventlog.IsMissing(err, "session") || ok && reason(st) == apierr.ReasonSessionNotFound
}
