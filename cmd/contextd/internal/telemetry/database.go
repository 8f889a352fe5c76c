package telemetry

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/contextd/contextd/internal/log/pglog"
)

const (
	// tablesEvery is how long the sizes of tables are cached; tablesWithin is how long a scrape waits for new
	// ones.
	tablesEvery  = time.Minute
	tablesWithin = 2 * time.Second
)

// Database is a store whose connections and tables are reported.
type Database interface {
	Pool() pglog.Pool
	Tables(ctx context.Context) ([]pglog.Table, error)
}

// ObserveDatabase reports the connections to a database, and the sizes of its tables.
func (t *Telemetry) ObserveDatabase(db Database, clock func() time.Time) error {
	var errs []error
	m := t.meter()
	gauge := func(name, unit, description string) metric.Int64ObservableGauge {
		g, err := m.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(description))
		errs = append(errs, err)
		return g
	}
	connections := gauge("contextd.database.connections", "{connection}", "Connections to the database, by state: used or idle.")
	most := gauge("contextd.database.connections.max", "{connection}", "The most connections that there may be.")
	rows := gauge("contextd.database.rows", "{row}", "Rows of a table, as the database estimates them.")
	dead := gauge("contextd.database.rows.dead", "{row}", "Rows of a table that a vacuum would free, as the database estimates them.")
	size := gauge("contextd.database.size", "By", "Bytes of a table, by part: rows or indexes.")
	waits, err := m.Int64ObservableCounter("contextd.database.waits", metric.WithUnit("{statement}"),
		metric.WithDescription("Statements that waited for a connection."))
	errs = append(errs, err)
	waited, err := m.Float64ObservableCounter("contextd.database.wait.duration", metric.WithUnit("s"),
		metric.WithDescription("Time that statements waited for a connection, of all together."))
	if err := errors.Join(append(errs, err)...); err != nil {
		return err
	}
	tables := &tableSizes{db: db, clock: clock}
	_, err = m.RegisterCallback(func(ctx context.Context, o metric.Observer) error {
		pool := db.Pool()
		o.ObserveInt64(connections, pool.Used, metric.WithAttributes(attribute.String("state", "used")))
		o.ObserveInt64(connections, pool.Idle, metric.WithAttributes(attribute.String("state", "idle")))
		o.ObserveInt64(most, pool.Max)
		o.ObserveInt64(waits, pool.Waits)
		o.ObserveFloat64(waited, pool.Waited.Seconds())
		for _, t := range tables.now(ctx) {
			of := metric.WithAttributes(attribute.String("table", t.Name))
			o.ObserveInt64(rows, t.Rows, of)
			o.ObserveInt64(dead, t.Dead, of)
			o.ObserveInt64(size, t.Bytes, metric.WithAttributes(attribute.String("table", t.Name), attribute.String("part", "rows")))
			o.ObserveInt64(size, t.Indexes, metric.WithAttributes(attribute.String("table", t.Name), attribute.String("part", "indexes")))
		}
		return nil
	}, connections, most, rows, dead, size, waits, waited)
	return err
}

// tableSizes caches the sizes of tables. While the database does not answer, the last sizes are reported.
type tableSizes struct {
	db    Database
	clock func() time.Time

	mu    sync.Mutex
	asked time.Time
	known []pglog.Table
}

func (s *tableSizes) now(ctx context.Context) []pglog.Table {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.clock(); s.asked.IsZero() || now.Sub(s.asked) >= tablesEvery {
		s.asked = now
		limited, cancel := context.WithTimeout(ctx, tablesWithin)
		defer cancel()
		if all, err := s.db.Tables(limited); err == nil {
			s.known = all
		}
	}
	return s.known
}
