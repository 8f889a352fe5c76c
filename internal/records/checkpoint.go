package records

import (
	"context"
	"slices"
	"time"

	"github.com/contextd/contextd/internal/artifact"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

const (
	checkpointVersion = 1
	namesVersion      = 1
	// namesKind is the kind of artifacts with the hashed ids that a log uses, one at the last event of each
	// stretch.
	namesKind = "names"
)

// checkpointKind returns the kind of checkpoints under a fingerprint. Each is stored at the head for which it
// was made.
func checkpointKind(fingerprint string) string { return "checkpoint/" + fingerprint }

// CheckpointAt returns the newest checkpoint under a fingerprint up to an event. It is false if there is
// none or it cannot be decoded; then read the whole log.
func CheckpointAt(ctx context.Context, store eventlog.Artifacts, sessionID, fingerprint string, to eventlog.Seq) (reduce.Checkpoint, bool, error) {
	a, ok, err := artifact.Newest(ctx, store, sessionID, checkpointKind(fingerprint), to)
	if !ok || err != nil {
		return reduce.Checkpoint{}, false, err
	}
	f, ok := checkpointFrom(a)
	return f, ok, nil
}

// CheckpointArtifact encodes a checkpoint. It is to be stored with the record that shows its digest.
func CheckpointArtifact(fingerprint string, f reduce.Checkpoint) (eventlog.Artifact, error) {
	m := &storagev1.Checkpoint{
		Version: checkpointVersion, DependsOn: f.Sum[:], Gauge: f.Gauge, Turns: f.Turns, Tokens: f.Tokens, Chars: uint64(f.Chars),
		CallTime: storeTime(f.Call), NewestTime: storeTime(f.Newest),
		DroppedGroups: uint64(f.Groups), DroppedMessages: uint64(f.Messages), DroppedCalls: uint64(f.Calls), DroppedTokens: f.RawTokens,
		Through: uint64(f.Through), Turn: f.Turn, Changed: uint64(f.Changed), Opens: uint64(f.Opens),
		Events: storeRanges(f.Events), Shown: storeRanges(f.Shown), ShownSum: f.ShownSum[:], Before: uint32(f.Before), Stay: storeSeqs(f.Stay),
		Names: f.Names, FileTokens: f.FileTokens, AllFiles: f.AllFiles,
	}
	before := eventlog.Seq(0)
	for _, g := range f.Dropped {
		m.Dropped = append(m.Dropped, uint64(g.First-before), uint64(g.Last-g.First), g.Tokens)
		before = g.First
	}
	for _, id := range f.OpenCalls {
		m.OpenCalls = append(m.OpenCalls, []byte(id))
	}
	return artifact.Encode(eventlog.Artifact{Kind: checkpointKind(fingerprint), Seq: f.AsOf, ID: newestID}, m)
}

// checkpointFrom decodes a checkpoint; false if that fails.
func checkpointFrom(a eventlog.Artifact) (f reduce.Checkpoint, ok bool) {
	m := &storagev1.Checkpoint{}
	if artifact.Decode(a, m, checkpointVersion) != nil || copy(f.Sum[:], m.GetDependsOn()) != len(f.Sum) || copy(f.ShownSum[:], m.GetShownSum()) != len(f.ShownSum) {
		return f, false
	}
	in := &reader{what: a.Name()}
	f.AsOf, f.Gauge, f.Turns, f.Tokens, f.Chars = a.Seq, m.GetGauge(), m.GetTurns(), m.GetTokens(), int(m.GetChars())
	f.Call, f.Newest = readTime(m.CallTime), readTime(m.NewestTime)
	f.Groups, f.Messages, f.Calls, f.RawTokens = int(m.GetDroppedGroups()), int(m.GetDroppedMessages()), int(m.GetDroppedCalls()), m.GetDroppedTokens()
	f.Through, f.Turn, f.Changed, f.Opens = eventlog.Seq(m.GetThrough()), m.GetTurn(), eventlog.Seq(m.GetChanged()), eventlog.Seq(m.GetOpens())
	f.Events, f.Shown, f.Before = in.ranges(m.GetEvents()), in.ranges(m.GetShown()), int(m.GetBefore())
	for _, seq := range m.GetStay() {
		f.Stay = append(f.Stay, eventlog.Seq(seq))
	}
	before := eventlog.Seq(0)
	for n := range in.entries(m.GetDropped(), 3) {
		before += eventlog.Seq(n[0])
		f.Dropped = append(f.Dropped, reduce.DroppedGroup{First: before, Last: before + eventlog.Seq(n[1]), Tokens: n[2]})
	}
	for _, id := range m.GetOpenCalls() {
		f.OpenCalls = append(f.OpenCalls, string(id))
	}
	f.Names, f.FileTokens, f.AllFiles = m.GetNames(), m.GetFileTokens(), m.GetAllFiles()
	return f, in.err == nil
}

func storeTime(t time.Time) *int64 {
	if t.IsZero() {
		return nil
	}
	n := t.UnixNano()
	return &n
}

func readTime(n *int64) time.Time {
	if n == nil {
		return time.Time{}
	}
	return time.Unix(0, *n).UTC()
}

// NamesUpTo returns a test of whether the complete stretches of a log up to an event use a name, given its
// hash. ok is false if a stretch is not stored.
func NamesUpTo(ctx context.Context, store eventlog.Artifacts, sessionID string, to eventlog.Seq) (used func(uint32) bool, ok bool, err error) {
	var all [][]uint32
	for a, err := range store.Artifacts(ctx, sessionID, eventlog.ArtifactQuery{Kind: namesKind, To: to}) {
		if err != nil {
			return nil, false, err
		}
		m := &storagev1.Names{}
		if artifact.Decode(a, m, namesVersion) != nil {
			return nil, false, nil
		}
		all = append(all, m.GetHashes())
	}
	return func(hash uint32) bool {
		return slices.ContainsFunc(all, func(hashes []uint32) bool {
			_, ok := slices.BinarySearch(hashes, hash)
			return ok
		})
	}, len(all) == reduce.Stretches(to), nil
}

// NamesArtifacts returns the hashed ids of the complete stretches of a log that are not stored yet.
func NamesArtifacts(ctx context.Context, store eventlog.Artifacts, sessionID string, conv *reduce.Conversation) ([]eventlog.Artifact, error) {
	if reduce.Stretches(conv.Head()) == 0 {
		return nil, nil
	}
	newest, _, err := artifact.Newest(ctx, store, sessionID, namesKind, conv.Head())
	if err != nil {
		return nil, err
	}
	var out []eventlog.Artifact
	for n := reduce.Stretches(newest.Seq); ; n++ {
		hashes, last, ok := conv.NamesOf(n)
		if !ok {
			return out, nil
		}
		a, err := artifact.Encode(eventlog.Artifact{Kind: namesKind, Seq: last, ID: newestID}, &storagev1.Names{Version: namesVersion, Hashes: hashes})
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
}
