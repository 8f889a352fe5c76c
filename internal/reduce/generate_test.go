package reduce_test

import (
	"fmt"
	"strings"
	"time"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/reduce/reducetest"
)

// size draws how long a text is, in bytes: most are short, some exceed any budget.
func size(most int) *rapid.Generator[int] {
	return rapid.Custom(func(t *rapid.T) int {
		switch rapid.IntRange(0, 5).Draw(t, "size") {
		case 0:
			return rapid.IntRange(0, 8).Draw(t, "bytes")
		case 1, 2:
			return rapid.IntRange(8, 200).Draw(t, "bytes")
		case 3, 4:
			return rapid.IntRange(200, max(201, most/10)).Draw(t, "bytes")
		default:
			return rapid.IntRange(200, max(201, most)).Draw(t, "bytes")
		}
	})
}

// prose draws a text of about so many bytes: lines, one line, or wide characters.
func prose(most int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		n := size(most).Draw(t, "n")
		unit := rapid.SampledFrom([]string{
			"see internal/reduce/view.go:42 for parseConfig\n", "and then ", "日本語のテキスト", "{\"id\": 1234567}\n", "x",
		}).Draw(t, "unit")
		return strings.Repeat(unit, n/len(unit)+1)
	})
}

// genContent draws a result; few bodies, so that they come again.
func genContent(t *rapid.T) []eventlog.Block {
	switch rapid.IntRange(0, 9).Draw(t, "content") {
	case 0:
		return nil
	case 1:
		return []eventlog.Block{
			eventlog.Text{Text: "a screenshot"},
			eventlog.Media{MIMEType: "image/png", URI: rapid.SampledFrom([]string{"a.png", "b.png"}).Draw(t, "image"), Tokens: 200},
		}
	case 2, 3, 4:
		return []eventlog.Block{eventlog.Text{Text: reducetest.Lines(rapid.SampledFrom([]int{3, 40, 400}).Draw(t, "lines"), "repeated")}}
	default:
		return []eventlog.Block{eventlog.Text{Text: prose(20_000).Draw(t, "body")}}
	}
}

func genThought(t *rapid.T) eventlog.Thinking {
	thought := eventlog.Thinking{Text: prose(2000).Draw(t, "thought")}
	switch rapid.IntRange(0, 5).Draw(t, "seal") {
	case 0:
		thought.EncryptedContent = thought.Text
	case 1, 2:
		thought.Signature = "signature of it"
	case 3:
		thought.Text = ""
	}
	return thought
}

// genAssistant draws the next message, or the next part of one, of a model.
func genAssistant(t *rapid.T, head eventlog.Head) *eventlog.Message {
	m := &eventlog.Message{
		Role:    eventlog.RoleAssistant,
		Model:   rapid.SampledFrom([]string{"claude-x", "claude-x", "gpt-x", ""}).Draw(t, "model"),
		GroupID: rapid.SampledFrom([]string{"", "", head.LastGroup, fmt.Sprintf("g%d", head.Seq), "g1"}).Draw(t, "group"),
		Pinned:  rapid.IntRange(0, 30).Draw(t, "pinned") == 0,
	}
	for range rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "thoughts") {
		m.Blocks = append(m.Blocks, genThought(t))
	}
	if rapid.Bool().Draw(t, "speaks") || len(m.Blocks) == 0 {
		m.Blocks = append(m.Blocks, eventlog.Text{Text: prose(400).Draw(t, "text")})
	}
	taken := map[string]bool{}
	for _, o := range head.OpenCalls {
		taken[o.CallID] = o.GroupID != "" && o.GroupID == m.GroupID
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "calls") {
		id := fmt.Sprintf("c%d.%d", head.Seq, i)
		if rapid.IntRange(0, 9).Draw(t, "reuse") == 0 {
			id = "again"
		}
		if taken[id] {
			continue
		}
		taken[id] = true
		m.Blocks = append(m.Blocks, eventlog.ToolCall{
			CallID: id, Name: rapid.SampledFrom([]string{"read", "read_all", "bash", "edit"}).Draw(t, "tool"),
			Arguments: fmt.Sprintf(`{"path": "file%d.go", "limit": 1.0}`, rapid.IntRange(0, 3).Draw(t, "file")),
		})
	}
	return m
}

