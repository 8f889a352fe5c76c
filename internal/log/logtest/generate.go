package logtest

import (
	"time"

	"pgregory.net/rapid"

	eventlog "github.com/contextd/contextd/internal/log"
)

// genText draws texts: short and long, plain and with characters that are hard to encode.
func genText() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.String(),
		rapid.StringN(0, 8, -1),
		rapid.SampledFrom([]string{"", "\x00", "a\u2028b", "</script>", "\\\"", "\U0001F600", "error: x"}),
		rapid.Map(rapid.IntRange(1, 300), func(n int) string {
			long := make([]byte, 0, 8*n)
			for len(long) < 8*n {
				long = append(long, "line 42\n"...)
			}
			return string(long)
		}),
	)
}

// genBytes draws strings that need not be UTF-8, for JSON and binary data.
func genBytes() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"", "{}", `{"b":1.0,"a":9007199254740993}`, "null", "\xff\x00"}),
		rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 40), func(b []byte) string { return string(b) }),
	)
}

// GenTime draws times over the whole range that events may have.
func GenTime() *rapid.Generator[time.Time] {
	return rapid.Custom(func(t *rapid.T) time.Time {
		seconds := rapid.Int64Range(-62135596800, 253402300799).Draw(t, "seconds")
		nanos := rapid.Int64Range(0, 999999999).Draw(t, "nanos")
		return time.Unix(seconds, nanos).UTC()
	})
}

func genMap() *rapid.Generator[map[string]string] {
	return rapid.MapOfN(rapid.StringN(0, 6, -1), rapid.StringN(0, 6, -1), 0, 3)
}

// genContent draws a block that may be in a tool result.
func genContent() *rapid.Generator[eventlog.Block] {
	return rapid.Custom(func(t *rapid.T) eventlog.Block {
		switch rapid.IntRange(0, 4).Draw(t, "content") {
		case 0:
			return eventlog.Media{
				MIMEType: rapid.SampledFrom([]string{"image/png", "application/pdf", ""}).Draw(t, "mime"),
				Data:     genBytes().Draw(t, "data"),
				URI:      genText().Draw(t, "uri"),
				Tokens:   rapid.Uint32().Draw(t, "tokens"),
			}
		case 1:
			return eventlog.ProviderBlock{Provider: rapid.SampledFrom([]string{"anthropic", "openai"}).Draw(t, "provider"), JSON: genBytes().Draw(t, "json")}
		default:
			return eventlog.Text{Text: genText().Draw(t, "text")}
		}
	})
}

// genThinking draws a thinking block, sealed or not.
func genThinking() *rapid.Generator[eventlog.Thinking] {
	return rapid.Custom(func(t *rapid.T) eventlog.Thinking {
		th := eventlog.Thinking{Text: genText().Draw(t, "thought")}
		switch rapid.IntRange(0, 3).Draw(t, "seal") {
		case 0:
			th.Signature = rapid.StringN(1, 20, -1).Draw(t, "signature")
		case 1:
			th.RedactedData = genBytes().Draw(t, "redacted")
		case 2:
			th.EncryptedContent = genText().Draw(t, "encrypted")
		}
		return th
	})
}

