package reduce

import (
	"crypto/sha256"
	"fmt"

	eventlog "github.com/contextd/contextd/internal/log"
)

// digestRules is the version of the code that writes digests. Raise it when the same log and decisions give another
// text, so that a stored digest of an older version is not used.
const digestRules = 10

// Written is a digest that is stored next to the log, so that the first context after a start need not write it
// again. It is a cache: the log gives the same text.
type Written struct {
	// AsOf is the event up to which the log was read.
	AsOf eventlog.Seq
	// Sum is a hash of all that the digest depends on besides the log and the tokenizer.
	Sum [32]byte
	// Text is the digest, Tokens its size, and SummaryTokens that of the summary in it.
	Text                  string
	Tokens, SummaryTokens uint64
}

// holds reports whether the stored digest is the one that m would write: it has the same decisions, and no later
// event has changed a group of the run.
func (w Written) holds(m *digestMemo) bool {
	return w.AsOf > 0 && w.Sum == m.sum && m.changed <= w.AsOf
}

// sum returns a hash of the key, the quoted summary, and the boundary from which the log is shown.
func (k digestKey) sum(quoted Summary, boundary eventlog.Seq) [32]byte {
	var decided eventlog.Seq
	if k.decided != nil {
		decided = k.decided.Seq
	}
	return sha256.Sum256(fmt.Appendf(nil, "%d %d %d %d %d %d %q %d %d %q %+v %+v",
		digestRules, boundary, k.through, k.target, k.prose, decided, k.protection.rooted, k.protection.released, k.lateAfter, k.recall, k.policy, quoted))
}

// Offer gives reductions a stored digest, which they use if it is the one that they would write. It must be of the
// same log and written under the same rules of retention.
func (p *Pipeline) Offer(w Written) {
	if w.AsOf <= p.conv.head {
		p.digests.written = w
	}
}

// Written returns the digest that a view shows, for storing; false if it shows none.
func (c *Conversation) Written(v View) (w Written, ok bool) {
	m := c.memoOf(v)
	if m == nil {
		return Written{}, false
	}
	return Written{AsOf: c.head, Sum: m.sum, Text: m.text, Tokens: m.tokens, SummaryTokens: m.summary}, true
}
