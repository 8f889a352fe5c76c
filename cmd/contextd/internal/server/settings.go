package server

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/render"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// tokenizer returns the tokenizer of a budget; nil is the daemon's budget.
func (s *shared) tokenizer(b *contextdv1.Budget) (string, error) {
	resolved, err := wire.BudgetToDomain(b, s.budget).Resolve(s.models)
	if err != nil {
		return "", err
	}
	// Only the name is checked: opening a tokenizer may take long, and the daemon does so before it reports
	// that it is ready.
	if !slices.Contains(budget.Tokenizers(), resolved.Tokenizer) {
		return "", &budget.SpecError{Field: "tokenizer", Reason: fmt.Sprintf("%q is none of %s", resolved.Tokenizer, strings.Join(budget.Tokenizers(), ", "))}
	}
	return resolved.Tokenizer, nil
}

// knownSession is a session with its settings; if the session does not exist, with the settings that it would get.
type knownSession struct {
	session  eventlog.Session
	settings settings
	exists   bool
}

// lost returns an *eventlog.LostError if the session's log is another one than mark is of, is shorter, or has other
// events at the mark. Without a mark any log is accepted. It reads the store only if mark has a chain head and is older
// than the session's head.
func (s *Server) lost(ctx context.Context, id string, k knownSession, mark *contextdv1.LogMark) error {
	if mark == nil {
		return nil
	}
	seen := eventlog.Seq(mark.GetHeadSeq())
	lost := &eventlog.LostError{Session: id, Known: seen, Head: k.session.Head}
	lost.Replaced = k.exists && k.session.IncarnationName() != mark.GetIncarnation()
	if !k.exists || lost.Replaced || k.session.Head < seen {
		return lost
	}
	if mark.GetChainHead() == "" {
		return nil
	}
	chain := k.session.ChainHead
	if seen < k.session.Head {
		var err error
		if chain, err = s.store.ChainHead(ctx, id, seen); err != nil && !eventlog.IsMissing(err, "event") {
			return err
		}
	}
	if lost.Rewritten = wire.ChainHead(chain) != mark.GetChainHead(); lost.Rewritten {
		return lost
	}
	return nil
}

// settingsOf returns a session with its settings.
func (s *Server) settingsOf(ctx context.Context, id string) (knownSession, error) {
	session, err := s.store.Session(ctx, id)
	if eventlog.IsMissing(err) {
		fresh, err := s.newSettings(wire.Settings{})
		return knownSession{settings: fresh}, err
	}
	if err != nil {
		return knownSession{}, err
	}
	found := knownSession{session: session, exists: true}
	var cached bool
	if found.settings, cached = s.settings.get(session.Incarnation); cached {
		return found, nil
	}
	decoding, err := s.takeSettings(ctx, session)
	if err != nil {
		return found, err
	}
	defer decoding.Release()
	decoded, err := wire.DecodeSettings(session.Settings)
	found.session.Settings = nil // decoded, they are not needed twice
	if err != nil {
		return found, err
	}
	if found.settings, err = s.newSettings(decoded); err == nil {
		s.settings.put(session.Incarnation, found.settings)
	}
	return found, err
}

func (s *shared) newSettings(w wire.Settings) (settings, error) {
	tokenizer, err := s.tokenizer(w.Budget)
	if err != nil {
		return settings{}, err
	}
	return settings{policy: w.Policy, budget: w.Budget, tokenizer: tokenizer}, nil
}

// existing is settingsOf for calls that need an existing session.
func (s *Server) existing(ctx context.Context, id string) (settings, error) {
	return s.existingAs(ctx, id, nil)
}

// existingAs is existing for calls with an optional mark of the log that the client knows.
func (s *Server) existingAs(ctx context.Context, id string, mark *contextdv1.LogMark) (settings, error) {
	found, err := s.settingsOf(ctx, id)
	if err == nil {
		err = s.lost(ctx, id, found, mark)
	}
	if err == nil && !found.exists {
		err = eventlog.NoSession(id)
	}
	return found.settings, err
}

// spec is the budget for a request. If it reserves nothing for injections, their own ReserveTokens apply. Tokens are
// counted for the format.
func (s *Server) spec(of settings, request *contextdv1.Budget, injections []render.Injection, format string) budget.Spec {
	spec := wire.BudgetToDomain(request, of.budget, s.budget)
	spec.Format = format
	if spec.InjectionReserve == 0 {
		for _, in := range injections {
			spec.InjectionReserve += in.ReserveTokens
		}
	}
	return spec
}

// preview returns the request for a session's context under its own policy and budget, in contextd's own
// format and without a record.
func (s *Server) preview(ctx context.Context, id string) (assemble.Request, error) {
	session, err := s.existing(ctx, id)
	if err != nil {
		return assemble.Request{}, err
	}
	policy, err := s.policy(session.policy, nil)
	if err != nil {
		return assemble.Request{}, err
	}
	return assemble.Request{
		SessionID: id, Budget: s.spec(session, nil, nil, render.NameContextd), Policy: policy, Preview: true,
	}, nil
}

// Warm opens the tokenizer of the daemon's budget, so that no call has to wait for it.
func (s *shared) Warm() error {
	name, err := s.tokenizer(nil)
	if err != nil {
		return err
	}
	_, err = s.gauges(name)
	return err
}
