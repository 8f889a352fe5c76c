// Package auth finds out who calls: by a bearer token, a client's certificate, or the user of
// a process at the other end of a unix socket. All of them come down to an Identity, which
// names the tenant whose sessions the caller has.
package auth

import (
	"context"
	"fmt"

	"github.com/contextd/contextd/internal/log/tenantlog"
)

// Identity is who calls.
type Identity struct {
	// Name is for logs; it is no secret.
	Name string
	// Tenant is whose sessions the caller has; "" is those of no tenant.
	Tenant string
	// Process is the one at the other end of a unix socket, where nothing else says who calls.
	Process int
}

// Client names whom limits for each client are held against: a tenant, a caller of none, or a
// process; "" where nothing of this is known.
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

// InTenant is somebody of a tenant, whose name is checked.
func InTenant(tenant string) (Identity, error) {
	return Identity{Tenant: tenant}, checkTenant(tenant)
}

type identityKey struct{}

// With returns a context of calls by somebody.
func With(ctx context.Context, who Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, who)
}

// Of is who makes the call of a context; the zero Identity where nobody was asked.
func Of(ctx context.Context) Identity {
	who, _ := ctx.Value(identityKey{}).(Identity)
	return who
}

// UnauthenticatedError says that a caller did not prove who it is.
type UnauthenticatedError struct{ Reason string }

func (e *UnauthenticatedError) Error() string { return e.Reason }

// DeniedError says that a caller proved who it is, and may not come in.
type DeniedError struct{ Reason string }

func (e *DeniedError) Error() string { return e.Reason }

// checkTenant refuses what cannot name a tenant.
func checkTenant(name string) error {
	if name != "" && !tenantlog.ValidName(name) {
		return fmt.Errorf("tenant %q must be 1 to 64 letters, digits and . _ @ -, beginning with a letter or a digit", name)
	}
	return nil
}
