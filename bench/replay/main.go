package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/budget/bpe"
	"github.com/contextd/contextd/internal/render"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func main() {
	if err := replay(); err != nil {
		fmt.Fprintln(os.Stderr, "replay:", err)
		os.Exit(1)
	}
}

// settings are the command's flags.
type settings struct {
	corpus, only string
	every        int
	offset       int
	budgets      []uint64
	backends     []string
	formats      []*render.Format
	policy       *contextdv1.Policy
	direct       bool
	model        string
	trace        bool
	hashes       string
	leaveOneOut  bool
	summaries    bool
}

func parseFlags() (settings, error) {
	var s settings
	flag.StringVar(&s.corpus, "corpus", "", "`folder` of recorded sessions")
	flag.StringVar(&s.only, "only", "", "take only files whose path holds this `text`")
	flag.IntVar(&s.every, "every", 1, "take only every `n`th file")
	flag.IntVar(&s.offset, "offset", 0, "with -every, start at the `n`th file: -every 2 with offsets 0 and 1 gives two disjoint halves")
	flag.StringVar(&s.model, "model", "", "with -formats, the `model` that is asked; with -direct, as if it had written all messages of assistants")
	budgets := flag.String("budgets", "8192,32768,131072", "windows in tokens, separated by commas")
	flag.BoolVar(&s.direct, "direct", false, "run the reducers in this process instead of the daemon: no checks, but fast, for tuning")
	flag.BoolVar(&s.trace, "trace", false, "measure the synthetic trace instead of a corpus; implies -direct")
	policy := flag.String("policy", "", "a `policy` of the API, as JSON, for all sessions: {\"projection\":{\"policy\":\"reachability_gc\"}}")
	backends := flag.String("backends", "", "compare these `models` instead, separated by commas: extractive, ok, slow, hangs, fails, garbage, echo, down")
	formats := flag.String("formats", "", "hold what is rendered in these `formats` to their providers' rules instead, separated by commas: anthropic, openai_chat, openai_responses, gemini")
	flag.StringVar(&s.hashes, "hashes", "", "hold every context to the hashes in this `file`, and add those that it lacks")
	flag.BoolVar(&s.leaveOneOut, "leave-one-out", false, "tune the default policy on all harnesses but one, for each, and show what that brings on both sides; implies -direct")
	flag.BoolVar(&s.summaries, "summaries", false, "compare summaries by the extractive summarizer, by a fake model, and none; implies -direct")
	flag.Parse()
	s.direct = s.direct || s.trace || s.leaveOneOut || s.summaries
	var err error
	if s.formats, err = parseFormats(*formats); err != nil {
		return s, err
	}
	if s.backends, err = parseBackends(*backends); err != nil {
		return s, err
	}
	if *policy != "" {
		s.policy = &contextdv1.Policy{}
		if err := protojson.Unmarshal([]byte(*policy), s.policy); err != nil {
			return s, fmt.Errorf("-policy: %w", err)
		}
	}
	for text := range strings.SplitSeq(*budgets, ",") {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil || n == 0 {
			return s, fmt.Errorf("-budgets: %q is no number of tokens", text)
		}
		s.budgets = append(s.budgets, n)
	}
	if s.corpus == "" && !s.trace {
		return s, errors.New("-corpus: name a folder of recorded sessions")
	}
	if s.hashes != "" && (s.direct || len(s.backends) > 0) {
		return s, errors.New("-hashes: goes with a replay through the daemon, under one model")
	}
	if s.model != "" && s.hashes != "" {
		return s, errors.New("-hashes: goes with the daemon's default model")
	}
	if s.direct && !proto.Equal(s.policy, &contextdv1.Policy{Name: s.policy.GetName()}) && s.policy != nil {
		return s, errors.New("-policy: with -direct only the name of a built-in one: {\"name\":\"frugal\"}")
	}
	if s.model != "" && (s.trace || !s.direct && len(s.formats) == 0) {
		return s, errors.New("-model: goes with -direct or -formats, and with a corpus")
	}
	if s.every < 1 {
		return s, errors.New("-every: must be at least 1")
	}
	if s.offset < 0 || s.offset >= s.every {
		return s, errors.New("-offset: must be at least 0 and less than -every")
	}
	return s, nil
}

func replay() error {
	s, err := parseFlags()
	if err != nil {
		return err
	}
	encoding, err := bpe.Open(budget.TokenizerO200K)
	if err != nil {
		return err
	}
	gauge := budget.NewGauge(encoding)
	files, sessions, err := load(s, gauge, os.Stderr)
	if err != nil {
		return err
	}
	report := newReport(os.Stdout, gauge, sessions)
	report.policy, report.model = s.policy, s.model
	if report.hashes, err = openHashFile(s.hashes, s.corpus); err != nil {
		return err
	}
	if s.summaries {
		return report.summaries(s.budgets)
	}
	if s.leaveOneOut {
		return report.leaveOneOut(s.budgets)
	}
	if s.direct {
		return report.direct(s.budgets)
	}
	// A signal stops the daemon of the replay; without one it ends the program at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(s.backends) > 0 {
		return report.backends(ctx, s.backends, s.budgets, files)
	}
	if len(s.formats) > 0 {
		err = report.formats(ctx, s.formats, s.budgets, files)
	} else {
		err = report.daemon(ctx, s.budgets, files)
	}
	return errors.Join(err, report.hashes.close())
}

// file is a transcript and its sessions.
type file struct {
	path     string
	sessions []*session
}

// load reads the corpus. Files that cannot be read are reported to notes.
func load(s settings, gauge budget.Gauge, notes io.Writer) ([]file, []*session, error) {
	if s.trace {
		trace, err := traceSession(gauge)
		return nil, []*session{{Session: trace}}, err
	}
	skipped := 0
	skip := func(path string, err error) {
		skipped++
		fmt.Fprintf(notes, "skipped: %s: %v\n", path, err)
	}
	writer := ""
	if s.direct {
		writer = s.model
	}
	paths, others, err := corpusFiles(s.corpus, s.only, skip)
	if err != nil {
		return nil, nil, err
	}
	var files []file
	var sessions []*session
	for i, path := range paths {
		if i%s.every != s.offset {
			continue
		}
		f := file{path: path}
		if f.sessions, err = readSessions(path, writer, gauge, skip); err != nil {
			return nil, nil, err
		}
		if len(f.sessions) == 0 {
			continue
		}
		files = append(files, f)
		sessions = append(sessions, f.sessions...)
	}
	if len(files) == 0 {
		return nil, nil, fmt.Errorf("no transcripts in %s", s.corpus)
	}
	fmt.Printf("%d files of %d, %d sessions; %d files are in no format that is read, %d were skipped\n\n", len(files), len(paths), len(sessions), others, skipped)
	return files, sessions, nil
}

// window is the budget for a window of so many tokens, counted exactly.
func window(tokens uint64) *contextdv1.Budget {
	return &contextdv1.Budget{MaxTokens: tokens, Tokenizer: budget.TokenizerO200K}
}

// resolve is the same budget for policies that run without a daemon.
func resolve(tokens uint64) (budget.Budget, error) {
	models, err := budget.NewModels()
	if err != nil {
		return budget.Budget{}, err
	}
	return budget.Spec{MaxTokens: tokens, Tokenizer: budget.TokenizerO200K}.Resolve(models)
}
