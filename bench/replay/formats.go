package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/evaluate"
	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/render/rules"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// parseFormats parses a list of providers' formats.
func parseFormats(list string) (formats []*render.Format, err error) {
	if list == "" {
		return nil, nil
	}
	for name := range strings.SplitSeq(list, ",") {
		f, ok := render.FormatNamed(name)
		if !ok || name == render.NameContextd {
			return nil, fmt.Errorf("-formats: %q is no provider's format", name)
		}
		formats = append(formats, f)
	}
	return formats, nil
}

// fullEvery is how often, in steps, the context of a client that asks for new messages is compared with that
// of a client that asks for all.
const fullEvery = 8

// formatRun replays one session in one format.
type formatRun struct {
	session *session
	id      string
	format  *render.Format
	request *contextdv1.AssembleContextRequest
	check   func(lines [][]byte) []rules.Violation
	held    []*contextdv1.RenderedMessage
	// projection is the id of the newest recorded projection.
	projection string
	faults     figures
	hashes     []string // of each step; empty if the context was refused

	steps, refused, messages, conversions int
	// received is how many bytes came over gRPC. replaced is the size of held messages that were replaced.
	// final is the size of the last context.
	received, replaced, final int
}

// ask assembles a context: only new messages, unless everything is set. It returns nil if the context does
// not fit the budget.
func (r *formatRun) ask(ctx context.Context, d *daemon, everything, preview bool) (*answer, int, error) {
	req := proto.CloneOf(r.request)
	req.Preview = preview
	if len(r.held) > 0 && !everything {
		req.Have = &contextdv1.Have{MessageCount: uint32(len(r.held)), PrefixHash: hashOf(r.held)}
	}
	stream, err := d.api.AssembleContext(ctx, req)
	if err != nil {
		return nil, 0, err
	}
	a, bytes := &answer{}, 0
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			for _, d := range status.Convert(err).Details() {
				if _, ok := d.(*contextdv1.BudgetExceeded); ok {
					return nil, bytes, nil
				}
			}
			return nil, bytes, err
		}
		bytes += proto.Size(part)
		if h := part.GetHeader(); h != nil {
			a.header = h
			a.messages = r.held[:h.GetSkippedMessages():h.GetSkippedMessages()]
		}
		a.messages = append(a.messages, part.GetChunk().GetMessages()...)
	}
	return a, bytes, nil
}

func (r *formatRun) fault(st evaluate.Step, what, detail string) {
	r.faults.fault(what, strings.TrimSpace(fmt.Sprintf("%s, %s at event %d (%s) %s", r.format.Name, r.id, st.Before, r.session.File, detail)))
}

// play replays the session on the disk store. It compares each context with that of the memory store, and
// with one that was requested as a whole.
func (r *formatRun) play(ctx context.Context, disk, memory *daemon) error {
	next := 0
	for i, st := range r.session.Steps {
		for _, d := range []*daemon{disk, memory} {
			events := &contextdv1.AppendEventsRequest{SessionId: r.id, Events: r.session.protos[next:st.Before]}
			if _, err := d.api.AppendEvents(ctx, events); err != nil {
				return fmt.Errorf("%s before event %d: %w", r.id, st.Before, err)
			}
		}
		next = st.Before
		if err := r.step(ctx, st, disk, memory, i%fullEvery == 0 || i == len(r.session.Steps)-1); err != nil {
			return fmt.Errorf("%s, %s at event %d: %w", r.format.Name, r.id, st.Before, err)
		}
	}
	for _, m := range r.held {
		r.final += len(m.GetJson())
	}
	return nil
}

func (r *formatRun) step(ctx context.Context, st evaluate.Step, disk, memory *daemon, everything bool) error {
	r.steps++
	got, bytes, err := r.ask(ctx, disk, false, false)
	if err != nil {
		return err
	}
	r.received += bytes
	other, _, err := r.ask(ctx, memory, false, false)
	if err != nil {
		return err
	}
	for d, a := range map[*daemon]*answer{disk: got, memory: other} {
		if a == nil || a.header.GetSummarizingThroughSeq() == 0 {
			continue
		}
		if err := d.watcher.await(ctx, r.id, a.header.GetSummarizingThroughSeq()); err != nil {
			return fmt.Errorf("%s store: %w", d.store, err)
		}
	}
	if (got == nil) != (other == nil) {
		r.fault(st, "the stores refuse differently", "")
	}
	if got == nil || other == nil {
		r.refused++
		r.hashes = append(r.hashes, "")
		return nil
	}
	r.hashes = append(r.hashes, got.header.GetContextHash())
	if got.header.GetContextHash() != other.header.GetContextHash() {
		r.fault(st, "other bytes on the other store", "")
	}
	skipped := int(got.header.GetSkippedMessages())
	if broken := got.header.GetHaveBroken() != nil; broken != (skipped < len(r.held)) {
		r.fault(st, "a break of the prefix that is not reported, or none that is", "")
	}
	for _, m := range r.held[skipped:] {
		r.replaced += len(m.GetJson())
	}
	r.held, r.projection = got.messages, got.header.GetProjectionId()
	r.conversions += len(got.header.GetConversions())
	r.messages += len(got.messages) - skipped
	if hashOf(r.held) != got.header.GetContextHash() {
		r.fault(st, "the client's hash is another", "")
	}
	for _, v := range r.check(lines(r.held)) {
		r.fault(st, fmt.Sprintf("%s: %s", r.format.Name, v.Rule), v.String())
	}
	if b := got.header.GetBudget(); b.GetProjectedTokens() > b.GetTargetTokens() {
		r.fault(st, "over the target", "")
	}
	if everything {
		full, _, err := r.ask(ctx, disk, true, true)
		if err != nil {
			return err
		}
		if full == nil || hashOf(full.messages) != got.header.GetContextHash() {
			r.fault(st, "a client that asks for everything gets other bytes", "")
		}
	}
	return nil
}

