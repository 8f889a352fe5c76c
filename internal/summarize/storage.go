package summarize

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/contextd/contextd/internal/artifact"
	eventlog "github.com/contextd/contextd/internal/log"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// ArtifactKind is the kind of artifacts with summaries. They are stored at the last event of their span.
const ArtifactKind = "summary"

// SummaryID returns the id of a summarizer's summary of a span. asked identifies what else was asked of the
// summarizer, such as a size.
func SummaryID(from, to eventlog.Seq, summarizer, asked string) string {
	return fmt.Sprintf("s%d-%s", to, workKey(from, to, summarizer, asked, 4))
}

// workKey hashes what identifies one piece of work, into n bytes of hexadecimal.
func workKey(from, to eventlog.Seq, summarizer, asked string, n int) string {
	h := sha256.New()
	var fixed []byte
	for _, v := range []uint64{Version, uint64(from), uint64(to), uint64(len(summarizer))} {
		fixed = binary.BigEndian.AppendUint64(fixed, v)
	}
	h.Write(fixed)
	h.Write([]byte(summarizer))
	h.Write([]byte(asked))
	return hex.EncodeToString(h.Sum(nil)[:n])
}

// storedVersion is the version of the messages of contextd.storage.v1 that are written.
const storedVersion = 1

// Put stores a summary next to the log, durable on return. It replaces one with the same id and span. of, if not 0,
// is the incarnation of the summary's session.
func Put(ctx context.Context, store eventlog.Artifacts, sessionID string, of eventlog.Incarnation, s Summary) error {
	a, err := s.artifact(of)
	if err != nil {
		return err
	}
	return store.PutArtifacts(ctx, sessionID, a)
}

func (s Summary) artifact(of eventlog.Incarnation) (eventlog.Artifact, error) {
	return artifact.Encode(eventlog.Artifact{Kind: ArtifactKind, Seq: s.To, ID: s.ID, Of: of}, s.stored())
}

func (s Summary) stored() *storagev1.Summary {
	return &storagev1.Summary{
		Version: storedVersion, From: uint64(s.From), To: uint64(s.To), Text: s.Text, Ledger: s.Ledger, Index: s.Index,
		Summarizer: s.Summarizer, Model: s.Model, Instructions: s.Instructions, Extends: s.Extends,
		InputTokens: s.InputTokens, OutputTokens: s.OutputTokens,
		TimeSeconds: s.Time.Unix(), TimeNanos: int32(s.Time.Nanosecond()), Rules: s.Version,
	}
}

// NewestFirst yields the summaries of a session, newest first: those after the one with the id whose span ends at
// event after, or all if after is 0. For one that cannot be read it yields an *eventlog.CorruptError or
// *artifact.VersionError.
func NewestFirst(ctx context.Context, store eventlog.Artifacts, sessionID string, after eventlog.Seq, id string) iter.Seq2[Summary, error] {
	return func(yield func(Summary, error) bool) {
		q := eventlog.ArtifactQuery{Kind: ArtifactKind, Reverse: true}
		if after > 0 {
			q.After = &eventlog.Artifact{Seq: after, ID: id}
		}
		for a, err := range store.Artifacts(ctx, sessionID, q) {
			var s Summary
			if err == nil {
				s, err = decodeSummary(a)
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// Get returns the summary with an id, or *eventlog.NotFoundError. It reads nothing else.
func Get(ctx context.Context, store eventlog.Artifacts, sessionID, id string) (Summary, error) {
	to, ok := endInID(id)
	if ok {
		s, found, err := get(ctx, store, sessionID, to, id)
		if found || err != nil {
			return s, err
		}
	}
	return Summary{}, &eventlog.NotFoundError{Kind: "summary", Name: id}
}

// endInID reads the last event of the span from a summary's id (see SummaryID).
func endInID(id string) (eventlog.Seq, bool) {
	end, _, ok := strings.Cut(strings.TrimPrefix(id, "s"), "-")
	to, err := strconv.ParseUint(end, 10, 64)
	return eventlog.Seq(to), ok && err == nil && to > 0
}

// get returns one summary, or false if there is none.
func get(ctx context.Context, store eventlog.Artifacts, sessionID string, to eventlog.Seq, id string) (Summary, bool, error) {
	a, err := store.Artifact(ctx, sessionID, ArtifactKind, to, id)
	if ok, err := exists(err); !ok {
		return Summary{}, false, err
	}
	s, err := decodeSummary(a)
	return s, err == nil, err
}

// exists distinguishes an artifact that is not there from one that cannot be read.
func exists(err error) (bool, error) {
	var missing *eventlog.NotFoundError
	if errors.As(err, &missing) && missing.Kind == "artifact" {
		return false, nil
	}
	return err == nil, err
}

// decodeSummary decodes a summary. The error is *artifact.VersionError or *eventlog.CorruptError.
func decodeSummary(a eventlog.Artifact) (Summary, error) {
	m := &storagev1.Summary{}
	if err := artifact.Decode(a, m, storedVersion); err != nil {
		return Summary{}, err
	}
	s := Summary{
		ID: a.ID, From: eventlog.Seq(m.GetFrom()), To: eventlog.Seq(m.GetTo()), Text: m.GetText(), Ledger: m.GetLedger(), Index: m.GetIndex(),
		Summarizer: m.GetSummarizer(), Model: m.GetModel(), Instructions: m.GetInstructions(), Extends: m.GetExtends(),
		InputTokens: m.GetInputTokens(), OutputTokens: m.GetOutputTokens(),
		Time: time.Unix(m.GetTimeSeconds(), int64(m.GetTimeNanos())).UTC(), Version: m.GetRules(),
	}
	if s.To != a.Seq || s.From == 0 || s.From > s.To {
		return Summary{}, &eventlog.CorruptError{What: fmt.Sprintf("summary %s", a.ID), Reason: fmt.Sprintf("it covers events %d to %d and is kept at %d", s.From, s.To, a.Seq)}
	}
	return s, nil
}
