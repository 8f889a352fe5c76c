package log

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"maps"
	"slices"
	"unsafe"
)

// Digest identifies the content of an event: its labels and body. Seq, turn, event_id, time and token counts are no
// part of it, so that a client may repeat an append without the time that it sent first. Two events of a session with
// the same event_id and Digest are the same event.
func Digest(e Event) [sha256.Size]byte {
	d := &digester{h: sha256.New(), small: make([]byte, 0, 2*smallText)}
	d.count(len(e.Labels))
	for _, k := range sortedKeys(e.Labels) {
		d.str(k)
		d.str(e.Labels[k])
	}
	switch b := e.Body.(type) {
	case *Message:
		d.tag('m', byte(b.Role), flag(b.Pinned))
		d.str(b.GroupID)
		d.str(b.Model)
		d.blocks(b.Blocks)
	case *Reminder:
		d.tag('r', byte(b.RoleHint), flag(b.PreserveOnCompact), flag(b.TTLTurns != nil))
		if b.TTLTurns != nil {
			d.count(int(*b.TTLTurns))
		}
		d.str(b.Body)
		d.str(b.DedupeKey)
		d.str(b.Source)
		d.strs(b.Tags)
	case *Compaction:
		d.tag('c', byte(b.Trigger))
		d.str(b.Summary)
		d.optional(b.PreTokens)
		d.optional(b.PostTokens)
		d.strs(b.KeptEventIDs)
		d.str(b.Mode)
		d.str(b.Strategy)
		d.str(b.NativeJSON)
		d.decision(b.Decision)
	case *Custom:
		d.tag('x')
		d.str(b.Type)
		d.str(b.JSON)
	}
	return d.sum()
}

// sortedKeys allocates nothing if there are no labels, as in most events.
func sortedKeys(labels map[string]string) []string {
	if len(labels) == 0 {
		return nil
	}
	return slices.Sorted(maps.Keys(labels))
}

// digester hashes every value with its length, so that no two different events hash the same bytes.
type digester struct {
	h hash.Hash
	// small collects short values, which are written to the hash together.
	small []byte
}

// smallText is the greatest size of texts that are collected in small.
const smallText = 256

func (d *digester) sum() (sum [sha256.Size]byte) {
	d.flush()
	d.h.Sum(sum[:0])
	return sum
}

func (d *digester) flush() {
	d.h.Write(d.small)
	d.small = d.small[:0]
}

func (d *digester) tag(b ...byte) { d.small = append(d.small, b...) }

func (d *digester) count(n int) { d.small = binary.LittleEndian.AppendUint64(d.small, uint64(n)) }

func (d *digester) str(s string) {
	d.count(len(s))
	if len(s) <= smallText {
		d.small = append(d.small, s...)
		return
	}
	d.flush()
	// This avoids a copy, because texts are large. A hash neither changes nor keeps its input.
	d.h.Write(unsafe.Slice(unsafe.StringData(s), len(s)))
}

func (d *digester) strs(all []string) {
	d.count(len(all))
	for _, s := range all {
		d.str(s)
	}
}

func (d *digester) optional(n *uint64) {
	d.tag(flag(n != nil))
	if n != nil {
		d.count(int(*n))
	}
}

// decision hashes nothing for nil, so that events stored before decisions existed keep their digests.
func (d *digester) decision(of *CompactionDecision) {
	if of == nil {
		return
	}
	d.tag('d')
	d.count(int(of.Through))
	d.count(int(of.DigestTokens))
	d.count(len(of.Kept))
	for _, seq := range of.Kept {
		d.count(int(seq))
	}
	d.count(len(of.Masked))
	for _, at := range of.Masked {
		d.count(int(at.Seq))
		d.count(at.Block)
	}
	d.strs([]string{of.SummaryID, of.SummaryBy})
	d.count(int(of.SummaryThrough))
	d.count(int(of.Undoes))
	if of.LateAfter > 0 { // so that events without it keep their digests
		d.tag('l')
		d.count(int(of.LateAfter))
	}
}

func (d *digester) blocks(all []Block) {
	d.count(len(all))
	for _, b := range all {
		switch b := b.(type) {
		case Text:
			d.tag('t')
			d.str(b.Text)
		case Thinking:
			d.tag('h')
			d.strs([]string{b.Text, b.Signature, b.RedactedData, b.EncryptedContent})
		case ToolCall:
			d.tag('c')
			d.strs([]string{b.CallID, b.Name, b.Arguments})
		case ToolResult:
			d.tag('r', flag(b.IsError))
			d.strs([]string{b.CallID, b.ToolName})
			d.blocks(b.Content)
		case Media:
			d.tag('m')
			d.strs([]string{b.MIMEType, b.Data, b.URI})
			d.count(int(b.Tokens))
		case ProviderBlock:
			d.tag('p')
			d.strs([]string{b.Provider, b.JSON})
		}
	}
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}
