package cli

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/cmd/contextd/internal/daemon"
	"github.com/contextd/contextd/cmd/contextd/internal/gauges"
	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	"github.com/contextd/contextd/internal/assemble"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/records"
)

// localSource verifies the sessions of a data directory that no daemon has open.
type localSource struct {
	store  *disklog.Store
	engine *assemble.Engine
}

// openLocal opens a directory that holds a store, with the settings of the environment.
func (c *client) openLocal(ctx context.Context) (*localSource, error) {
	// Opening would create an empty store where there is none, which would verify as correct.
	if !disklog.Exists(c.embedded) {
		return nil, noStore(c.embedded)
	}
	settings, err := c.settings()
	if err != nil {
		return nil, err
	}
	logger := slog.New(slog.NewTextHandler(c.program.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	scrubber, err := settings.Scrubber(nil)
	if err != nil {
		return nil, err
	}
	encryption, err := daemon.Encryption(ctx, settings)
	if err != nil {
		return nil, err
	}
	store, err := disklog.Open(c.embedded, disklog.Options{Logger: logger, Encryption: encryption, ReadOnly: true})
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	return &localSource{store, assemble.New(store, assemble.Options{Gauges: gauges.Open, Scrub: scrubber})}, nil
}

func (l *localSource) close() error { return l.store.Close() }

func (l *localSource) sessions(ctx context.Context, names []string) ([]string, error) {
	all, err := l.store.SessionIDs(ctx)
	if err != nil {
		return nil, err
	}
	for _, id := range names {
		if !slices.Contains(all, id) {
			st, _ := apierr.Convert(eventlog.NoSession(id))
			return nil, st.Err()
		}
	}
	if len(names) > 0 {
		return names, nil
	}
	return all, nil
}

func (l *localSource) log(ctx context.Context, id string) (auditedLog, error) {
	out := auditedLog{how: logChained}
	// Report what is known of a damaged log too.
	session, err := l.store.Session(ctx, id)
	if err == nil {
		out.events, out.chain = uint64(session.Head), wire.ChainHead(session.ChainHead)
		err = l.store.Verify(ctx, id)
	}
	return out, err
}

// life is constant: no other process has the store open.
func (*localSource) life(context.Context, string) (string, error) { return "one", nil }

func (l *localSource) chain(ctx context.Context, id string, seq uint64) (string, error) {
	chain, err := l.store.ChainHead(ctx, id, eventlog.Seq(seq))
	return wire.ChainHead(chain), err
}

// projections also reads all other records, to find damage.
func (l *localSource) projections(ctx context.Context, id string) ([]string, error) {
	var ids []string
	for r, err := range records.Projections(ctx, l.store, id, eventlog.ArtifactQuery{}) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, r.ID)
	}
	return ids, l.store.VerifyArtifacts(ctx, id)
}

func (l *localSource) replay(ctx context.Context, id, projection string) (string, error) {
	replay, err := l.engine.Replay(ctx, id, projection)
	return replay.Difference, err
}
