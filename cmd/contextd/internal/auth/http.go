package auth

import (
	"crypto/tls"
	"errors"
	"net"
	"net/http"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

// Listener returns a listener for HTTP that speaks TLS if there is a certificate.
func (a *Authenticator) Listener(l net.Listener) net.Listener {
	if a.keys == nil {
		return l
	}
	return tls.NewListener(l, a.tls("http/1.1"))
}

// Handler passes on requests that authenticate as calls of the API do, by the header Authorization or a
// client certificate. Others get 401, or 403 if the caller is known but not allowed. Requests by web pages of
// other origins are refused.
func (a *Authenticator) Handler(next http.Handler) http.Handler {
	return http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := metadata.NewIncomingContext(r.Context(), metadata.MD{"authorization": r.Header.Values("Authorization")})
		p := &peer.Peer{}
		if r.TLS != nil {
			p.AuthInfo = credentials.TLSInfo{State: *r.TLS}
		}
		ctx, done, err := a.Authenticate(peer.NewContext(ctx, p))
		if err != nil {
			status := http.StatusForbidden
			if _, ok := errors.AsType[*UnauthenticatedError](err); ok {
				status = http.StatusUnauthorized
				w.Header().Set("WWW-Authenticate", "Bearer")
			}
			http.Error(w, err.Error(), status)
			return
		}
		defer done()
		next.ServeHTTP(w, r.WithContext(ctx))
	}))
}
