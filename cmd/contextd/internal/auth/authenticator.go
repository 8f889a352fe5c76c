package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// Options say who may call. The zero value admits everybody who can connect.
type Options struct {
	// Peers are the processes that may use a unix socket; empty admits all that can open it.
	Peers []Peer
	// TokenFile has the bearer tokens; see parseTokens.
	TokenFile string
	JWT       JWT
	// CertFile and KeyFile are the daemon's certificate for TLS; empty for none.
	CertFile, KeyFile string
	// ClientCAFile has the authorities that sign clients' certificates; empty if clients need no certificate.
	ClientCAFile  string
	ClientTenants ClientTenants
}

// ByNetwork reports whether callers over a network must authenticate.
func (o Options) ByNetwork() bool { return o.ByToken() || o.ClientCAFile != "" }

// ByToken reports whether callers may authenticate by a bearer token.
func (o Options) ByToken() bool { return o.TokenFile != "" || o.JWT.Keys != "" }

// Encrypts reports whether traffic over a network is encrypted.
func (o Options) Encrypts() bool { return o.CertFile != "" }

// Validate reports the first invalid option, by its key in the file.
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

// Authenticator identifies the caller of each call. Its methods may be called from any goroutine.
type Authenticator struct {
	options Options
	tokens  *file[Tokens] // nil without a token file
	jwt     *verifier     // nil without JWT keys
	keys    *file[keys]   // nil without TLS
	// invalid is true once it was logged that the certificate has expired or is not valid yet.
	invalid atomic.Bool
	running running
	close   context.CancelFunc
	now     func() time.Time
	logger  *slog.Logger
}

// New reads the files that the options name. The caller must close the result.
func New(o Options, logger *slog.Logger) (_ *Authenticator, err error) {
	ctx, cancel := context.WithCancel(context.Background())
	a := &Authenticator{options: o, now: time.Now, logger: logger, close: cancel, running: running{all: map[*call]struct{}{}}}
	defer func() {
		if err != nil {
			cancel()
		}
	}()
	if o.TokenFile != "" {
		if a.tokens, err = open("auth_tokens", parseTokens, o.TokenFile); err != nil {
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
		a.checkCertificate(ctx)
	}
	return a, nil
}

// Close stops following changes of the keys at a URL.
func (a *Authenticator) Close() { a.close() }

// rereadEvery is how often files and running calls are checked. It is 5 seconds because a change must apply within 10,
// and is applied at the check after the one that finds it.
const rereadEvery = 5 * time.Second

// Run checks files and running calls every rereadEvery until ctx ends.
func (a *Authenticator) Run(ctx context.Context) {
	tick := time.NewTicker(rereadEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			a.check(ctx, false)
		}
	}
}

// Reload reads changed files again, and ends running calls whose callers would no longer be admitted. An
// invalid file is reported, and its last valid content stays in force.
func (a *Authenticator) Reload(ctx context.Context) { a.check(ctx, true) }

// check is Reload; unless atOnce, it applies files only once they no longer change.
func (a *Authenticator) check(ctx context.Context, atOnce bool) {
	for _, f := range a.files() {
		f.reload(ctx, a.logger, atOnce)
	}
	a.checkCertificate(ctx)
	a.recheck(ctx)
}

// checkCertificate logs, once, that the daemon's certificate is not valid now by the daemon's clock, so that clients
// refuse it.
func (a *Authenticator) checkCertificate(ctx context.Context) {
	if a.keys == nil {
		return
	}
	err := a.keys.get().valid(a.now())
	if before := a.invalid.Swap(err != nil); err != nil && !before {
		a.logger.ErrorContext(ctx, "nobody will connect over TLS before there is another certificate", "setting", "tls_cert", "error", err)
	}
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

// ReadsFiles reports whether credentials come from files, which may change, or from a URL, which may not answer.
func (a *Authenticator) ReadsFiles() bool {
	return len(a.files()) > 0 || a.jwt != nil && a.jwt.remote != nil
}

// Healthy reports whether the present content of all files is in force, the keys of a URL were read, and the daemon's
// certificate is valid.
func (a *Authenticator) Healthy() bool {
	if a.jwt != nil && a.jwt.remote != nil && !a.jwt.asks.answered.Load() {
		return false
	}
	if a.keys != nil && a.keys.get().valid(a.now()) != nil {
		return false
	}
	return !slices.ContainsFunc(a.files(), func(f reloader) bool { return !f.well() })
}

// Certificate returns for how long the daemon's certificate is valid in all, and from now on: negative once it has
// expired. has is false if there is no certificate.
func (a *Authenticator) Certificate() (lifetime, remaining time.Duration, has bool) {
	if a.keys == nil {
		return 0, 0, false
	}
	leaf := a.keys.get().certificate.Leaf
	return leaf.NotAfter.Sub(leaf.NotBefore), leaf.NotAfter.Sub(a.now()), true
}

// Authenticate returns a context with the caller's Identity. The context ends, with an error as its cause,
// once the caller would no longer be admitted. The caller must call done at the end of the call. The error is
// an *UnauthenticatedError or a *DeniedError.
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
		return ctx, func() {}, nil // a process's user does not change, so the call need not be rechecked
	}
	ctx, end := context.WithCancelCause(ctx)
	remove := a.running.add(&call{ctx, who.Tenant, end})
	return ctx, func() {
		remove()
		end(nil)
	}, nil
}

// identify prefers a bearer token to a certificate, since a token is chosen for the call.
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

// missing returns the error text for a call without credentials.
func (o Options) missing() string {
	const token = "the call has no bearer token in its metadata \"authorization\""
	if o.ClientCAFile != "" && o.ByToken() {
		return token + ", and its client no certificate"
	}
	return token
}

// bearer returns the call's bearer token; "" if it has none.
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
