package main

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// checker knows what the contexts of a session must keep of its log.
type checker struct {
	anchor []anchored // system prompt
	humans humans
	sealed map[uint64]*contextdv1.Message // assistant messages with sealed reasoning, by seq
	calls  int                            // of the log so far
	began  bool                           // the log has something other than the system prompt
	// messages are the messages of the log, by seq; groups are their group ids; newest is the last message.
	messages map[uint64]*contextdv1.Message
	groups   map[uint64]string
	newest   uint64
}

// anchored is a message that must stay in every context.
type anchored struct {
	seq uint64
	*contextdv1.Message
}

func newChecker() *checker {
	return &checker{sealed: map[uint64]*contextdv1.Message{}, messages: map[uint64]*contextdv1.Message{}, groups: map[uint64]string{}}
}

// observe adds an event that is appended at seq.
func (c *checker) observe(seq uint64, e *contextdv1.Event) {
	m := e.GetMessage()
	if m == nil {
		return
	}
	c.messages[seq], c.groups[seq], c.newest = m, m.GetGroupId(), seq
	c.began = c.began || m.GetRole() != contextdv1.Role_ROLE_SYSTEM
	switch m.GetRole() {
	case contextdv1.Role_ROLE_SYSTEM:
		if !c.began {
			c.anchor = append(c.anchor, anchored{seq, m})
		}
	case contextdv1.Role_ROLE_USER:
		if slices.ContainsFunc(m.GetBlocks(), func(b *contextdv1.Block) bool { return b.GetToolResult() == nil }) {
			c.humans.observe(seq, e)
		}
	case contextdv1.Role_ROLE_ASSISTANT:
		if len(sealedThinking(m)) > 0 {
			c.sealed[seq] = m
		}
		for _, b := range m.GetBlocks() {
			if b.GetToolCall() != nil {
				c.calls++
			}
		}
	}
}

// check returns an error for a rule that the context breaks, or nil.
func (c *checker) check(a answer) error {
	if report := a.header.GetBudget(); report.GetProjectedTokens() > report.GetTargetTokens() {
		return fmt.Errorf("over budget: %d tokens of %d", report.GetProjectedTokens(), report.GetTargetTokens())
	}
	visible := 0
	for _, m := range a.messages {
		visible += visibleCalls(m)
	}
	if visible != c.calls {
		return fmt.Errorf("calls: %d of %d are visible", visible, c.calls)
	}
	if err := checkPairs(a.messages); err != nil {
		return err
	}
	if err := c.checkAnchor(a.messages); err != nil {
		return err
	}
	if err := c.humans.check(a); err != nil {
		return err
	}
	if err := c.checkTexts(a); err != nil {
		return err
	}
	if err := c.checkNewest(a); err != nil {
		return err
	}
	return c.checkSealed(a.messages)
}

