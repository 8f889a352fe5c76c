// Package auth identifies callers: by a bearer token, a client's certificate, or the user of the process at
// the other end of a unix socket. The result is an Identity, with the tenant whose sessions the caller may
// use.
package auth

import (
	"context"
	"fmt"

	"github.com/contextd/contextd/internal/log/tenantlog"
)

// Identity is who calls.
type Identity struct {
	// Name is for logs. It is not secret.
	Name string
	// Tenant is the tenant whose sessions the caller may use; "" for sessions of no tenant.
	Tenant string
	// Process is the id of the process at the other end of a unix socket, if nothing else identifies the
	// caller.
	Process int
}

// Client returns the key for limits per client: the tenant, else the process, else the caller's name; "" if
// none is known.
func (who Identity) Client() string {
	switch {
	case who.Tenant != "":
		return "tenant " + who.Tenant
	case who.Process != 0:
		return fmt.Sprintf("%s, process %d", who.Name, who.Process)
	default:
		return who.Name
	}
}

// InTenant returns the identity of an anonymous caller of a tenant. It refuses invalid names of tenants.
func InTenant(tenant string) (Identity, error) {
	return Identity{Tenant: tenant}, checkTenant(tenant)
}

type identityKey struct{}

// With returns a context with the identity of its caller.
func With(ctx context.Context, who Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, who)
}

// Of returns the caller's identity in a context; the zero Identity if there is none.
func Of(ctx context.Context) Identity {
	who, _ := ctx.Value(identityKey{}).(Identity)
	return who
}

// UnauthenticatedError reports that a caller did not prove its identity.
type UnauthenticatedError struct{ Reason string }

func (e *UnauthenticatedError) Error() string { return e.Reason }

// DeniedError reports that a caller proved its identity, but is not allowed.
type DeniedError struct{ Reason string }

func (e *DeniedError) Error() string { return e.Reason }

// checkTenant refuses invalid names of tenants.
func checkTenant(name string) error {
	if name != "" && !tenantlog.ValidName(name) {
		return fmt.Errorf("tenant %q must be 1 to 64 letters, digits and . _ @ -, beginning with a letter or a digit", name)
	}
	return nil
}
