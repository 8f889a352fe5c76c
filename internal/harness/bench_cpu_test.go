//go:build unix

package harness_test

import (
	"bytes"
	"errors"
	"io"
	"math"
	"syscall"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/contextd/contextd/internal/harness"
)

// BenchmarkAgainstDecoding compares the readers with decoding the same bytes into plain Go values by the
// library that they use. It alternates the two and takes the best CPU time of each, so that the ratio is much
// the same on a busy machine.
func BenchmarkAgainstDecoding(b *testing.B) {
	for _, name := range benchFiles {
		data := corpusFile(b, name)
		b.Run(name[:8], func(b *testing.B) {
			read, decode := math.Inf(1), math.Inf(1)
			for b.Loop() {
				read = min(read, cpu(b, func() error {
					_, err := harness.Read(bytes.NewReader(data), "")
					return err
				}))
				decode = min(decode, cpu(b, func() error { return decodeAll(data) }))
			}
			b.ReportMetric(decode/read, "of-decoding")
			b.ReportMetric(float64(len(data))/1e6/read, "read-MB/cpu-s")
			b.ReportMetric(float64(len(data))/1e6/decode, "decode-MB/cpu-s")
		})
	}
}

func decodeAll(data []byte) error {
	dec := jsontext.NewDecoder(bytes.NewReader(data), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		var v any
		if err := jsonv2.UnmarshalDecode(dec, &v); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// cpu is how many seconds of CPU time the process spends while do runs.
func cpu(b *testing.B, do func() error) float64 {
	b.Helper()
	before := spent(b)
	if err := do(); err != nil {
		b.Fatal(err)
	}
	return (spent(b) - before).Seconds()
}

func spent(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