// genMessage draws a message that a log with this head admits: its results answer open calls.
func genMessage(head eventlog.Head) *rapid.Generator[*eventlog.Message] {
	return rapid.Custom(func(t *rapid.T) *eventlog.Message {
		if len(head.OpenCalls) > 0 && rapid.IntRange(0, 2).Draw(t, "answer") > 0 {
			return genResults(t, head)
		}
		m := &eventlog.Message{
			Role:    rapid.SampledFrom([]eventlog.Role{eventlog.RoleUser, eventlog.RoleAssistant, eventlog.RoleAssistant, eventlog.RoleSystem}).Draw(t, "role"),
			GroupID: rapid.SampledFrom([]string{"", "", "g1", "g2"}).Draw(t, "group"),
			Pinned:  rapid.IntRange(0, 9).Draw(t, "pin") == 0,
			Blocks:  rapid.SliceOfN(genContent(), 1, 3).Draw(t, "blocks"),
		}
		if m.Role != eventlog.RoleAssistant {
			return m
		}
		m.Model = rapid.SampledFrom([]string{"", "m-1"}).Draw(t, "model")
		if rapid.Bool().Draw(t, "think") {
			m.Blocks = append([]eventlog.Block{genThinking().Draw(t, "thinking")}, m.Blocks...)
		}
		taken := map[string]bool{}
		for _, c := range head.OpenCalls {
			// Within a group a call_id is used once.
			taken[c.CallID] = m.GroupID != "" && c.GroupID == m.GroupID
		}
		for range rapid.IntRange(0, 3).Draw(t, "calls") {
			id := rapid.SampledFrom([]string{"c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"}).Draw(t, "call")
			if taken[id] {
				continue
			}
			taken[id] = true
			m.Blocks = append(m.Blocks, eventlog.ToolCall{
				CallID:    id,
				Name:      rapid.SampledFrom([]string{"read", "bash", "edit"}).Draw(t, "tool"),
				Arguments: genBytes().Draw(t, "arguments"),
			})
		}
		return m
	})
}

func genResults(t *rapid.T, head eventlog.Head) *eventlog.Message {
	m := &eventlog.Message{Role: rapid.SampledFrom([]eventlog.Role{eventlog.RoleTool, eventlog.RoleTool, eventlog.RoleUser}).Draw(t, "role")}
	calls := rapid.SliceOfNDistinct(rapid.SampledFrom(head.OpenCalls), 1, min(3, len(head.OpenCalls)), rapid.ID[eventlog.OpenCall]).Draw(t, "answered")
	for _, c := range calls {
		m.Blocks = append(m.Blocks, eventlog.ToolResult{
			CallID:   c.CallID,
			ToolName: rapid.SampledFrom([]string{"", "read"}).Draw(t, "tool"),
			Content:  rapid.SliceOfN(genContent(), 0, 2).Draw(t, "content"),
			IsError:  rapid.IntRange(0, 4).Draw(t, "failed") == 0,
		})
	}
	if m.Role == eventlog.RoleUser && rapid.Bool().Draw(t, "comment") {
		m.Blocks = append(m.Blocks, eventlog.Text{Text: genText().Draw(t, "text")})
	}
	return m
}

// genBody draws a body that a log with this head admits.
func genBody(head eventlog.Head) *rapid.Generator[eventlog.Body] {
	return rapid.Custom(func(t *rapid.T) eventlog.Body {
		switch rapid.IntRange(0, 9).Draw(t, "body") {
		case 0:
			r := &eventlog.Reminder{
				Body:              rapid.StringN(1, 20, -1).Draw(t, "reminder"),
				DedupeKey:         rapid.SampledFrom([]string{"", "k1", "k2"}).Draw(t, "key"),
				PreserveOnCompact: rapid.Bool().Draw(t, "preserve"),
				RoleHint:          eventlog.Role(rapid.IntRange(0, int(eventlog.RoleTool)).Draw(t, "hint")),
				Tags:              rapid.SliceOfN(genText(), 0, 2).Draw(t, "tags"),
				Source:            genText().Draw(t, "source"),
			}
			if rapid.Bool().Draw(t, "mortal") {
				ttl := rapid.Uint32Range(0, 5).Draw(t, "ttl")
				r.TTLTurns = &ttl
			}
			return r
		case 1:
			c := &eventlog.Compaction{
				Trigger:      eventlog.CompactionTrigger(rapid.IntRange(0, int(eventlog.TriggerBudgetPressure)).Draw(t, "trigger")),
				Summary:      genText().Draw(t, "summary"),
				KeptEventIDs: rapid.SliceOfN(genText(), 0, 2).Draw(t, "kept"),
				Mode:         genText().Draw(t, "mode"),
				Strategy:     genText().Draw(t, "strategy"),
				NativeJSON:   genBytes().Draw(t, "native"),
			}
			if rapid.Bool().Draw(t, "counted") {
				before, after := rapid.Uint64().Draw(t, "before"), rapid.Uint64().Draw(t, "after")
				c.PreTokens, c.PostTokens = &before, &after
			}
			if rapid.Bool().Draw(t, "decided") {
				c.Decision = genDecision(t, c.Summary != "")
			}
			return c
		case 2:
			return &eventlog.Custom{Type: genText().Draw(t, "type"), JSON: genBytes().Draw(t, "json")}
		default:
			return genMessage(head).Draw(t, "message")
		}
	})
}