// checkPairs checks that each message with calls is directly followed by their results, in the order of the
// calls, and that each result has a call.
func checkPairs(messages []*contextdv1.RenderedMessage) error {
	var open []string
	for i, m := range messages {
		role := m.GetMessage().GetRole()
		if role != contextdv1.Role_ROLE_TOOL && len(open) > 0 {
			return fmt.Errorf("orphan: message %d follows calls without results: %s", i, strings.Join(open, ", "))
		}
		for _, b := range m.GetMessage().GetBlocks() {
			if call := b.GetToolCall(); call != nil {
				open = append(open, call.GetCallId())
			}
			if result := b.GetToolResult(); result != nil {
				if len(open) == 0 || open[0] != result.GetCallId() {
					return fmt.Errorf("orphan: the result of %q in message %d answers no call before it", result.GetCallId(), i)
				}
				open = open[1:]
			}
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("orphan: calls without results at the end: %s", strings.Join(open, ", "))
	}
	return nil
}

// checkAnchor checks that the system prompt is there; checkTexts checks its texts.
func (c *checker) checkAnchor(messages []*contextdv1.RenderedMessage) error {
	for _, want := range c.anchor {
		if _, err := want.in(messages); err != nil {
			return fmt.Errorf("anchor: %w", err)
		}
	}
	return nil
}

// in finds the message in a context, where it may be in full or clipped.
func (want anchored) in(messages []*contextdv1.RenderedMessage) (*contextdv1.RenderedMessage, error) {
	at := slices.IndexFunc(messages, func(m *contextdv1.RenderedMessage) bool {
		return slices.Contains(m.GetSourceSeqs(), want.seq) && m.GetMessage().GetRole() == want.GetRole()
	})
	if at < 0 {
		return nil, fmt.Errorf("event %d is missing", want.seq)
	}
	m := messages[at]
	media := slices.ContainsFunc(want.GetBlocks(), func(b *contextdv1.Block) bool { return b.GetText() == nil })
	switch origin := m.GetOrigin(); {
	case origin == contextdv1.Origin_ORIGIN_VERBATIM || origin == contextdv1.Origin_ORIGIN_CLIPPED:
		return m, nil
	case origin == contextdv1.Origin_ORIGIN_STUBBED && media: // the last resort may describe media
		return m, nil
	default:
		return nil, fmt.Errorf("event %d is %s", want.seq, origin)
	}
}

// checkNewest checks that the newest message is in the context. It may be in the ledger instead if the parts
// of its turn that cannot be shortened (arguments of calls, reasoning) are too large.
func (c *checker) checkNewest(a answer) error {
	shown := slices.ContainsFunc(a.messages, func(m *contextdv1.RenderedMessage) bool {
		return m.GetOrigin() != contextdv1.Origin_ORIGIN_SUMMARY && slices.Contains(m.GetSourceSeqs(), c.newest)
	})
	if shown || c.newest == 0 {
		return nil
	}
	at := c.newest
	for at > 1 && unchangeable(c.messages[at]) == 0 {
		at--
	}
	size := unchangeable(c.messages[at])
	for seq, id := range c.groups { // results may be logged between the parts of one answer of the model
		if id != "" && id == c.groups[at] && seq != at {
			size += unchangeable(c.messages[seq])
		}
	}
	// A token is at least a byte, and the anchor may take three quarters of the target.
	if target := a.header.GetBudget().GetTargetTokens(); uint64(size) < target/4 {
		return fmt.Errorf("newest: event %d is missing, and its calls and reasoning take %d bytes", c.newest, size)
	}
	return nil
}

// unchangeable is the size in bytes of the arguments and the reasoning in a message.
func unchangeable(m *contextdv1.Message) int {
	size := 0
	for _, b := range m.GetBlocks() {
		t := b.GetThinking()
		size += len(b.GetToolCall().GetArgumentsJson()) + len(t.GetText()) + len(t.GetSignature()) + len(t.GetEncryptedContent())
	}
	return size
}

// checkSealed checks that sealed reasoning is either complete or absent.
func (c *checker) checkSealed(messages []*contextdv1.RenderedMessage) error {
	for i, m := range messages {
		if m.GetMessage().GetRole() != contextdv1.Role_ROLE_ASSISTANT {
			continue
		}
		var want []*contextdv1.Thinking
		for _, seq := range m.GetSourceSeqs() {
			if raw := c.sealed[seq]; raw != nil {
				want = append(want, sealedThinking(raw)...)
			}
		}
		if len(want) == 0 {
			continue
		}
		got := sealedThinking(m.GetMessage())
		if len(got) > 0 && !slices.EqualFunc(want, got, equalThinking) {
			return fmt.Errorf("half a signature: message %d", i)
		}
	}
	return nil
}

func sealedThinking(m *contextdv1.Message) []*contextdv1.Thinking {
	var all []*contextdv1.Thinking
	for _, b := range m.GetBlocks() {
		if t := b.GetThinking(); t.GetSignature() != "" || t.GetEncryptedContent() != "" || len(t.GetRedactedData()) > 0 {
			all = append(all, t)
		}
	}
	return all
}

func equalThinking(a, b *contextdv1.Thinking) bool {
	return a.GetText() == b.GetText() && a.GetSignature() == b.GetSignature() &&
		a.GetEncryptedContent() == b.GetEncryptedContent() && bytes.Equal(a.GetRedactedData(), b.GetRedactedData())
}

var ledgerCount = regexp.MustCompile(`(?m)^(?:Earlier tool calls \(|\[contextd: )(\d+)(?:\)| calls? removed: )`)

// visibleCalls is how many calls of the log a message shows, in full or counted in a ledger.
func visibleCalls(m *contextdv1.RenderedMessage) int {
	n := 0
	for _, b := range m.GetMessage().GetBlocks() {
		if b.GetToolCall() != nil {
			n++
		}
		if m.GetOrigin() == contextdv1.Origin_ORIGIN_SUMMARY {
			// A projection policy may add a second ledger to the digest, after the first.
			for _, found := range ledgerCount.FindAllStringSubmatch(b.GetText().GetText(), -1) {
				count, _ := strconv.Atoi(found[1])
				n += count
			}
		}
	}
	return n
}
