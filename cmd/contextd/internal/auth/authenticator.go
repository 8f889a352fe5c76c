package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// Options say who is let in. The zero value lets everybody in who can connect.
type Options struct {
	// Peers are the processes that may use a unix socket; none is all that can open it.
	Peers []Peer
	// TokenFile has the bearer tokens; see ParseTokens.
	TokenFile string
	JWT       JWT
	// CertFile and KeyFile are the daemon's certificate for TLS; empty for none.
	CertFile, KeyFile string
	// ClientCAFile has the authorities that clients' certificates are signed by; empty where
	// clients need none.
	ClientCAFile  string
	ClientTenants ClientTenants
}

// ByNetwork reports whether callers that come over a network have to prove who they are.
func (o Options) ByNetwork() bool { return o.ByToken() || o.ClientCAFile != "" }

// ByToken reports whether callers may prove it by a bearer token.
func (o Options) ByToken() bool { return o.TokenFile != "" || o.JWT.Keys != "" }

// Encrypts reports whether what goes over a network is encrypted.
func (o Options) Encrypts() bool { return o.CertFile != "" }

// Validate names the first option that makes no sense, by its key in the file.
func (o Options) Validate() error {
	if (o.CertFile == "") != (o.KeyFile == "") {
		return errors.New("tls_cert and tls_key must both be set, or neither")
	}
	if o.ClientCAFile != "" && o.CertFile == "" {
		return errors.New("tls_client_ca must not be set without tls_cert: there is no TLS")
	}
	if len(o.ClientTenants) > 0 && o.ClientCAFile == "" {
		return errors.New("tls_client_tenants must not be set without tls_client_ca: clients have no certificates")
	}
	return o.JWT.Validate()
}

// Authenticator finds out who makes a call. Its methods may be called from any goroutine.
type Authenticator struct {
	options Options
	tokens  *file[Tokens] // nil if there are none
	jwt     *verifier     // nil if there are none
	keys    *file[keys]   // nil without TLS
	running running
	close   context.CancelFunc
	now     func() time.Time
	logger  *slog.Logger
}

// New reads the files that the options name. What it returns must be closed.
func New(o Options, logger *slog.Logger) (_ *Authenticator, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	a := &Authenticator{options: o, now: time.Now, logger: logger, close: cancel, running: running{all: map[*call]struct{}{}}}
	defer func() {
		if err != nil {
			cancel()
		}
	}()
	if o.TokenFile != "" {
		if a.tokens, err = open("auth_tokens", ParseTokens, o.TokenFile); err != nil {
			return nil, err
		}
	}
	if o.JWT.Keys != "" {
		if a.jwt, err = newVerifier(ctx, o.JWT, func() time.Time { return a.now() }, logger); err != nil {
			return nil, err
		}
	}
	if o.CertFile != "" {
		files := []string{o.CertFile, o.KeyFile}
		if o.ClientCAFile != "" {
			files = append(files, o.ClientCAFile)
		}
		if a.keys, err = open("tls_cert", parseKeys, files...); err != nil {
			return nil, err
		}
		a.keys.replaces = func(k keys) error { return k.valid(a.now()) }
		if err := a.keys.get().valid(a.now()); err != nil {
			logger.ErrorContext(ctx, "nobody will connect over TLS before there is another certificate", "setting", "tls_cert", "error", err)
		}
	}
	return a, nil
}

// Close ends what follows the changes of keys.
func (a *Authenticator) Close() { a.close() }

// rereadEvery is how often files are looked at, and whether the callers of running calls
// would still be let in: twice in the 10 seconds within which a change counts, since an empty
// file has to be found so twice.
const rereadEvery = 5 * time.Second

// Run reads files again when they change, and ends calls, until ctx ends.
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

// Reload reads the files again that have changed, and ends the calls of those who are not
// let in any more. A file that is wrong is reported, and what was read before stays in force.
func (a *Authenticator) Reload(ctx context.Context) {
	for _, f := range a.files() {
		f.reload(ctx, a.logger)
	}
	a.recheck(ctx)
}

func (a *Authenticator) files() (all []reloader) {
	if a.tokens != nil {
		all = append(all, a.tokens)
	}
	if a.jwt != nil && a.jwt.file != nil {
		all = append(all, a.jwt.file)
	}
	if a.keys != nil {
		all = append(all, a.keys)
	}
	return all
}

// ReadsFiles reports whether there are files that may change.
func (a *Authenticator) ReadsFiles() bool { return len(a.files()) > 0 }

// Healthy reports whether what the files hold is in force, and the daemon's certificate valid.
func (a *Authenticator) Healthy() bool {
	if a.keys != nil && a.keys.get().valid(a.now()) != nil {
		return false
	}
	return !slices.ContainsFunc(a.files(), func(f reloader) bool { return !f.well() })
}

// Authenticate returns a context that knows who calls. It ends, with the error as its cause,
// when the caller would not be let in any more; done is to be called at the end of the call.
// The error is an *UnauthenticatedError or a *DeniedError.
func (a *Authenticator) Authenticate(ctx context.Context) (_ context.Context, done func(), err error) {
	who, err := a.identify(ctx)
	if err != nil {
		return nil, nil, err
	}
	if who.Name != "" {
		logging.AddFields(ctx, logging.Fields{"caller", who.Name})
	}
	if who.Tenant != "" {
		logging.AddFields(ctx, logging.Fields{"tenant", who.Tenant})
	}
	ctx = With(ctx, who)
	if !a.options.ByNetwork() {
		return ctx, func() {}, nil // what the system says of a process stays as it is
	}
	ctx, end := context.WithCancelCause(ctx)
	remove := a.running.add(&call{ctx, who.Tenant, end})
	return ctx, func() {
		remove()
		end(nil)
	}, nil
}

// identify takes a bearer token before anything else: whoever brings one says as whom the
// call is to be made.
func (a *Authenticator) identify(ctx context.Context) (Identity, error) {
	if a.options.ByToken() {
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
	case credentials.TLSInfo:
		if len(info.State.VerifiedChains) > 0 {
			return a.byCertificate(info.State)
		}
	}
	if a.options.ByNetwork() {
		return Identity{}, &UnauthenticatedError{a.options.missing()}
	}
	return Identity{}, nil
}

// missing says what a call would have to bring.
func (o Options) missing() string {
	const token = "the call has no bearer token in its metadata \"authorization\""
	if o.ClientCAFile != "" && o.ByToken() {
		return token + ", and its client no certificate"
	}
	return token
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
	if a.tokens != nil {
		if who, ok := a.tokens.get().find(token); ok {
			return who, nil
		}
	}
	if a.jwt != nil {
		return a.jwt.identify(token)
	}
	return Identity{}, &UnauthenticatedError{"the bearer token is not known"}
}

func (a *Authenticator) byPeer(info socketInfo) (Identity, error) {
	who := info.identity()
	if len(a.options.Peers) == 0 {
		return who, nil
	}
	for _, p := range a.options.Peers {
		if p.matches(info) {
			who.Tenant = p.Tenant
			return who, nil
		}
	}
	return Identity{}, &DeniedError{fmt.Sprintf("user %d of group %d is none of unix_socket_peers", info.UID, info.GID)}
}
