package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// source is a text block of the log.
type source struct {
	seq   uint64
	block uint32
	text  string
}

// checkTexts checks that every text of the log in a context is unchanged, or is clipped where the record says
// so and gives a reason.
func (c *checker) checkTexts(a answer) error {
	clips := map[[2]uint64]*contextdv1.RedactionPointer{}
	for _, p := range a.header.GetProjection().GetRedactionPointers() {
		clips[[2]uint64{p.GetSourceSeq(), uint64(p.GetSourceBlock())}] = p
	}
	for i, m := range a.messages {
		switch m.GetOrigin() {
		case contextdv1.Origin_ORIGIN_VERBATIM, contextdv1.Origin_ORIGIN_STUBBED, contextdv1.Origin_ORIGIN_CLIPPED:
		default:
			continue
		}
		var want []source
		for _, seq := range m.GetSourceSeqs() {
			// Results within a user's message become a message of their own.
			if c.messages[seq].GetRole() == m.GetMessage().GetRole() {
				want = append(want, sources(seq, c.messages[seq])...)
			}
		}
		got := undescribed(texts(m.GetMessage()), m.GetSourceSeqs(), c.messages)
		if len(got) != len(want) {
			return fmt.Errorf("text: message %d shows %d texts of %d", i, len(got), len(want))
		}
		for k, w := range want {
			if got[k] == w.text {
				continue
			}
			p := clips[[2]uint64{w.seq, uint64(w.block)}]
			if err := checkClip(got[k], w.text, p); err != nil {
				return fmt.Errorf("text: event %d: %w", w.seq, err)
			}
			if m.GetOrigin() != contextdv1.Origin_ORIGIN_CLIPPED {
				return fmt.Errorf("text: event %d is clipped and its message does not say so", w.seq)
			}
		}
	}
	return nil
}

// undescribed drops the texts that describe media of the messages seqs in place of the media.
func undescribed(all []string, seqs []uint64, of map[uint64]*contextdv1.Message) []string {
	for _, seq := range seqs {
		for i, b := range of[seq].GetBlocks() {
			pointer := fmt.Sprintf("ctx:%d.%d]", seq, i)
			at := slices.IndexFunc(all, func(s string) bool { return strings.HasPrefix(s, "[contextd: ") && strings.HasSuffix(s, pointer) })
			if b.GetText() == nil && at >= 0 {
				all = slices.Delete(all, at, at+1)
			}
		}
	}
	return all
}

func sources(seq uint64, m *contextdv1.Message) []source {
	var all []source
	for i, b := range m.GetBlocks() {
		if t := b.GetText(); t != nil {
			all = append(all, source{seq, uint32(i), t.GetText()})
		}
	}
	return all
}

func texts(m *contextdv1.Message) []string {
	var all []string
	for _, s := range sources(0, m) {
		all = append(all, s.text)
	}
	return all
}

// cutNote is the note between head and tail of a clipped text.
var cutNote = regexp.MustCompile(`\n\[contextd: (\d+) chars, (\d+) lines cut here; (?:\S+\(pointer: ")?(ctx:[\d.]+)(?:"\))?\]\n`)

// checkClip checks that short is head and tail of text, with a note that counts the missing part, and that
// the record has the same facts.
func checkClip(short, text string, p *contextdv1.RedactionPointer) error {
	switch {
	case p == nil:
		return fmt.Errorf("not as in the log, and the record does not say so")
	case p.GetPolicy() != "clipping" || p.GetDecision() != "clipped" || p.GetReason() == "":
		return fmt.Errorf("the record has it %q by %q because of %q", p.GetDecision(), p.GetPolicy(), p.GetReason())
	case p.GetContentChars() != uint64(utf8.RuneCountInString(text)):
		return fmt.Errorf("the record has %d characters of %d", p.GetContentChars(), utf8.RuneCountInString(text))
	}
	sum := sha256.Sum256([]byte(text))
	if want := "sha256:" + hex.EncodeToString(sum[:]); p.GetContentHash() != want {
		return fmt.Errorf("the record has the hash %s of %s", p.GetContentHash(), want)
	}
	// The text itself may contain such a note.
	for _, at := range cutNote.FindAllStringSubmatchIndex(short, -1) {
		head, tail := short[:at[0]], short[at[1]:]
		if short[at[6]:at[7]] != p.GetPointer() || len(head)+len(tail) >= len(text) ||
			!strings.HasPrefix(text, head) || !strings.HasSuffix(text, tail) {
			continue
		}
		gap := text[len(head) : len(text)-len(tail)]
		chars, lines := strconv.Itoa(utf8.RuneCountInString(gap)), strconv.Itoa(strings.Count(gap, "\n"))
		if short[at[2]:at[3]] == chars && short[at[4]:at[5]] == lines {
			return nil
		}
	}
	return fmt.Errorf("what is left is not head and tail")
}
