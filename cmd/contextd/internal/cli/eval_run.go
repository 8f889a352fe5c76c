package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/contextd/contextd/cmd/contextd/internal/gauges"
	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	"github.com/contextd/contextd/internal/evaluate"
	"github.com/contextd/contextd/internal/harness"
	"github.com/contextd/contextd/internal/projection"
)

// evaluatedFile is the result of one file.
type evaluatedFile struct {
	plannedFile
	sessions []evaluate.Measured
	other    bool // it is not a transcript
	err      error
}

// run measures the files in paths. The report does not depend on the order in which files finish. An error
// means that the command was interrupted.
func (e *evaluation) run(cmd *cobra.Command, paths []string) (evaluate.Report, error) {
	if slices.Contains(paths, "-") && len(paths) > 1 {
		return evaluate.Report{}, usageError{errors.New("stdin cannot be read with other files")}
	}
	files := planFiles(paths)
	tally := evaluate.NewTally(e.set, e.flags.largest)
	bar := newByteProgress(cmd)
	for _, f := range files {
		bar.expect(f.size())
	}
	defer bar.close()

	group, ctx := errgroup.WithContext(cmd.Context())
	// Results are read in the order of the files, so at most jobs files are measured or wait to be read.
	results := make(chan chan evaluatedFile, e.flags.jobs)
	group.Go(func() error {
		defer close(results)
		var workers errgroup.Group
		workers.SetLimit(e.flags.jobs)
		for _, f := range files {
			result := make(chan evaluatedFile, 1)
			select {
			case results <- result:
			case <-ctx.Done():
				return errors.Join(ctx.Err(), workers.Wait())
			}
			workers.Go(func() error {
				bar.at(f.path)
				share := &share{bar: bar, bytes: f.size()}
				done := evaluatedFile{plannedFile: f}
				done.sessions, done.other, done.err = e.measureFile(ctx, cmd, f, share)
				share.done(1, 1)
				result <- done
				return nil
			})
		}
		return workers.Wait()
	})
	group.Go(func() error {
		for result := range results {
			f := <-result
			// The command's context ends before the group's, and reads of stdin only end with the command's.
			if err := cmd.Context().Err(); err != nil {
				return err
			}
			switch {
			case f.err != nil:
				tally.Fail(f.path, f.err.Error())
			case f.other:
				tally.Other()
			default:
				tally.File()
				for _, m := range f.sessions {
					tally.Add(m)
				}
			}
		}
		return nil
	})
	err := group.Wait()
	return tally.Report(), err
}

// share is a file's part of a progress bar: its size in bytes, which progresses as its events are measured.
type share struct {
	bar          *progress
	bytes, added int
}

// done reports that events of the file's sessions were measured, out of so many.
func (s *share) done(events, of int) {
	if n := int(int64(s.bytes) * int64(events) / int64(max(of, 1))); n > s.added {
		s.bar.add(n - s.added)
		s.added = n
	}
}

// size is the file's size in bytes, or 1 where it is not known.
func (f plannedFile) size() int {
	if info, err := os.Stat(f.path); err == nil {
		return max(1, int(info.Size()))
	}
	return 1
}

// measureFile measures the sessions of a file; other is set if it is not a transcript.
func (e *evaluation) measureFile(ctx context.Context, cmd *cobra.Command, f plannedFile, bar *share) (sessions []evaluate.Measured, other bool, err error) {
	if f.err != nil {
		return nil, false, f.err
	}
	in := newTranscriptInput(detectBytes)
	if f.path == "-" {
		err = in.decompress(cmd.InOrStdin())
	} else {
		err = in.openFile(ctx, f.path)
	}
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	name, is, err := in.harnessOf(f, e.flags.harness)
	if !is || err != nil {
		return nil, err == nil, err
	}
	account, err := harness.NewMemory(e.settings.Limits.ImportMemory).Open(ctx)
	if err != nil {
		return nil, false, err
	}
	defer account.Close()
	transcript, err := harness.ReadWithin(&bounded{in: in, limit: e.settings.Limits.MaxImportBytes}, name, account)
	if err != nil {
		return nil, false, err
	}
	before, all := 0, 0
	for _, part := range transcript.Sessions {
		all += len(part.Events)
	}
	for _, part := range transcript.Sessions {
		m, err := e.measure(ctx, f.path, transcript.Harness, part, func(events int) { bar.done(before+events, all) })
		before += len(part.Events)
		if err != nil {
			return nil, false, err
		}
		sessions = append(sessions, m)
	}
	return sessions, false, nil
}

// measure replays one session under all policies. done is called with the number of events replayed so far.
func (e *evaluation) measure(ctx context.Context, path, harnessName string, part harness.Session, done func(events int)) (evaluate.Measured, error) {
	spec := wire.BudgetToDomain(e.budget)
	named := evaluate.ModelOf(part.Events)
	if spec.Model == "" && named != "" {
		// The tokenizer of a default budget applies only where no model is named.
		spec.Model, spec.Tokenizer = named, e.flags.budget.tokenizer
	}
	models, err := e.settings.Registry()
	if err != nil {
		return evaluate.Measured{}, err
	}
	model, _ := models.Lookup(spec.Model)
	b, err := spec.Resolve(models)
	if err != nil {
		return evaluate.Measured{}, err
	}
	gauge, err := gauges.Open(b.Tokenizer)
	if err != nil {
		return evaluate.Measured{}, err
	}
	s, err := evaluate.SessionOf(path, harnessName, part, gauge)
	if err != nil {
		return evaluate.Measured{}, err
	}
	contenders := make([]evaluate.Contender, 0, len(e.set.Policies))
	for _, p := range e.contextd {
		c, err := evaluate.NewContextd(ctx, p, b, model)
		if err != nil {
			return evaluate.Measured{}, err
		}
		contenders = append(contenders, evaluate.Contender{Reads: p.Projection, Policy: c})
	}
	contenders = append(contenders,
		evaluate.Contender{Reads: projection.Options{Name: projection.HarnessView}, Policy: &evaluate.Results{}, Cause: "compaction"},
		evaluate.Contender{Policy: &evaluate.Results{}},
		evaluate.Contender{Policy: &evaluate.Results{Keep: e.flags.last}},
		evaluate.Contender{Policy: &evaluate.Results{Keep: e.flags.last, Batch: evalBatch}},
		evaluate.Contender{Policy: evaluate.Sliding{Target: b.Target}, Cause: "window"},
	)
	outcomes, err := evaluate.Compare(ctx, s, gauge, contenders, evaluate.Terms{
		Target: b.Target, Window: b.MaxTokens - spec.OutputReserve - spec.InjectionReserve,
		Overhead: spec.OverheadTokens, Prices: model.Prices, CacheTTL: e.flags.cacheTTL, Done: done,
	})
	if err != nil {
		return evaluate.Measured{}, fmt.Errorf("measure: %w", err)
	}
	return evaluate.Measured{Session: s, Model: evaluate.NewSessionModel(spec.Model, model, b), Outcomes: outcomes}, nil
}
