package auth

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"
)

// JWT says which JSON Web Tokens are accepted as bearer tokens.
type JWT struct {
	// Keys is a file with a JWK set, or its URL; empty accepts none.
	Keys string
	// Issuer and Audience are the values that a token's claims must have.
	Issuer, Audience string
	// TenantClaim is the claim that names the tenant; empty for no tenants.
	TenantClaim string
}

// Validate reports the first invalid option, by its key in the file.
func (o JWT) Validate() error {
	if o.Keys == "" {
		if o != (JWT{}) {
			return errors.New("jwt_issuer, jwt_audience and jwt_tenant_claim must not be set without jwt_keys")
		}
		return nil
	}
	if o.Issuer == "" || o.Audience == "" {
		return errors.New("jwt_issuer and jwt_audience must be set with jwt_keys: others have tokens of the same keys")
	}
	if u, ok := o.url(); ok && u.Scheme != "https" && u.Hostname() != "127.0.0.1" {
		return errors.New("jwt_keys must be a file or an https URL: whoever changes keys on the way could sign tokens")
	}
	return nil
}

func (o JWT) url() (*url.URL, bool) {
	u, err := url.Parse(o.Keys)
	return u, err == nil && (u.Scheme == "https" || u.Scheme == "http")
}

// verifier verifies tokens.
type verifier struct {
	options JWT
	parser  *jwt.Parser
	// file has the keys of a file. remote has those of a URL, and refreshes them itself.
	file   *file[keyfunc.Keyfunc]
	remote keyfunc.Keyfunc
	asks   *asks // of a URL
}

// keysTimeout bounds a request for the keys of a URL. A token with an unknown key triggers one. A call that would have
// to wait longer than keysTimeout for that is refused at once.
const keysTimeout = 10 * time.Second

// leeway is how far clocks may differ.
const leeway = 30 * time.Second

// newVerifier returns a verifier that works until ctx ends. If a URL does not answer, that is logged and the
// request repeated later.
func newVerifier(ctx context.Context, o JWT, now func() time.Time, logger *slog.Logger) (*verifier, error) {
	v := &verifier{options: o, parser: jwt.NewParser(
		// Only public-key signatures: the verifier must not hold a key that can sign.
		jwt.WithValidMethods([]string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}),
		jwt.WithIssuer(o.Issuer), jwt.WithAudience(o.Audience), jwt.WithExpirationRequired(), jwt.WithLeeway(leeway), jwt.WithTimeFunc(now),
	)}
	var err error
	if _, remote := o.url(); !remote {
		v.file, err = open("jwt_keys", parseSet, o.Keys)
		return v, err
	}
	v.asks = newAsks()
	v.remote, err = keyfunc.NewDefaultOverrideCtx(ctx, []string{o.Keys}, keyfunc.Override{
		Client: &http.Client{
			Transport:     checkedKeys{http.DefaultTransport, v.asks},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		HTTPTimeout:       keysTimeout,
		RateLimitWaitMax:  keysTimeout,
		RefreshUnknownKID: v.asks.limit,
		RefreshErrorHandlerFunc: func(string) func(context.Context, error) {
			return func(ctx context.Context, err error) {
				if of, ok := errors.AsType[*url.Error](err); ok {
					err = of.Err // the address may hold a secret
				}
				logger.ErrorContext(ctx, "the keys of tokens were not read", "setting", "jwt_keys", "error", err)
			}
		},
	})
	return v, err
}

// maxTried bounds the keys that are tried for a token that names none, which whoever connects can send.
const maxTried = 32

// manyKeysError refuses a token that names none of more than maxTried keys.
type manyKeysError struct{}

func (manyKeysError) Error() string {
	return fmt.Sprintf("names no key (kid), and there are more than %d", maxTried)
}

// keyOf returns the key of a token; all keys if it names none.
func (v *verifier) keyOf(token *jwt.Token) (any, error) {
	key, err := v.keysOf(token)
	if all, ok := key.(jwt.VerificationKeySet); ok && len(all.Keys) > maxTried {
		return nil, manyKeysError{}
	}
	return key, err
}

func (v *verifier) keysOf(token *jwt.Token) (any, error) {
	if v.file != nil {
		return v.file.get().Keyfunc(token)
	}
	if _, named := token.Header["kid"]; !named && !v.asks.answered.Load() {
		_, _ = v.remote.Storage().KeyRead(context.Background(), "") // has the keys asked for, as a name would
	}
	return v.remote.Keyfunc(token)
}

func (v *verifier) identify(token string) (Identity, error) {
	claims := jwt.MapClaims{}
	if _, err := v.parser.ParseWithClaims(token, claims, v.keyOf); err != nil {
		return Identity{}, &UnauthenticatedError{reason(err)}
	}
	subject, _ := claims.GetSubject() // only for the log
	who := Identity{Name: "subject " + subject}
	if v.options.TenantClaim == "" {
		return who, nil
	}
	tenant, ok := claims[v.options.TenantClaim].(string)
	if !ok || tenant == "" {
		return Identity{}, &DeniedError{fmt.Sprintf("the bearer token has no claim %q that names a tenant", v.options.TenantClaim)}
	}
	who.Tenant = tenant
	if err := checkTenant(tenant); err != nil {
		return Identity{}, &DeniedError{"the bearer token's " + err.Error()}
	}
	return who, nil
}

// reason says why a token is refused, without its content.
func reason(err error) string {
	for _, known := range []struct {
		is   error
		text string
	}{
		{manyKeysError{}, manyKeysError{}.Error()},
		{jwt.ErrTokenMalformed, "is not known"},
		{jwt.ErrTokenUnverifiable, "is not signed by a known key"},
		{jwt.ErrTokenSignatureInvalid, "is not signed by a known key"},
		{jwt.ErrTokenExpired, "has expired"},
		{jwt.ErrTokenNotValidYet, "is not valid yet"},
		{jwt.ErrTokenInvalidIssuer, "is of another issuer"},
		{jwt.ErrTokenInvalidAudience, "is for another audience"},
	} {
		if errors.Is(err, known.is) {
			return "the bearer token " + known.text
		}
	}
	return "the bearer token is not valid"
}
