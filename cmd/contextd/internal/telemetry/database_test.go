package telemetry

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/contextd/contextd/internal/log/pglog"
)

type database struct {
	asked int
	err   error
}

func (*database) Pool() pglog.Pool { return pglog.Pool{} }

func (d *database) Tables(context.Context) ([]pglog.Table, error) {
	d.asked++
	return []pglog.Table{{Name: "t", Rows: int64(d.asked)}}, d.err
}

// TestTablesAreAskedForNowAndThen: the database is not asked at every scrape, since scrapes are frequent,
// come from several collectors, and go on while the database is away.
func TestTablesAreAskedForNowAndThen(t *testing.T) {
	now := time.Unix(1, 0)
	db := &database{}
	s := &tableSizes{db: db, clock: func() time.Time { return now }}
	for _, step := range []struct {
		later       time.Duration
		err         error
		asked, rows int
	}{
		{0, nil, 1, 1},
		{tablesEvery - 1, nil, 1, 1},
		{1, nil, 2, 2},
		{tablesEvery, errors.New("away"), 3, 2},
		{time.Second, nil, 3, 2},
		{tablesEvery, nil, 4, 4},
	} {
		now, db.err = now.Add(step.later), step.err
		if got := s.now(t.Context()); len(got) != 1 || got[0].Rows != int64(step.rows) || db.asked != step.asked {
			t.Errorf("%+v: asked %d times, got %+v", step, db.asked, got)
		}
	}
}