// GenEvent draws an event that a log with this head admits, under the id.
func GenEvent(head eventlog.Head, id string) *rapid.Generator[eventlog.Event] {
	return rapid.Custom(func(t *rapid.T) eventlog.Event {
		e := eventlog.Event{ID: id, Time: GenTime().Draw(t, "time"), Body: genBody(head).Draw(t, "body")}
		if rapid.IntRange(0, 2).Draw(t, "labelled") == 0 {
			e.Labels = genMap().Draw(t, "labels")
		}
		if rapid.Bool().Draw(t, "counted") {
			e.Tokens = eventlog.TokenCounts{
				Tokenizer: rapid.SampledFrom([]string{"o200k_base", "heuristic"}).Draw(t, "tokenizer"),
				Blocks:    rapid.SliceOfN(rapid.Uint32(), 0, 4).Draw(t, "counts"),
				Estimated: rapid.Bool().Draw(t, "estimated"),
			}
		}
		return e
	})
}

// GenLog draws the events of a whole valid log, admitted, with their seqs and
// turns.
func GenLog(minEvents, maxEvents int) *rapid.Generator[[]eventlog.Event] {
	return rapid.Custom(func(t *rapid.T) []eventlog.Event {
		var head eventlog.Head
		var log []eventlog.Event
		for i := range rapid.IntRange(minEvents, maxEvents).Draw(t, "length") {
			e := GenEvent(head, "e"+string(rune('0'+i/10))+string(rune('0'+i%10))).Draw(t, "event")
			next, admitted, err := head.Admit([]eventlog.Event{e})
			if err != nil {
				t.Fatalf("the generator drew an event that the log refuses: %v", err)
			}
			head, log = next, append(log, admitted...)
		}
		return log
	})
}

// genDecision draws a valid decision.
func genDecision(t *rapid.T, summary bool) *eventlog.CompactionDecision {
	seq := rapid.Map(rapid.Uint64Range(1, 40), func(n uint64) eventlog.Seq { return eventlog.Seq(n) })
	if rapid.Bool().Draw(t, "undoes") {
		return &eventlog.CompactionDecision{Undoes: seq.Draw(t, "undone")}
	}
	place := rapid.Custom(func(t *rapid.T) eventlog.Place {
		return eventlog.Place{Seq: seq.Draw(t, "seq"), Block: rapid.IntRange(0, 3).Draw(t, "block")}
	})
	if rapid.Bool().Draw(t, "masks") {
		return &eventlog.CompactionDecision{Masked: rapid.SliceOfN(place, 1, 3).Draw(t, "masked")}
	}
	d := &eventlog.CompactionDecision{
		Through: seq.Draw(t, "through"), DigestTokens: rapid.Uint64Range(1, 1<<40).Draw(t, "digest"),
		Kept: rapid.SliceOfN(seq, 0, 2).Draw(t, "kept seqs"), LateAfter: eventlog.Seq(rapid.Uint64Range(0, 3).Draw(t, "late after")), Masked: rapid.SliceOfN(place, 0, 2).Draw(t, "masked too"),
	}
	if summary {
		d.SummaryID, d.SummaryThrough, d.SummaryBy = "s", min(d.Through, seq.Draw(t, "covered")), genText().Draw(t, "by")
	}
	return d
}
