package daemon_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/cmd/contextd/internal/daemon"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// logged is a log that may be read while it is written.
type logged struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

// take returns what was logged since it was called last.
func (l *logged) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.all.Reset()
	return l.all.String()
}

func policy(expression string) map[string]*contextdv1.Policy {
	return map[string]*contextdv1.Policy{"own": {Projection: &contextdv1.ProjectionPolicy{Policy: "custom", Expression: expression}}}
}

func TestReload(t *testing.T) {
	c := settings(t, func(c *config.Config) {
		c.Store, c.DefaultPolicy, c.Policies = config.StoreMemory, "own", policy("age < 1")
	})
	var log logged
	o := options(t, c)
	o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	signals := make(chan os.Signal)
	type answer struct {
		config.Config
		error
	}
	answers := make(chan answer)
	o.Reloads, o.Reload = signals, func() (config.Config, error) {
		a := <-answers
		return a.Config, a.error
	}
	d, err := daemon.Build(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.Run(ctx) }()
	conn, err := grpc.NewClient(d.Addresses()[0], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	api := contextdv1.NewContextServiceClient(conn)
	if _, err := api.AppendEvents(t.Context(), say("s", "hello")); err != nil {
		t.Fatal(err)
	}
	fingerprint := func(p *contextdv1.Policy) (string, error) {
		stream, err := api.AssembleContext(t.Context(), &contextdv1.AssembleContextRequest{SessionId: "s", Policy: p, Budget: &contextdv1.Budget{MaxTokens: 1000, Tokenizer: "heuristic"}})
		if err != nil {
			return "", err
		}
		first, err := stream.Recv()
		return first.GetHeader().GetProjection().GetPolicyFingerprint(), err
	}
	must := func() string {
		t.Helper()
		got, err := fingerprint(nil)
		if err != nil || got == "" {
			t.Fatalf("%q, %v", got, err)
		}
		return got
	}
	// reload answers the signal before and returns when that was acted upon: the next
	// one is taken only then.
	reload := func(change func(*config.Config), err error) string {
		log.take()
		next := c
		if change != nil {
			change(&next)
		}
		answers <- answer{next, err}
		signals <- syscall.SIGHUP
		return log.take()
	}

	first := must()
	signals <- syscall.SIGHUP
	if got := reload(nil, errors.New("the file is gone")); !strings.Contains(got, "the file is gone") || !strings.Contains(got, "level=ERROR") || must() != first {
		t.Errorf("an error changed something, or was not logged:\n%s", got)
	}
	broken := func(c *config.Config) { c.Policies = policy("age <") }
	if got := reload(broken, nil); !strings.Contains(got, `policies[\"own\"].projection.expression: 1:6`) || must() != first {
		t.Errorf("a broken policy changed something, or was not logged:\n%s", got)
	}
	unknown := func(c *config.Config) { c.Shadow = "gone" }
	if got := reload(unknown, nil); !strings.Contains(got, `shadow: \"gone\" is not a policy of the daemon's configuration`) || must() != first {
		t.Errorf("an unknown shadow changed something, or was not logged:\n%s", got)
	}
	other := func(c *config.Config) {
		c.Policies, c.MaxStreams = policy("age < 2"), 5
		c.Policies["new"], c.Shadow = &contextdv1.Policy{}, "new"
	}
	got := reload(other, nil)
	if !strings.Contains(got, "policies reloaded") || !strings.Contains(got, "shadow=new") || !strings.Contains(got, "settings=[max_streams]") || strings.Contains(got, "level=ERROR") {
		t.Errorf("the reload was logged as\n%s", got)
	}
	if must() == first {
		t.Error("another expression has the same fingerprint")
	}
	if _, err := fingerprint(&contextdv1.Policy{Name: "new"}); err != nil {
		t.Errorf("the new policy: %v", err)
	}
	reload(nil, nil)
	if must() != first {
		t.Error("the old expression has another fingerprint")
	}
	if _, err := fingerprint(&contextdv1.Policy{Name: "new"}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a policy that is gone: %v", err)
	}
	answers <- answer{c, nil}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
