package evaluate

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/contextd/contextd/internal/assemble"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
)

// bindingCheck is a policy whose prompts show the reasoning of step N only after prompt N.
type bindingCheck struct {
	Policy
	t       *testing.T
	prompts [][]byte
	shown   int
}

func (c *bindingCheck) Render(l *Log) Prompt {
	p := c.Policy.Render(l)
	for n, before := range c.prompts {
		signature := fmt.Appendf(nil, `"seal of %d"`, n)
		at := bytes.Index(p.JSON, signature)
		if at < 0 {
			continue
		}
		c.shown++
		if line := bytes.LastIndexByte(p.JSON[:at], '\n') + 1; !bytes.Equal(p.JSON[:line], before) {
			c.t.Errorf("prompt %d shows the reasoning of step %d after\n%s\nwhich was\n%s", len(c.prompts), n, p.JSON[:line], before)
		}
	}
	c.prompts = append(c.prompts, p.JSON)
	return p
}

func TestBoundReasoning(t *testing.T) {
	s := recorded(t, 60)
	for n, step := range s.Steps {
		m := s.Events[step.Before].Body.(*eventlog.Message)
		m.Model = "claude-opus-5-5"
		m.Blocks = append([]eventlog.Block{eventlog.Thinking{Text: "Hm.", Signature: fmt.Sprintf("seal of %d", n)}}, m.Blocks...)
		s.Events[step.Before].Tokens = eventlog.TokenCounts{}
	}
	for _, tokens := range []uint64{4_000, 16_000} {
		b := window(t, tokens)
		check := &bindingCheck{Policy: contextdPolicy(t, b, assemble.Policy{Reduction: reduce.DefaultPolicy()}), t: t}
		Measure(s, gauge(), check, b.Target)
		if check.shown == 0 {
			t.Errorf("at %d tokens no reasoning was shown", tokens)
		}
	}
}
