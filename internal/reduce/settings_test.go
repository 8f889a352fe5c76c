package reduce_test

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/reduce/reducetest"
)

// settings are the words of one line of a policy: flags, and numbers by name.
type settings struct {
	words map[string]string
	err   error
}

func parseSettings(fields []string) *settings {
	s := &settings{words: map[string]string{}}
	for _, f := range fields {
		key, value, _ := strings.Cut(f, "=")
		s.words[key] = value
	}
	return s
}

func (s *settings) flag(name string) bool {
	_, ok := s.words[name]
	delete(s.words, name)
	return ok
}

func (s *settings) number(name string) uint64 { return uint64(s.fraction(name)) }

func (s *settings) fraction(name string) float64 {
	text, ok := s.words[name]
	if !ok {
		return 0
	}
	delete(s.words, name)
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		s.err = err
	}
	return v
}

func (s *settings) duration(name string) time.Duration {
	text, ok := s.words[name]
	if !ok {
		return 0
	}
	delete(s.words, name)
	d, err := time.ParseDuration(text)
	if err != nil {
		s.err = err
	}
	return d
}

func (s *settings) retention() reduce.Retention {
	return reduce.Retention{
		Turns: uint32(s.number("turns")), Last: uint32(s.number("last")), Never: s.flag("never"), MinTokens: s.number("min"),
	}
}

// end reports what was not understood.
func (s *settings) end() error {
	for word := range s.words {
		return fmt.Errorf("%q means nothing here", word)
	}
	return s.err
}

// parsePolicy reads a policy, a part a line; parts that are not named are off.
func parsePolicy(input string) (reduce.Policy, error) {
	var p reduce.Policy
	for line := range strings.Lines(input) {
		fields := strings.Fields(line)
		part, fields := fields[0], fields[1:]
		tool := ""
		if part == "tool" || part == "recall" {
			tool, fields = fields[0], fields[1:]
		}
		s := parseSettings(fields)
		switch part {
		case "default":
			p = reducetest.Policy()
		case "whole":
			p.Whole = true
		case "results":
			p.ToolResults.Default = s.retention()
			p.ToolResults.OutlineTokens = s.number("outline")
			p.ToolResults.EvictErrors = s.flag("errors")
			p.ToolResults.Strict = s.flag("strict")
		case "tool":
			if p.ToolResults.ByTool == nil {
				p.ToolResults.ByTool = map[string]reduce.Retention{}
			}
			p.ToolResults.ByTool[tool] = s.retention()
		case "duplicates":
			p.Duplicates = true
		case "clip":
			p.Clipping = reduce.Clipping{MaxTokens: s.number("max"), HeadTokens: s.number("head"), TailTokens: s.number("tail"), Exact: s.flag("exact")}
		case "thinking":
			keep := uint32(s.number("keep"))
			p.Thinking.KeepTurns = &keep
		case "window":
			p.Window = reduce.Window{MaxTurns: uint32(s.number("turns")), MaxTokens: s.number("tokens"), StrictAnchor: s.flag("strict")}
		case "collapse":
			p.Collapse = reduce.Collapse{
				To: s.fraction("to"), KeepLastTurns: uint32(s.number("keep")), LedgerShare: s.fraction("ledger"), WorkingSetShare: s.fraction("work"), IndexShare: s.fraction("index"),
				SummaryShare: s.fraction("summary"), StartAt: s.fraction("start"), ListTokens: s.number("lists"), IndexTokens: s.number("index_tokens"), IndexLines: s.fraction("index_lines"),
			}
		case "recall":
			p.Recall = reduce.Recall(tool)
		case "cache":
			p.Cache = reduce.Cache{
				EvictEveryTurns: uint32(s.number("every")), ClearAtLeastTokens: s.number("clear"),
				TTL: s.duration("ttl"), PaybackTurns: uint32(s.number("payback")),
			}
		default:
			return p, fmt.Errorf("%q is no part of a policy", part)
		}
		if err := s.end(); err != nil {
			return p, fmt.Errorf("%s: %w", part, err)
		}
	}
	return p, nil
}

// parseBudget reads a target and the caps of tiers, all in tokens.
func parseBudget(input string) (budget.Budget, error) {
	s := parseSettings(strings.Fields(input))
	b := budget.Budget{Target: s.number("target")}
	for _, tier := range budget.Tiers() {
		if _, ok := s.words[string(tier)]; !ok {
			continue
		}
		if b.Caps == nil {
			b.Caps = map[budget.Tier]uint64{}
		}
		b.Caps[tier] = s.number(string(tier))
	}
	return b, s.end()
}
