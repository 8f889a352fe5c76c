// Package import_test measures the import of transcripts against decoding the same
// files; see README.md for how to read the numbers.
package import_test

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"golang.org/x/sync/errgroup"

	"github.com/contextd/contextd/bench/program"
	"github.com/contextd/contextd/internal/harness"
)

// corpus is the folder of recorded sessions, if there is one.
const corpus = "../../../shared/corpus"

// BenchmarkImport imports generated sessions, IMPORT_SESSIONS of them with IMPORT_MIB in total, and recorded
// ones.
func BenchmarkImport(b *testing.B) {
	sessions, mib := setting(b, "IMPORT_SESSIONS", 32), setting(b, "IMPORT_MIB", 32)
	b.Run("generated", func(b *testing.B) { compare(b, generate(b, sessions, int64(mib)<<20)) })
	b.Run("recorded", func(b *testing.B) {
		if _, err := os.Stat(corpus); err != nil {
			b.Skipf("SKIPPED: the corpus of real sessions is not next to the repository: %v", err)
		}
		compare(b, recorded(b))
	})
}

func setting(b *testing.B, name string, otherwise int) int {
	b.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		b.Fatalf("%s=%q must be a number", name, text)
	}
	return n
}

// cost is the time that one way took.
type cost struct {
	wall, processor time.Duration
}

func (c *cost) add(more cost) {
	c.wall += more.wall
	c.processor += more.processor
}

// compare alternates between importing the files of a folder and decoding them with either library: one file
// after the other, and as many in parallel as there are processors.
func compare(b *testing.B, dir string) {
	files, size := list(b, dir)
	var loop, decode, decodeStd, imported cost
	var rss int64
	for b.Loop() {
		loop.add(own(b, func() error { return each(files, 1, decodeV2) }))
		decode.add(own(b, func() error { return each(files, runtime.NumCPU(), decodeV2) }))
		decodeStd.add(own(b, func() error { return each(files, runtime.NumCPU(), decodeStandard) }))
		took, used := importAll(b, dir, len(files))
		imported.add(took)
		rss = max(rss, used)
	}
	speed := func(d time.Duration) float64 { return float64(size) * float64(b.N) / d.Seconds() / 1e6 }
	of := func(a, b time.Duration) float64 { return b.Seconds() / a.Seconds() }
	b.ReportMetric(of(imported.wall, loop.wall), "x-loop")
	b.ReportMetric(of(imported.wall, decode.wall), "x-parallel")
	b.ReportMetric(of(imported.processor, decode.processor), "x-processor")
	b.ReportMetric(of(imported.processor, decodeStd.processor), "x-processor-encoding/json")
	b.ReportMetric(speed(imported.wall), "import-MB/s")
	b.ReportMetric(speed(loop.wall), "loop-MB/s")
	b.ReportMetric(speed(imported.processor), "import-MB/cpu-s")
	b.ReportMetric(speed(decode.processor), "decode-MB/cpu-s")
	b.ReportMetric(float64(rss)/(1<<20), "max-MiB")
	b.ReportMetric(0, "ns/op")
}

// own measures work in this process.
func own(b *testing.B, f func() error) cost {
	b.Helper()
	before, start := usage(b), time.Now()
	if err := f(); err != nil {
		b.Fatal(err)
	}
	return cost{time.Since(start), usage(b) - before}
}

// usage is the processor time that this process has used.
func usage(b *testing.B) time.Duration {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

func list(b *testing.B, dir string) (files []string, size int64) {
	b.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		files, size = append(files, path), size+info.Size()
		return nil
	})
	if err != nil || len(files) == 0 {
		b.Fatalf("%s has %d files: %v", dir, len(files), err)
	}
	return files, size
}

// each calls f for all files, at most limit of them in parallel.
func each(files []string, limit int, f func(io.Reader) error) error {
	var group errgroup.Group
	group.SetLimit(limit)
	for _, name := range files {
		group.Go(func() (err error) {
			file, err := os.Open(name)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, file.Close()) }()
			if err := f(bufio.NewReaderSize(file, 1<<20)); err != nil && !errors.Is(err, io.EOF) {
				return fmt.Errorf("%s: %w", name, err)
			}
			return nil
		})
	}
	return group.Wait()
}

// decodeV2 decodes all values with the library that the readers use.
func decodeV2(r io.Reader) error {
	dec := jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		var v any
		if err := jsonv2.UnmarshalDecode(dec, &v); err != nil {
			return err
		}
	}
}

// decodeStandard decodes all values with the standard library.
func decodeStandard(r io.Reader) error {
	dec := json.NewDecoder(r)
	for {
		var v any
		if err := dec.Decode(&v); err != nil {
			return err
		}
	}
}

func TestMain(m *testing.M) { program.Main(m) }

// importAll imports a folder into a new data directory. rss is the largest resident memory of the program, in
// bytes.
func importAll(b *testing.B, dir string, files int) (took cost, rss int64) {
	b.Helper()
	binary, err := program.Path()
	if err != nil {
		b.Fatal(err)
	}
	data := b.TempDir()
	cmd := exec.Command(binary, "import", dir, "--embedded", data)
	start := time.Now()
	out, err := cmd.CombinedOutput()
	took.wall = time.Since(start)
	if err != nil {
		b.Fatalf("%v: %.2000s", err, out)
	}
	if want := fmt.Sprintf("\n%d transcripts imported: ", files); !strings.Contains("\n"+string(out), want) {
		b.Fatalf("not all %d files were imported: %.2000s", files, out[max(0, len(out)-2000):])
	}
	used, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		b.Fatal("no resource usage")
	}
	took.processor = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if err := os.RemoveAll(data); err != nil {
		b.Fatal(err)
	}
	return took, used.Maxrss << 10
}

// recorded copies the corpus' transcripts decompressed, so that all ways read the same bytes.
func recorded(b *testing.B) string {
	b.Helper()
	dir := b.TempDir()
	n := 0
	err := filepath.WalkDir(corpus, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".gz") {
			return err
		}
		data, err := plain(path)
		if err != nil {
			return err
		}
		if _, ok := harness.Detect(data[:min(len(data), 1<<20)]); !ok {
			return nil
		}
		n++
		return os.WriteFile(filepath.Join(dir, fmt.Sprintf("%03d.jsonl", n)), data, 0o600)
	})
	if err != nil || n == 0 {
		b.Fatalf("%d recorded sessions: %v", n, err)
	}
	return dir
}

func plain(path string) (data []byte, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	in, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(in)
}
