package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// Options say who is let in. The zero value lets everybody in who can connect.
type Options struct {
	// Peers are the processes that may use a unix socket; none is all that can open it.
	Peers []Peer
	// TokenFile has the bearer tokens; see ParseTokens.
	TokenFile string
}

// ByNetwork reports whether callers that come over a network have to prove who they are.
func (o Options) ByNetwork() bool { return o.TokenFile != "" }

// Authenticator finds out who makes a call. Its methods may be called from any goroutine.
type Authenticator struct {
	options Options
	tokens  *file[Tokens] // nil if there are none
	logger  *slog.Logger
}

// New reads the files that the options name.
func New(o Options, logger *slog.Logger) (*Authenticator, error) {
	a := &Authenticator{options: o, logger: logger}
	var err error
	if o.TokenFile != "" {
		a.tokens, err = open("auth_tokens", ParseTokens, o.TokenFile)
	}
	return a, err
}

// rereadEvery is how often files are looked at.
const rereadEvery = 10 * time.Second

// Run reads files again when they change, until ctx ends.
func (a *Authenticator) Run(ctx context.Context) {
	tick := time.NewTicker(rereadEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			a.Reload(ctx)
		}
	}
}

// Reload reads the files again that have changed. One that is wrong is reported, and what
// was read before stays in force.
func (a *Authenticator) Reload(ctx context.Context) {
	for _, f := range a.files() {
		f.reload(ctx, a.logger)
	}
}

func (a *Authenticator) files() (all []reloader) {
	if a.tokens != nil {
		all = append(all, a.tokens)
	}
	return all
}

// Authenticate returns a context that knows who calls. The error is an
// *UnauthenticatedError or a *DeniedError.
func (a *Authenticator) Authenticate(ctx context.Context) (context.Context, error) {
	who, err := a.identify(ctx)
	if err != nil {
		return ctx, err
	}
	if who.Name != "" {
		logging.AddFields(ctx, logging.Fields{"caller", who.Name})
	}
	if who.Tenant != "" {
		logging.AddFields(ctx, logging.Fields{"tenant", who.Tenant})
	}
	return With(ctx, who), nil
}

// identify takes a bearer token before anything else: whoever brings one says as whom the
// call is to be made.
func (a *Authenticator) identify(ctx context.Context) (Identity, error) {
	if a.options.ByNetwork() {
		token, err := bearer(ctx)
		if err != nil {
			return Identity{}, err
		}
		if token != "" {
			return a.byToken(token)
		}
	}
	p, ok := peer.FromContext(ctx)
	if !ok {
		return Identity{}, errors.New("a call without a connection")
	}
	switch info := p.AuthInfo.(type) {
	case socketInfo:
		return a.byPeer(info)
	case Identity:
		return info, nil
	}
	if a.options.ByNetwork() {
		return Identity{}, &UnauthenticatedError{"the call has no bearer token in its metadata \"authorization\""}
	}
	return Identity{}, nil
}

// bearer is the token that a call brings; "" if it brings none.
func bearer(ctx context.Context) (string, error) {
	values := metadata.ValueFromIncomingContext(ctx, "authorization")
	if len(values) == 0 {
		return "", nil
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if len(values) > 1 || !strings.EqualFold(scheme, "bearer") || token == "" {
		return "", &UnauthenticatedError{"the call's metadata \"authorization\" must be \"Bearer \" and a token, once"}
	}
	return token, nil
}

func (a *Authenticator) byToken(token string) (Identity, error) {
	if who, ok := a.tokens.get().find(token); ok {
		return who, nil
	}
	return Identity{}, &UnauthenticatedError{"the bearer token is not known"}
}

func (a *Authenticator) byPeer(info socketInfo) (Identity, error) {
	name := fmt.Sprintf("uid %d", info.UID)
	if len(a.options.Peers) == 0 {
		return Identity{Name: name}, nil
	}
	for _, p := range a.options.Peers {
		if p.matches(info) {
			return Identity{Name: name, Tenant: p.Tenant}, nil
		}
	}
	return Identity{}, &DeniedError{fmt.Sprintf("user %d of group %d is none of unix_socket_peers", info.UID, info.GID)}
}
