package harness_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/contextd/contextd/internal/harness"
)

// benchFiles are large sessions of each kind of file: JSON Lines, and one document.
var benchFiles = []string{
	"entireio__cli/7eb280e769-12__full.jsonl.gz",
	"EntityProcess__agentv/34f597b72d-1__full.jsonl.gz",
	"dayhaysoos__nimbus/7e846f866c-5__full.jsonl.gz",
	"SWE-agent__mini-swe-agent/deepseek_lite_dev_noparallel__sqlfluff__sqlfluff-1733.traj.json.gz",
	"badlogic__pi-mono/large-session.jsonl.gz",
}

// BenchmarkRead reads sessions; BenchmarkUnmarshal is what it is measured against:
// decoding the same bytes into plain Go values and doing nothing with them.
func BenchmarkRead(b *testing.B) {
	for _, name := range benchFiles {
		data := corpusFile(b, name)
		b.Run(name[:8], func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := harness.Read(bytes.NewReader(data), ""); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkUnmarshal(b *testing.B) {
	for _, name := range benchFiles {
		data := corpusFile(b, name)
		b.Run(name[:8], func(b *testing.B) {
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				dec := json.NewDecoder(bytes.NewReader(data))
				for {
					var v any
					if err := dec.Decode(&v); errors.Is(err, io.EOF) {
						break
					} else if err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
