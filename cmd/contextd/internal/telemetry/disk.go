package telemetry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/metric"

	"github.com/contextd/contextd/internal/log/disklog"
)

// NewSyncs returns a function that records the duration of a sync of the disk once it has ended, and reports that of
// the longest one under way: a sync on a disk that hangs does not end.
func (t *Telemetry) NewSyncs(running func() time.Duration) (func(time.Duration), error) {
	b := builder{meter: t.meter()}
	took := b.histogram("contextd.disk.sync.duration", "Time that the disk took to sync what was appended.")
	_, err := b.meter.Float64ObservableGauge("contextd.disk.sync.running", metric.WithUnit("s"),
		metric.WithDescription("Time that the longest sync under way has taken, 0 where there is none."),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			o.Observe(running().Seconds())
			return nil
		}))
	b.errs = append(b.errs, err)
	return func(d time.Duration) { took.Record(context.Background(), d.Seconds()) }, errors.Join(b.errs...)
}

// ObserveDisk reports the free space and the reserve of the store's disk.
func (t *Telemetry) ObserveDisk(disk func() disklog.Disk) error {
	m := t.meter()
	var gauges [6]metric.Int64ObservableGauge
	for i, g := range []struct{ name, unit, description string }{
		{"contextd.disk.free", "By", "Free bytes of the store's file system."},
		{"contextd.disk.size", "By", "Size of the store's file system."},
		{"contextd.disk.reserve", "By", "Bytes that are kept free for work that must go on when the disk is full."},
		{"contextd.disk.full", "", "1 while appends are refused because the disk is full, else 0."},
		{"contextd.disk.damaged", "{file}", "Files of the store that were found damaged since it was opened."},
		{"contextd.disk.erasing", "{session}", "Deleted sessions whose bytes are still on the disk."},
	} {
		var err error
		if gauges[i], err = m.Int64ObservableGauge(g.name, metric.WithUnit(g.unit), metric.WithDescription(g.description)); err != nil {
			return fmt.Errorf("disk metrics: %w", err)
		}
	}
	_, err := m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		d := disk()
		full := int64(0)
		if d.Full {
			full = 1
		}
		for i, value := range []int64{int64(d.Free), int64(d.Total), int64(d.Reserve), full, int64(d.Damaged), int64(d.Erasing)} {
			o.ObserveInt64(gauges[i], value)
		}
		return nil
	}, gauges[0], gauges[1], gauges[2], gauges[3], gauges[4], gauges[5])
	return err
}
