package cli

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"
	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// requestSettings are the flags for a budget and a policy.
type requestSettings struct {
	budget, policy   string
	model, tokenizer string
	maxTokens        string
	recallTool       string
}

func (r *requestSettings) bind(f *pflag.FlagSet) { config.BindUnder(f, topicBudget, r.bindAll) }

func (r *requestSettings) bindAll(f *pflag.FlagSet) {
	r.bindBudget(f)
	f.StringVar(&r.policy, "policy", "", "name of a policy of the configuration, or a `YAML` map of contextd.v1.Policy's fields")
	f.StringVar(&r.recallTool, "recall-tool", "", "`name` of the tool by which the model gets back what is not shown")
}

func (r *requestSettings) bindBudget(f *pflag.FlagSet) {
	f.StringVar(&r.maxTokens, "max-tokens", "", "hard ceiling in `tokens`, such as 32000 or 32k")
	f.StringVar(&r.model, "model", "", "`name` of the model, which picks window, tokenizer and margin")
	f.StringVar(&r.tokenizer, "tokenizer", "", "`name` of the tokenizer: o200k_base, cl100k_base or heuristic")
	f.StringVar(&r.budget, "budget", "", "tokens, or a `YAML` map of contextd.v1.Budget's fields")
}

// resolve returns what the flags ask for; nil for what they do not set.
func (r *requestSettings) resolve() (*contextdv1.Budget, *contextdv1.Policy, error) {
	b := &contextdv1.Budget{}
	if r.budget != "" {
		if tokens, err := config.ParseTokens(r.budget); err == nil {
			b.MaxTokens = tokens
		} else if err := config.ParseMessage(r.budget, b); err != nil {
			return nil, nil, usageError{fmt.Errorf("--budget: %w", err)}
		}
	}
	if r.maxTokens != "" {
		tokens, err := config.ParseTokens(r.maxTokens)
		if err == nil && tokens == 0 {
			err = errors.New("must be more than 0")
		}
		if err != nil {
			return nil, nil, usageError{fmt.Errorf("--max-tokens: %w", err)}
		}
		b.MaxTokens = tokens
	}
	if r.model != "" {
		b.Model = r.model
	}
	if r.tokenizer != "" {
		b.Tokenizer = r.tokenizer
	}
	if proto.Equal(b, &contextdv1.Budget{}) {
		b = nil
	}
	p, err := parsePolicy(r.policy)
	if r.recallTool != "" {
		if p == nil {
			p = &contextdv1.Policy{}
		}
		p.RecallTool = &r.recallTool
	}
	return b, p, err
}

// parsePolicy parses a name or a map. A name has no brace, colon or newline.
func parsePolicy(text string) (*contextdv1.Policy, error) {
	if text == "" {
		return nil, nil
	}
	if !strings.ContainsAny(text, "{:\n") {
		return &contextdv1.Policy{Name: text}, nil
	}
	p := &contextdv1.Policy{}
	if err := config.ParseMessage(text, p); err != nil {
		return nil, usageError{fmt.Errorf("--policy: %w", err)}
	}
	return p, nil
}

func compactJSON(m proto.Message) string {
	var b bytes.Buffer
	if err := writeJSON(&b, m); err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(b.String(), "\n")
}
