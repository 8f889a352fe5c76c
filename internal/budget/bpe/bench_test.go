package bpe

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"go/build"
	"math/rand"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

const benchBytes = 256 << 10

// benchTexts are texts of benchBytes as agents meet them. Source is the standard
// library's, prose its comments, JSON its lines as a search tool reports them.
func benchTexts(b *testing.B) map[string]string {
	b.Helper()
	files, err := filepath.Glob(filepath.Join(build.Default.GOROOT, "src", "net", "http", "*.go"))
	if err != nil || len(files) == 0 {
		b.Skipf("SKIPPED: the standard library's source, of which the texts are made, is not under GOROOT %q", build.Default.GOROOT)
	}
	var source, prose bytes.Buffer
	type match struct {
		File string `json:"file"`
		Line int    `json:"line"`
		Text string `json:"text"`
	}
	var matches []match
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		source.Write(data)
		for i, line := range strings.Split(string(data), "\n") {
			if comment, ok := strings.CutPrefix(strings.TrimSpace(line), "// "); ok {
				prose.WriteString(comment + "\n")
			}
			if i%3 == 0 {
				matches = append(matches, match{filepath.Base(file), i, line})
			}
		}
	}
	found, err := json.Marshal(matches)
	if err != nil {
		b.Fatal(err)
	}
	binary := make([]byte, benchBytes)
	rand.New(rand.NewSource(1)).Read(binary)
	texts := map[string]string{
		"source": source.String()[:benchBytes],
		"prose":  prose.String()[:benchBytes],
		"json":   string(found)[:benchBytes],
		"base64": base64.StdEncoding.EncodeToString(binary)[:benchBytes],
	}
	var mixed strings.Builder
	for _, name := range []string{"prose", "json", "source", "base64"} {
		mixed.WriteString(texts[name][:benchBytes/4])
	}
	for _, text := range sampleTexts(b) {
		mixed.WriteString(text)
	}
	texts["mixed"] = mixed.String()
	return texts
}

// BenchmarkCount compares this package, with warm caches and with empty ones,
// with tiktoken-go.
func BenchmarkCount(b *testing.B) {
	texts := benchTexts(b)
	for _, name := range Names() {
		enc, tk := open(b, name), oracle(b, name)
		for _, kind := range []string{"mixed", "prose", "json", "source", "base64"} {
			text := texts[kind]
			measure := func(how string, count func()) {
				b.Run(name+"/"+kind+"/"+how, func(b *testing.B) {
					b.SetBytes(int64(len(text)))
					for b.Loop() {
						count()
					}
				})
			}
			measure("warm", func() { enc.Count(text) })
			measure("cold", func() {
				w := <-enc.idle
				*w.cache = pieceCache{}
				enc.idle <- w
				enc.Count(text)
			})
			measure("tiktoken-go", func() { tk.EncodeOrdinary(text) })
		}
	}
}

// BenchmarkHostile counts 16 MiB without a split point, or nearly so.
func BenchmarkHostile(b *testing.B) {
	const size = 16 << 20
	random := rand.New(rand.NewSource(1))
	drawn := func(alphabet string) string {
		text := make([]byte, size)
		for i := range text {
			text[i] = alphabet[random.Intn(len(alphabet))]
		}
		return string(text)
	}
	repeated := func(s string) string { return strings.Repeat(s, size/len(s)) }
	for name, text := range map[string]string{
		"A": repeated("A"), "spaces": repeated(" "), "emoji": repeated("😀"), "invalid": repeated("\xff"),
		"sentence": repeated("天气很好我们去公园散步然后吃饭"), "letters": drawn("abcdefghijklmnopqrstuvwxyz"),
		"ab": drawn("ab"), "blanks": drawn(" \t"), "bytes": drawn(string(allBytes())),
		"base64": drawn("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"),
	} {
		enc := open(b, "o200k_base")
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if enc.Count(text).Estimated {
					b.Fatal("estimated")
				}
			}
		})
	}
}

func allBytes() []byte {
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	return all
}

// BenchmarkShort counts texts of the size of a tool call's arguments.
func BenchmarkShort(b *testing.B) {
	enc := open(b, "o200k_base")
	const text = `{"path":"internal/store/wal.go","offset":120,"limit":40}`
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		enc.Count(text)
	}
}

// BenchmarkParallel counts on all processors at once.
func BenchmarkParallel(b *testing.B) {
	enc := open(b, "o200k_base")
	text := benchTexts(b)["mixed"]
	b.SetBytes(int64(len(text)))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			enc.Count(text)
		}
	})
}

// BenchmarkLoad builds an encoding's tables, as the first Open does, and reports
// what they hold in memory.
func BenchmarkLoad(b *testing.B) {
	for _, name := range Names() {
		b.Run(name, func(b *testing.B) {
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			var merges *mergeTable
			for b.Loop() {
				var err error
				if merges, err = loadMerges(name); err != nil {
					b.Fatal(err)
				}
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/(1<<20), "MiB-held")
			runtime.KeepAlive(merges)
		})
	}
}
