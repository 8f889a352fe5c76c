package assemble_test

import (
	"fmt"
	"testing"

	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/pointers"
	"github.com/contextd/contextd/internal/records"
)

// BenchmarkPointers completes the pointers of 100 records of a session, as a listing does.
func BenchmarkPointers(b *testing.B) {
	for _, events := range []int{1_000, 4_000} {
		b.Run(fmt.Sprint(events), func(b *testing.B) {
			store, err := disklog.Open(b.TempDir(), disklog.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer store.Close()
			fill(b, store, events)
			engine := newEngine(b, store)
			for range 100 {
				mustAssemble(b, engine, request())
			}
			for b.Loop() {
				reader := pointers.NewReader(store, "s")
				page, err := logtest.Collect(records.After(b.Context(), store, "s", ""))
				if err != nil || len(page) != 100 {
					b.Fatal(len(page), err)
				}
				for _, r := range page {
					if _, err := reader.Read(b.Context(), r.Pointers); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
