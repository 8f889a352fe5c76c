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

// BenchmarkAgainstDecoding gives the speed of reading as a share of that of decoding
// the same bytes into plain Go values with the library that the readers use: in CPU
// time, turn and turn about, and of the best turn of each, so that a machine that
// does other things too gives much the same figure.
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

// cpu is how many seconds of CPU time the process spent meanwhile.
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
