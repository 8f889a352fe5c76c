package assemble_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/assemble"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	"github.com/contextd/contextd/internal/projection"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/render/rules"
)

// TestContextsKeepTheProvidersRules assembles logs of every kind, whole and under pressure:
// what comes is what the provider of the format takes.
func TestContextsKeepTheProvidersRules(t *testing.T) {
	for _, f := range render.Formats() {
		if rules.Of(f.Name) == nil {
			continue // contextd's own
		}
		for _, policy := range []string{"", projection.Full} {
			t.Run(f.Name+" "+policy, func(t *testing.T) {
				rapid.Check(t, func(t *rapid.T) {
					store := memlog.New()
					defer store.Close()
					push(t, store, "s", genUndecidedLog(t)...)
					req := request()
					req.Policy.Projection.Name, req.Budget.Format = policy, f.Name
					req.Budget.Model = rapid.SampledFrom([]string{"", "deepseek-flash"}).Draw(t, "model")
					check := rules.Of(f.Name)
					if req.Budget.Model != "" {
						check = rules.OfReturning(f.Name)
					}
					req.Budget.MaxTokens = rapid.SampledFrom([]uint64{400, 2_000, 10_000_000}).Draw(t, "max_tokens")
					out, err := newEngine(t, store).Assemble(t.Context(), req)
					var over *assemble.BudgetError
					if errors.As(err, &over) {
						return
					}
					if err != nil {
						t.Fatal(err)
					}
					lines := make([][]byte, len(out.Messages))
					for i, m := range out.Messages {
						lines[i] = m.JSON
					}
					for _, v := range check(lines) {
						t.Fatalf("%+v in\n%s", v, lines)
					}
				})
			})
		}
	}
}

// TestMediaBeyondALimit lets a session grow in images beyond what a request may have. In steps, the oldest
// are replaced by descriptions. Hashes are of what is sent, a client learns where its prefix changed, and
// an engine that knows nothing of the session gives the same bytes.
func TestMediaBeyondALimit(t *testing.T) {
	store := memlog.New()
	defer store.Close()
	req := request()
	req.Budget.Format, req.Budget.MaxTokens, req.Budget.InjectionReserve = "anthropic", 10_000_000, 10_000
	image := eventlog.Media{MIMEType: "image/png", Data: "\x89PNG\r\n\x1a\n1", Tokens: 100}
	push(t, store, "s", opening()...)
	engine := newEngine(t, store)
	check := func(req assemble.Request, what string) (sent *assemble.Context, described int) {
		req.Have = assemble.Have{}
		out := mustAssemble(t, engine, req)
		var all [][]byte
		for _, m := range out.Messages {
			all = append(all, m.JSON)
			described += len(m.Conversions)
		}
		for _, v := range rules.Of("anthropic")(all) {
			t.Fatalf("%s: %v", what, v)
		}
		again := mustAssemble(t, newEngine(t, store), req)
		if again.PrefixHash != out.PrefixHash || again.ContextHash != out.ContextHash || again.ContextHash != hashLines(lines(out.Messages)) {
			t.Fatalf("%s: the hashes are %s, %s and %s, %s of a new engine, of %s", what, out.PrefixHash, out.ContextHash, again.PrefixHash, again.ContextHash, hashLines(lines(out.Messages)))
		}
		if out.Projection.ID != "" {
			replay, err := engine.Replay(t.Context(), "s", out.Projection.ID)
			if err != nil || !replay.Same {
				t.Fatalf("%s: the record is not rebuilt: %+v, %v", what, replay, err)
			}
		}
		return out, described
	}
	broken := 0
	for i := range 110 {
		push(t, store, "s", eventlog.Event{ID: fmt.Sprint("image", i), Body: &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{image}}},
			text(fmt.Sprint("answer", i), eventlog.RoleAssistant, "I see."))
		if i < 95 {
			continue
		}
		want := 0
		if i >= 100 {
			want = 51
		}
		out, described := check(req, fmt.Sprint(i+1, " images"))
		if described != want {
			t.Fatalf("%d images: %d are described, not %d", i+1, described, want)
		}
		if by := out.Cache.BrokenBy; by != "" {
			if broken++; by != "media_limits" || i != 100 {
				t.Errorf("%d images: the prefix was broken by %q", i+1, by)
			}
		}
		if i == 99 { // one more, for one call
			with := req
			with.Injections = []render.Injection{{Name: "screen", Blocks: []eventlog.Block{image}}}
			if _, described := check(with, "injected"); described != 51 {
				t.Errorf("with an injection %d are described", described)
			}
		}
	}
	if broken != 1 {
		t.Errorf("the prefix was broken %d times", broken)
	}
}

func hashLines(lines string) string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(lines))) }

// TestReminderBeyondALimit: while a reminder makes a request too large, the oldest media are described, in
// the messages and in their hash.
func TestReminderBeyondALimit(t *testing.T) {
	store := memlog.New()
	defer store.Close()
	req := request()
	req.Budget.Format, req.Budget.MaxTokens = "gemini", 10_000_000
	page := eventlog.Media{MIMEType: "application/pdf", Data: "%PDF-" + strings.Repeat("x", 4_980_000), Tokens: 100}
	push(t, store, "s", append(opening(), eventlog.Event{ID: "pages", Body: &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{page, page, page}}})...)
	engine := newEngine(t, store)
	ttl := uint32(1)
	for i, event := range []eventlog.Event{
		text("answer", eventlog.RoleAssistant, "I see."),
		{ID: "reminder", Body: &eventlog.Reminder{Body: strings.Repeat("Run the tests. ", 10_000), TTLTurns: &ttl}},
		text("more", eventlog.RoleAssistant, "I do."),
	} {
		push(t, store, "s", event)
		out := mustAssemble(t, engine, req)
		if got, want := strings.Count(lines(out.Messages), "application/pdf, "), i%2*2; got != want || hashLines(lines(out.Messages)) != out.PrefixHash {
			t.Errorf("after %s: %d are described, not %d, and the hash is %s of %s", event.ID, got, want, out.PrefixHash, hashLines(lines(out.Messages)))
		}
	}
}
