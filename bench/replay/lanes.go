package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// writeLanes prints the tables of one budget, and returns how many rules were broken.
func (r *report) writeLanes(tokens uint64, l *lanes) (int, error) {
	b, err := resolve(tokens)
	if err != nil {
		return 0, err
	}
	fmt.Fprintf(r.out, "## %d tokens (target %d)\n\n", tokens, b.Target)
	t := tabwriter.NewWriter(r.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "backend\tsteps\trefused\tover\tfaults\tchanges\tcost\tcalls\trecall\tevidence\tedits\tannounced\twaived\ttried\tready\tfailed\tbreaker\trequests\tp50 ms\tp99 ms\t")
	all := make([]figures, len(l.all))
	total := 0
	for i, lane := range l.all {
		f, told := l.sum(i)
		all[i] = f
		faults := 0
		for _, n := range f.faults {
			faults += n
		}
		total += faults
		took := l.took(i)
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%.3f\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\t%s\t\n",
			lane.name, f.Steps, f.Refused, f.Over, faults, f.Changes, f.Cost/r.sum(r.everything, "").Cost,
			ratio(f.Visible, f.Calls), ratio(f.Found, f.Wanted), ratio(f.Evident, f.Wanted), ratio(f.Shown, f.Lines),
			told.announced, told.waived, told.started, told.ready, told.failed, told.opened, lane.requests(),
			millis(percentile(took, 50)), millis(percentile(took, 99)))
	}
	if err := t.Flush(); err != nil {
		return total, err
	}
	for i, lane := range l.all {
		writeCounts(r.out, lane.name+": prefix changes by cause", all[i].Causes)
		writeCounts(r.out, lane.name+": refused because of", all[i].Reasons)
		writeCounts(r.out, lane.name+": RULES BROKEN", all[i].faults)
		writeExamples(r.out, all[i].examples)
	}
	fmt.Fprintln(r.out)
	return total, nil
}

// sum adds up a lane's figures, and its daemon's reports on summaries.
func (l *lanes) sum(i int) (figures, summaries) {
	var f figures
	var told summaries
	w := l.all[i].daemon.watcher
	for _, run := range l.runs[i] {
		told.add(w.judge(run.id, run.announced, run.figures.fault))
		f.add(run.figures)
	}
	opened, lost := w.take()
	told.opened = opened
	if lost > 0 {
		f.fault("lifecycle events lost", fmt.Sprint(lost))
	}
	return f, told
}

// percentile is the pth percentile.
func percentile(all []time.Duration, p int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[max((len(sorted)*p+99)/100, 1)-1]
}

func millis(d time.Duration) string { return fmt.Sprintf("%.2f", d.Seconds()*1000) }

// yardstick is the backend that other backends' times are compared with.
const yardstick = "ok"

// writeRatios prints the times of each backend over all budgets, relative to those of the yardstick.
func writeRatios(w io.Writer, all []*lane, took [][]time.Duration) error {
	var p50, p99 time.Duration
	for i, lane := range all {
		if lane.name == yardstick {
			p50, p99 = percentile(took[i], 50), percentile(took[i], 99)
		}
	}
	over := func(d, base time.Duration) string {
		if base == 0 {
			return "–"
		}
		return fmt.Sprintf("%.2f", float64(d)/float64(base))
	}
	fmt.Fprintf(w, "## Time of an assembly, all budgets\n\n")
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "backend\tassemblies\tp50 ms\tof %[1]s\tp99 ms\tof %[1]s\tlongest ms\t\n", yardstick)
	for i, lane := range all {
		a, b := percentile(took[i], 50), percentile(took[i], 99)
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t\n", lane.name, len(took[i]),
			millis(a), over(a, p50), millis(b), over(b, p99), millis(percentile(took[i], 100)))
	}
	return t.Flush()
}