func lines(messages []*contextdv1.RenderedMessage) [][]byte {
	out := make([][]byte, len(messages))
	for i, m := range messages {
		out[i] = m.GetJson()
	}
	return out
}

// again asks for the last context after a restart, and replays its recorded projection.
func (r *formatRun) again(ctx context.Context, disk *daemon) error {
	if r.projection == "" {
		return nil // every context was refused
	}
	last := r.session.Steps[len(r.session.Steps)-1]
	full, _, err := r.ask(ctx, disk, true, true)
	if err != nil {
		return fmt.Errorf("%s after a restart: %w", r.id, err)
	}
	if full != nil && hashOf(full.messages) != hashOf(r.held) {
		r.fault(last, "other bytes after a restart", "")
	}
	replay, err := disk.api.ReplayProjection(ctx, &contextdv1.ReplayProjectionRequest{SessionId: r.id, ProjectionId: r.projection})
	if err != nil {
		return err
	}
	if !replay.GetSame() {
		r.fault(last, "a record that cannot be rebuilt", replay.GetDifference())
	}
	return nil
}

// formats replays every session in the providers' formats, and checks the messages against the rules that the
// providers document.
func (r *report) formats(ctx context.Context, formats []*render.Format, windows []uint64, files []file) error {
	return r.withStores(ctx, func(disk, memory *daemon) error {
		if err := importFiles(ctx, memory, files); err != nil {
			return err
		}
		faults := 0
		t := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "window\tformat\tsessions\tsteps\trefused\tmessages\tconversions\treceived / final + replaced\tworst session\tfaults\t")
		var all figures
		for _, tokens := range windows {
			for _, format := range formats {
				n, err := r.playFormat(ctx, t, format, tokens, disk, memory, &all)
				if err != nil {
					return err
				}
				faults += n
			}
		}
		if err := t.Flush(); err != nil {
			return err
		}
		writeCounts(r.out, "RULES BROKEN", all.faults)
		writeExamples(r.out, all.examples)
		if faults > 0 {
			return fmt.Errorf("%d rules were broken", faults)
		}
		fmt.Fprintln(r.out, "\nEvery message kept its provider's rules, in contexts that were the same for a client that follows and one that asks for everything, on both stores and after a restart.")
		return nil
	})
}

func (r *report) playFormat(ctx context.Context, out io.Writer, format *render.Format, tokens uint64, disk, memory *daemon, all *figures) (int, error) {
	models, err := budget.NewModels()
	if err != nil {
		return 0, err
	}
	asked, check := window(tokens), rules.Of(format.Name)
	asked.Model = r.model
	if m, _ := models.Lookup(r.model); m.ReturnReasoning {
		check = rules.OfReturning(format.Name)
	}
	var runs []*formatRun
	for i, s := range r.sessions {
		if len(s.Steps) == 0 {
			continue
		}
		id := fmt.Sprintf("formats/%s/%d/s%d", format.Name, tokens, i)
		runs = append(runs, &formatRun{session: s, id: id, format: format, check: check, faults: newFigures(), request: &contextdv1.AssembleContextRequest{
			SessionId: id, Budget: asked, Policy: r.policy, Format: contextdv1.Format(contextdv1.Format_value["FORMAT_"+strings.ToUpper(format.Name)]), Brief: true,
		}})
	}
	each := func(do func(context.Context, *formatRun) error) error {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(workers)
		for _, run := range runs {
			group.Go(func() error { return do(ctx, run) })
		}
		return group.Wait()
	}
	if err := each(func(ctx context.Context, run *formatRun) error { return run.play(ctx, disk, memory) }); err != nil {
		return 0, err
	}
	if err := disk.restart(ctx); err != nil {
		return 0, err
	}
	if err := each(func(ctx context.Context, run *formatRun) error { return run.again(ctx, disk) }); err != nil {
		return 0, err
	}
	var sum formatRun
	var shares []float64
	faults := 0
	for _, run := range runs {
		changed, err := r.hashes.hold(run.session, r.policy, format.Name, tokens, run.hashes)
		if err != nil {
			return 0, err
		}
		if changed >= 0 {
			run.fault(run.session.Steps[min(changed, len(run.session.Steps)-1)], "other bytes than in the file of hashes", "")
		}
		sum.steps, sum.refused = sum.steps+run.steps, sum.refused+run.refused
		sum.messages, sum.conversions = sum.messages+run.messages, sum.conversions+run.conversions
		sum.received, sum.replaced, sum.final = sum.received+run.received, sum.replaced+run.replaced, sum.final+run.final
		if run.final > 0 {
			shares = append(shares, float64(run.received)/float64(run.final+run.replaced))
		}
		for _, n := range run.faults.faults {
			faults += n
		}
		all.add(run.faults)
	}
	worst := 0.0
	if len(shares) > 0 {
		worst = slices.Max(shares)
	}
	fmt.Fprintf(out, "%d\t%s\t%d\t%d\t%d\t%d\t%d\t%.3f\t%.3f\t%d\t\n", tokens, format.Name, len(runs), sum.steps, sum.refused,
		sum.messages, sum.conversions, float64(sum.received)/float64(max(sum.final+sum.replaced, 1)), worst, faults)
	return faults, nil
}