// genAnswers draws results for some of the open calls, perhaps in another order.
func genAnswers(t *rapid.T, head eventlog.Head) *eventlog.Message {
	m := &eventlog.Message{
		Role:   rapid.SampledFrom([]eventlog.Role{eventlog.RoleTool, eventlog.RoleTool, eventlog.RoleUser}).Draw(t, "by"),
		Pinned: rapid.IntRange(0, 30).Draw(t, "pinned") == 0,
	}
	newest := head.OpenCalls[max(0, len(head.OpenCalls)-3):]
	if rapid.IntRange(0, 4).Draw(t, "late") == 0 {
		newest = head.OpenCalls
	}
	for _, o := range rapid.SliceOfNDistinct(rapid.SampledFrom(newest), 1, min(3, len(newest)), rapid.ID[eventlog.OpenCall]).Draw(t, "answered") {
		m.Blocks = append(m.Blocks, eventlog.ToolResult{
			CallID: o.CallID, Content: genContent(t), IsError: rapid.IntRange(0, 5).Draw(t, "failed") == 0,
		})
	}
	if m.Role == eventlog.RoleUser && rapid.Bool().Draw(t, "comments") {
		m.Blocks = append(m.Blocks, eventlog.Text{Text: prose(100).Draw(t, "comment")})
	}
	return m
}

// genSaid draws what a user says, at times with what is no text.
func genSaid(t *rapid.T) []eventlog.Block {
	said := []eventlog.Block{eventlog.Text{Text: prose(4000).Draw(t, "text")}}
	switch rapid.IntRange(0, 9).Draw(t, "attached") {
	case 0:
		return append(said, eventlog.Media{MIMEType: "application/pdf", URI: "a.pdf", Tokens: rapid.Uint32Range(1, 20_000).Draw(t, "pages")})
	case 1:
		return append(said, eventlog.ProviderBlock{Provider: "anthropic", JSON: `{"type":"document","title":"` + prose(2000).Draw(t, "document") + `"}`})
	default:
		return said
	}
}

func genMessage(t *rapid.T, head eventlog.Head) *eventlog.Message {
	kind := rapid.IntRange(0, 9).Draw(t, "kind")
	switch {
	case head.Seq == 0 && kind < 7 || kind == 9:
		return &eventlog.Message{Role: eventlog.RoleSystem, Blocks: []eventlog.Block{eventlog.Text{Text: prose(400).Draw(t, "text")}}}
	case len(head.OpenCalls) > 0 && kind < 6:
		return genAnswers(t, head)
	case head.Seq < 2 || kind == 8:
		return &eventlog.Message{
			Role: eventlog.RoleUser, Blocks: genSaid(t),
			Pinned:  rapid.IntRange(0, 9).Draw(t, "pinned") == 0,
			GroupID: rapid.SampledFrom([]string{"", "", "", head.LastGroup}).Draw(t, "group"),
		}
	default:
		return genAssistant(t, head)
	}
}

// genEvent draws an event that a log with this head admits.
func genEvent(t *rapid.T, head eventlog.Head, at *time.Duration) eventlog.Event {
	*at += rapid.SampledFrom([]time.Duration{0, time.Second, time.Second, 20 * time.Minute}).Draw(t, "pause")
	e := eventlog.Event{ID: fmt.Sprintf("e%d", head.Seq+1), Time: reducetest.Epoch.Add(*at)}
	if rapid.IntRange(0, 19).Draw(t, "other") == 0 {
		e.Body = &eventlog.Custom{Type: "note"}
		return e
	}
	m := genMessage(t, head)
	e.Body = m
	if m.Role == eventlog.RoleUser || m.Role == eventlog.RoleSystem {
		e.Labels = rapid.SampledFrom(reducetest.Labels).Draw(t, "labels")
	}
	switch rapid.IntRange(0, 3).Draw(t, "counted") {
	case 0:
		e.Tokens = gauge.CountEvent(e)
	case 1:
		e.Tokens = eventlog.TokenCounts{Tokenizer: "another", Blocks: make([]uint32, len(m.Blocks))}
	}
	return e
}

func genRetention(t *rapid.T) reduce.Retention {
	return reduce.Retention{
		Turns:     rapid.SampledFrom([]uint32{0, 1, 2, 5}).Draw(t, "turns"),
		Last:      rapid.SampledFrom([]uint32{0, 0, 1, 3}).Draw(t, "last"),
		Never:     rapid.IntRange(0, 9).Draw(t, "never") == 0,
		MinTokens: rapid.SampledFrom([]uint64{0, 20, 200}).Draw(t, "min"),
	}
}

