package reduce

import (
	"crypto/sha256"
	"fmt"

	eventlog "github.com/contextd/contextd/internal/log"
)

// digestRules is the version of the rules by which a digest is written. It moves on whenever
// the same log and decisions give another text, so that none is taken for what would be
// written now.
const digestRules = 6

// Written is a digest as it may be kept next to the log, so that who assembles a context first
// after a start need not write it again. It is nothing that the log would not give again.
type Written struct {
	// AsOf is the event that the log was read up to.
	AsOf eventlog.Seq
	// Sum identifies what the digest depends on beside the log and the tokenizer.
	Sum [32]byte
	// Text is the digest, Tokens its size, and SummaryTokens that of the summary in it.
	Text                  string
	Tokens, SummaryTokens uint64
}

// holds reports whether the digest of what was gathered is the written one: it is of the same
// decisions, and no event since has changed what it records.
func (w Written) holds(m *digestMemo) bool {
	return w.AsOf > 0 && w.Sum == m.sum && m.changed <= w.AsOf
}

// sum identifies the key, with the summary that is quoted and the boundary that the log is
// shown from.
func (k digestKey) sum(quoted Summary, boundary eventlog.Seq) [32]byte {
	var decided eventlog.Seq
	if k.decided != nil {
		decided = k.decided.Seq
	}
	return sha256.Sum256(fmt.Appendf(nil, "%d %d %d %d %d %d %q %d %d %q %+v %+v",
		digestRules, boundary, k.through, k.target, k.prose, decided, k.protection.rooted, k.protection.released, k.lateAfter, k.recall, k.policy, quoted))
}

// Offer has reductions take a digest that was written before instead of writing it again, where it
// is theirs. The log must be the one that it was written of, and the retention the same.
func (p *Pipeline) Offer(w Written) {
	if w.AsOf <= p.conv.head {
		p.digests.written = w
	}
}

// Written is the digest that a view shows, to be kept; false if it shows none.
func (c *Conversation) Written(v View) (w Written, ok bool) {
	m := c.memoOf(v)
	if m == nil {
		return Written{}, false
	}
	return Written{AsOf: c.head, Sum: m.sum, Text: m.text, Tokens: m.tokens, SummaryTokens: m.summary}, true
}
