package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/harness"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/reduce"
	"github.com/contextd/contextd/internal/render"
)

func main() {
	corpus := flag.String("corpus", "", "folder of transcripts; none if empty")
	every := flag.Int("every", 7, "render at every so many groups")
	flag.Parse()
	if *every < 1 {
		fmt.Fprintln(os.Stderr, "sdkcheck: -every must be at least 1")
		os.Exit(2)
	}
	out := bufio.NewWriter(os.Stdout)
	p := &printer{out: json.NewEncoder(out), every: *every, printed: map[[sha256.Size]byte]bool{}}
	p.out.SetEscapeHTML(false)
	err := p.all(*corpus)
	if flushed := out.Flush(); err == nil {
		err = flushed
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "sdkcheck:", err)
		os.Exit(1)
	}
	fmt.Fprintf(os.Stderr, "%d sessions, %d messages\n", p.sessions, len(p.printed))
}

type printer struct {
	out      *json.Encoder
	every    int
	printed  map[[sha256.Size]byte]bool
	sessions int
}

type line struct {
	Format string `json:"format"`
	Source string `json:"source"`
	Line   string `json:"line"`
}

func (p *printer) all(corpus string) error {
	if err := p.goldens(filepath.Join("internal", "render", "testdata")); err != nil {
		return err
	}
	folders := []string{filepath.Join("internal", "harness")}
	if corpus != "" {
		folders = append(folders, corpus)
	}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			if folder != corpus && !strings.Contains(filepath.Base(path), ".in.json") {
				return nil
			}
			if err := p.file(path); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (p *printer) print(format, source string, message []byte) error {
	sum := sha256.Sum256(append([]byte(format+"\n"), message...))
	if p.printed[sum] {
		return nil
	}
	p.printed[sum] = true
	return p.out.Encode(line{format, source, string(message)})
}

// goldens prints the messages in the formats' golden files, which have all shapes.
func (p *printer) goldens(folder string) error {
	for _, f := range providerFormats() {
		path := filepath.Join(folder, f.Name+".golden")
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for text := range strings.Lines(string(data)) {
			text = strings.TrimSpace(strings.TrimPrefix(text, "S "))
			if !strings.HasPrefix(text, "{") {
				continue // a title, or a report of a conversion
			}
			if err := p.print(f.Name, path, []byte(text)); err != nil {
				return err
			}
		}
	}
	return nil
}

// providerFormats are the formats for which an SDK has types.
func providerFormats() []*render.Format {
	return slices.DeleteFunc(render.Formats(), func(f *render.Format) bool { return f.Name == render.NameContextd })
}

// file renders the sessions of a transcript; other files are skipped.
func (p *printer) file(path string) error {
	data, err := readFile(path)
	if err != nil {
		return err
	}
	if _, ok := harness.Detect(data); !ok {
		return nil
	}
	transcript, err := harness.Read(bytes.NewReader(data), "")
	if err != nil {
		return err
	}
	for _, part := range transcript.Sessions {
		_, events, err := eventlog.Head{}.Admit(part.Events)
		if err != nil {
			return err
		}
		conv := reduce.NewConversation(budget.NewGauge(budget.Heuristic{}))
		for _, e := range events {
			conv.Append(e)
		}
		p.sessions++
		for _, f := range providerFormats() {
			if err := p.session(f, path, conv); err != nil {
				return err
			}
		}
	}
	return nil
}

// session renders a session step by step as it grows.
func (p *printer) session(f *render.Format, path string, conv *reduce.Conversation) error {
	v := reduce.NewView(conv.Gauge(), conv.Groups())
	var fragments []render.Fragment
	done := 0
	for g := range conv.Groups() {
		for _, m := range render.GroupMessages(v, g) {
			fragments = append(fragments, f.Fragments(m)...)
		}
		if g%p.every != p.every-1 && g+1 != len(conv.Groups()) {
			continue
		}
		messages := f.Join(fragments)
		for i := done; i < len(messages); i++ {
			if err := p.print(f.Name, path, messages[i].JSON); err != nil {
				return err
			}
		}
		done = max(0, len(messages)-1) // the last message may still be extended
	}
	return nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var in io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		if in, err = gzip.NewReader(f); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(in)
}
