package harness

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/artifact"
	eventlog "github.com/contextd/contextd/internal/log"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// EnvelopeKind is the kind of the artifacts with envelopes. Their Seq is the seq of the envelope's event, so that a
// fork has the envelopes of the events that it shares. It is 0 for an envelope of the session as a whole.
const EnvelopeKind = "transcript_envelope"

const envelopeVersion = 1

// maxEnvelope is the most bytes of a difference in one artifact. A longer difference takes several artifacts.
const maxEnvelope = 256 << 10

// PutEnvelopes stores envelopes, durable on return. seqs has the seq of each envelope's event, by the event's id.
// With again set, some may be stored already: those with equal bytes are not written again.
func PutEnvelopes(ctx context.Context, store eventlog.Artifacts, sessionID string, of eventlog.Incarnation, all []Envelope, seqs map[string]eventlog.Seq, again bool) error {
	var put []eventlog.Artifact
	values := map[string][]byte{}
	place := func(a eventlog.Artifact) string { return fmt.Sprintf("%d/%s", a.Seq, a.ID) }
	from, to := eventlog.Seq(1<<63), eventlog.Seq(1) // 0 would be no bound
	for _, e := range all {
		at := seqs[e.Event]
		from, to = min(from, at), max(to, at)
		for n, m := range storedEnvelope(e) {
			a, err := artifact.Encode(eventlog.Artifact{Kind: EnvelopeKind, Seq: at, ID: envelopeID(e, n), Of: of}, m)
			if err != nil {
				return err
			}
			put, values[place(a)] = append(put, a), a.Value
		}
	}
	if !again || len(put) == 0 {
		return store.PutArtifacts(ctx, sessionID, put...)
	}
	same := map[string]bool{}
	for a, err := range store.Artifacts(ctx, sessionID, eventlog.ArtifactQuery{Kind: EnvelopeKind, From: from, To: to}) {
		if err != nil {
			return err
		}
		if value, ok := values[place(a)]; ok && bytes.Equal(value, a.Value) {
			same[place(a)] = true
		}
	}
	put = slices.DeleteFunc(put, func(a eventlog.Artifact) bool { return same[place(a)] })
	return store.PutArtifacts(ctx, sessionID, put...)
}

// firstEnvelope ends the id of an envelope's first artifact.
const firstEnvelope = "/0000"

func envelopeID(e Envelope, n int) string { return fmt.Sprintf("%s/%s/%04d", e.Harness, e.Part, n) }

// storedEnvelope splits an envelope into messages that fit into one artifact each.
func storedEnvelope(e Envelope) (all []*storagev1.TranscriptEnvelope) {
	for rest := []byte(e.Difference); ; rest = rest[maxEnvelope:] {
		m := &storagev1.TranscriptEnvelope{
			Version: envelopeVersion, Harness: e.Harness, Part: e.Part,
			Difference: rest[:min(len(rest), maxEnvelope)], Continues: len(rest) > maxEnvelope,
		}
		if all = append(all, m); !m.GetContinues() {
			return all
		}
	}
}

// Envelopes returns the stored envelopes of the events, which must be the session's log from seq 1 on. The
// error for an envelope that cannot be read is an *eventlog.CorruptError or an *artifact.VersionError.
func Envelopes(ctx context.Context, store eventlog.Artifacts, sessionID string, events []eventlog.Event) ([]Envelope, error) {
	var all []Envelope
	var whole []byte // the difference of the last envelope, as far as it was read
	continues := false
	for a, err := range store.Artifacts(ctx, sessionID, eventlog.ArtifactQuery{Kind: EnvelopeKind}) {
		if err != nil {
			return nil, err
		}
		if a.Seq > eventlog.Seq(len(events)) {
			break // of an event that was imported after events were read
		}
		m := &storagev1.TranscriptEnvelope{}
		if err := artifact.Decode(a, m, envelopeVersion); err != nil {
			return nil, err
		}
		switch first := strings.HasSuffix(a.ID, firstEnvelope); {
		case first:
			e := Envelope{Harness: m.GetHarness(), Part: m.GetPart(), Difference: string(m.GetDifference())}
			if a.Seq > 0 {
				e.Event = events[a.Seq-1].ID
			}
			all, whole = append(all, e), m.GetDifference()
		case continues:
			if whole = append(whole, m.GetDifference()...); !m.GetContinues() {
				all[len(all)-1].Difference = string(whole)
			}
		default:
			continue // remains of a longer envelope, which a shorter one replaced
		}
		continues = m.GetContinues()
	}
	return all, nil
}

// EnvelopeBytes returns how many bytes of a session's envelopes are stored.
func EnvelopeBytes(ctx context.Context, store eventlog.Artifacts, sessionID string) (n uint64, err error) {
	for a, err := range store.Artifacts(ctx, sessionID, eventlog.ArtifactQuery{Kind: EnvelopeKind}) {
		if err != nil {
			return 0, err
		}
		n += uint64(len(a.Value))
	}
	return n, nil
}