func genPolicy() *rapid.Generator[reduce.Policy] {
	return rapid.Custom(func(t *rapid.T) reduce.Policy {
		if rapid.IntRange(0, 3).Draw(t, "default") == 0 {
			return reducetest.Policy()
		}
		share := rapid.SampledFrom([]float64{0, 0.03, 0.1, 0.3})
		p := reduce.Policy{
			ToolResults: reduce.ToolResults{
				Default: genRetention(t), EvictErrors: rapid.Bool().Draw(t, "errors"), Strict: rapid.IntRange(0, 3).Draw(t, "strict") == 0,
				OutlineTokens: rapid.SampledFrom([]uint64{0, 30, 300}).Draw(t, "outline"),
				ByTool:        map[string]reduce.Retention{},
			},
			Duplicates: rapid.Bool().Draw(t, "duplicates"),
			Clipping: reduce.Clipping{
				MaxTokens:  rapid.SampledFrom([]uint64{0, 50, 500}).Draw(t, "clip"),
				Exact:      rapid.Bool().Draw(t, "exact"),
				HeadTokens: rapid.SampledFrom([]uint64{0, 0, 20}).Draw(t, "head"),
				TailTokens: rapid.SampledFrom([]uint64{0, 0, 20}).Draw(t, "tail"),
				NameTokens: rapid.SampledFrom([]uint64{0, 30}).Draw(t, "names"),
			},
			Window: reduce.Window{
				MaxTurns:     rapid.SampledFrom([]uint32{0, 0, 3}).Draw(t, "max_turns"),
				MaxTokens:    rapid.SampledFrom([]uint64{0, 0, 300}).Draw(t, "max_tokens"),
				StrictAnchor: rapid.IntRange(0, 9).Draw(t, "strict") == 0,
			},
			Collapse: reduce.Collapse{
				To: rapid.SampledFrom([]float64{0, 0.4, 0.9, 1}).Draw(t, "to"), KeepLastTurns: rapid.Uint32Range(0, 4).Draw(t, "keep"),
				LedgerShare: share.Draw(t, "ledger"), WorkingSetShare: share.Draw(t, "work"), IndexShare: share.Draw(t, "index"),
				ListTokens:  rapid.SampledFrom([]uint64{0, 100, 6000}).Draw(t, "lists"),
				IndexTokens: rapid.SampledFrom([]uint64{0, 0, 50}).Draw(t, "index_tokens"),
				IndexLines:  rapid.SampledFrom([]float64{0, 0.5}).Draw(t, "index_lines"),
				CutFrom:     rapid.SampledFrom([]float64{0, 0, 0.3, 0.7}).Draw(t, "cut_from"), CutPaybackTurns: rapid.SampledFrom([]uint32{2, 30}).Draw(t, "cut_payback"),
				CutTo: rapid.SampledFrom([]float64{0, 0.1}).Draw(t, "cut_to"), CutReach: rapid.SampledFrom([]float64{0, 0.2, 1}).Draw(t, "cut_reach"),
				SummaryShare: share.Draw(t, "summary"), StartAt: rapid.SampledFrom([]float64{0, 0.1, 0.8}).Draw(t, "start"),
			},
			Cache: reduce.Cache{
				EvictEveryTurns:    rapid.SampledFrom([]uint32{0, 1, 4}).Draw(t, "every"),
				ClearAtLeastTokens: rapid.SampledFrom([]uint64{0, 1, 300}).Draw(t, "clear"),
				TTL:                rapid.SampledFrom([]time.Duration{0, 5 * time.Minute}).Draw(t, "ttl"),
				PaybackTurns:       rapid.SampledFrom([]uint32{0, 1, 4}).Draw(t, "payback"),
				Prices:             rapid.SampledFrom([]reduce.Prices{{}, {CacheRead: 500, CacheWrite: 1000}, {CacheRead: 100, CacheWrite: 1250, MinCachedTokens: 400}}).Draw(t, "prices"),
			},
			Recall: reduce.Recall(rapid.SampledFrom([]string{"", "recall", strings.Repeat("mcp__contextd__", 4) + "look"}).Draw(t, "recall")),
		}
		for _, tool := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"read", "read*", "r*", "*", "b[", "bas?"}), 0, 3, rapid.ID[string]).Draw(t, "tools") {
			p.ToolResults.ByTool[tool] = genRetention(t)
		}
		if rapid.Bool().Draw(t, "thinking") {
			keep := rapid.Uint32Range(0, 3).Draw(t, "keep_thinking")
			p.Thinking.KeepTurns = &keep
		}
		return p
	})
}

func genBudget() *rapid.Generator[budget.Budget] {
	return rapid.Custom(func(t *rapid.T) budget.Budget {
		b := budget.Budget{Target: rapid.SampledFrom([]uint64{300, 1000, 3000, 10_000}).Draw(t, "target")}
		for _, tier := range budget.Tiers() {
			if rapid.IntRange(0, 4).Draw(t, "cap "+string(tier)) > 0 {
				continue
			}
			if b.Caps == nil {
				b.Caps = map[budget.Tier]uint64{}
			}
			b.Caps[tier] = b.Share(rapid.SampledFrom([]float64{0.1, 0.3, 0.9}).Draw(t, "share"))
		}
		return b
	})
}
