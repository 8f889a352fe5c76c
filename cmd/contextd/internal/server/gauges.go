package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/render"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// tokenizer is the one that a budget counts by; nil is the daemon's budget.
func (s *Server) tokenizer(b *contextdv1.Budget) (string, error) {
	resolved, err := wire.BudgetToDomain(b, s.budget).Resolve(s.models)
	if err != nil {
		return "", err
	}
	// By name alone: opening one may take long, and the daemon does it before it
	// reports to be ready.
	if !slices.Contains(budget.Tokenizers(), resolved.Tokenizer) {
		return "", &budget.SpecError{Field: "tokenizer", Reason: fmt.Sprintf("%q is none of %s", resolved.Tokenizer, strings.Join(budget.Tokenizers(), ", "))}
	}
	return resolved.Tokenizer, nil
}

// settingsOf returns the settings of a session. known is false if there is no
// such session: then they are those it would be made with.
func (s *Server) settingsOf(ctx context.Context, id string) (_ settings, known bool, _ error) {
	if cached, ok := s.sessions.get(id); ok {
		return cached, true, nil
	}
	since := s.sessions.generation()
	session, err := s.store.Session(ctx, id)
	var missing *eventlog.NotFoundError
	if errors.As(err, &missing) {
		fresh, err := s.newSettings(wire.Settings{})
		return fresh, false, err
	}
	if err != nil {
		return settings{}, false, err
	}
	decoded, err := wire.DecodeSettings(session.Settings)
	if err != nil {
		return settings{}, true, err
	}
	found, err := s.newSettings(decoded)
	if err == nil {
		s.sessions.put(since, id, found)
	}
	return found, true, err
}

func (s *Server) newSettings(w wire.Settings) (settings, error) {
	tokenizer, err := s.tokenizer(w.Budget)
	if err != nil {
		return settings{}, err
	}
	return settings{policy: w.Policy, budget: w.Budget, tokenizer: tokenizer}, nil
}

// existing is settingsOf for calls that need the session to be there.
func (s *Server) existing(ctx context.Context, id string) (settings, error) {
	found, known, err := s.settingsOf(ctx, id)
	if err == nil && !known {
		err = &eventlog.NotFoundError{Kind: "session", Name: id}
	}
	return found, err
}

// spec is the budget that holds for a request. Where it reserves nothing for
// injections, they get what they reserve for themselves. Tokens are counted for the
// format.
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

// Warm opens the tokenizer that sessions without a budget of their own count by,
// so that no call has to wait for it.
func (s *Server) Warm() error {
	name, err := s.tokenizer(nil)
	if err != nil {
		return err
	}
	_, err = s.gauges(name)
	return err
}
