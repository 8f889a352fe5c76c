package summarize

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	eventlog "github.com/contextd/contextd/internal/log"
)

// ArtifactKind is the kind of artifact under which summaries are kept, at the last
// event of their span.
const ArtifactKind = "summary"

// SummaryID is the id of the summary of a span by a summarizer that follows
// instructions with this fingerprint.
func SummaryID(from, to eventlog.Seq, summarizer, instructions string) string {
	return fmt.Sprintf("s%d-%s", to, workKey(from, to, summarizer, instructions, 4))
}

// workKey is a hash over what makes one piece of work, of n bytes in hexadecimal.
func workKey(from, to eventlog.Seq, summarizer, instructions string, n int) string {
	h := sha256.New()
	var fixed []byte
	for _, v := range []uint64{Version, uint64(from), uint64(to), uint64(len(summarizer))} {
		fixed = binary.BigEndian.AppendUint64(fixed, v)
	}
	h.Write(fixed)
	h.Write([]byte(summarizer))
	h.Write([]byte(instructions))
	return hex.EncodeToString(h.Sum(nil)[:n])
}

// storedSummary is a Summary as it stands in the store. Members may be added; one
// that is gone is never used for something else.
type storedSummary struct {
	From         eventlog.Seq `json:"from"`
	To           eventlog.Seq `json:"to"`
	Text         string       `json:"text"`
	Ledger       string       `json:"ledger,omitempty"`
	Index        string       `json:"index,omitempty"`
	Summarizer   string       `json:"summarizer"`
	Model        string       `json:"model,omitempty"`
	Instructions string       `json:"instructions,omitempty"`
	Extends      string       `json:"extends,omitempty"`
	InputTokens  uint64       `json:"input_tokens,omitempty"`
	OutputTokens uint64       `json:"output_tokens,omitempty"`
	Time         time.Time    `json:"time"`
	Version      uint32       `json:"version"`
}

// Put stores a summary beside the log; durable on return. One with the same id and
// span is replaced.
func Put(ctx context.Context, store eventlog.Store, sessionID string, s Summary) error {
	value, err := json.Marshal(storedSummary{
		s.From, s.To, s.Text, s.Ledger, s.Index, s.Summarizer, s.Model, s.Instructions, s.Extends,
		s.InputTokens, s.OutputTokens, s.Time.UTC().Round(0), s.Version,
	})
	if err != nil {
		return err
	}
	return store.PutArtifact(ctx, sessionID, eventlog.Artifact{Kind: ArtifactKind, Seq: s.To, ID: s.ID, Value: value})
}

// Load returns the summaries of a session whose spans end at upTo or before, oldest
// first; upTo 0 means no bound. One that cannot be read is an *eventlog.CorruptError.
func Load(ctx context.Context, store eventlog.Store, sessionID string, upTo eventlog.Seq) ([]Summary, error) {
	var all []Summary
	for a, err := range store.Artifacts(ctx, sessionID, eventlog.ArtifactQuery{Kind: ArtifactKind, To: upTo}) {
		if err != nil {
			return nil, err
		}
		s, err := decodeSummary(a)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// get returns one summary, or false if there is none.
func get(ctx context.Context, store eventlog.Store, sessionID string, to eventlog.Seq, id string) (Summary, bool, error) {
	a, err := store.Artifact(ctx, sessionID, ArtifactKind, to, id)
	if ok, err := exists(err); !ok {
		return Summary{}, false, err
	}
	s, err := decodeSummary(a)
	return s, err == nil, err
}

// exists tells apart that an artifact is not there and that it cannot be read.
func exists(err error) (bool, error) {
	var missing *eventlog.NotFoundError
	if errors.As(err, &missing) && missing.Kind == "artifact" {
		return false, nil
	}
	return err == nil, err
}

func decodeSummary(a eventlog.Artifact) (Summary, error) {
	var s storedSummary
	if err := json.Unmarshal(a.Value, &s); err != nil {
		return Summary{}, &eventlog.CorruptError{What: fmt.Sprintf("summary %s", a.ID), Reason: err.Error()}
	}
	if s.To != a.Seq || s.From == 0 || s.From > s.To {
		return Summary{}, &eventlog.CorruptError{What: fmt.Sprintf("summary %s", a.ID), Reason: fmt.Sprintf("it covers events %d to %d and is kept at %d", s.From, s.To, a.Seq)}
	}
	return Summary{
		a.ID, s.From, s.To, s.Text, s.Ledger, s.Index, s.Summarizer, s.Model, s.Instructions, s.Extends,
		s.InputTokens, s.OutputTokens, s.Time, s.Version,
	}, nil
}
