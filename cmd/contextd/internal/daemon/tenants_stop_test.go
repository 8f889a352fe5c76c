package daemon

import (
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/internal/guard"
)

// TestTenantsStop: a stop waits for a tenant that is being built, and none is built after it.
func TestTenantsStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leave := make(chan struct{})
		all := newTenants(func(string) (*tenant, error) {
			<-leave
			return &tenant{}, nil
		}, false, nil)
		built, stopped := make(chan error, 1), make(chan struct{})
		go func() {
			_, err := all.get("a")
			built <- err
		}()
		synctest.Wait()
		go func() {
			all.stop()
			close(stopped)
		}()
		synctest.Wait()
		select {
		case <-stopped:
			t.Error("it stopped before the tenant was built")
		default:
		}
		if _, err := all.get("b"); !errors.Is(err, apierr.ErrDraining) {
			t.Errorf("another tenant: %v", err)
		}
		close(leave)
		if err := <-built; err != nil {
			t.Error(err)
		}
		<-stopped
		if _, err := all.get("a"); err != nil {
			t.Errorf("a tenant that is there: %v", err)
		}
	})
}

// TestTenantsResume: a tenant is served although what was begun for it cannot be resumed.
func TestTenantsResume(t *testing.T) {
	before := guard.Panics()
	all := newTenants(func(string) (*tenant, error) { return &tenant{}, nil }, true, slog.New(slog.DiscardHandler))
	if _, err := all.get("a"); err != nil { // without summaries
		t.Error(err)
	}
	all.stop()
	if n := guard.Panics() - before; n != 1 {
		t.Errorf("%d panics", n)
	}
}
