package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"text/tabwriter"
)

// row is a row of a table.
type row struct {
	name     string
	figures  figures
	baseline figures // the figures of sending the whole log at the same steps
}

func ratio(a, b int) string {
	if b == 0 {
		return "–"
	}
	return fmt.Sprintf("%.3f", float64(a)/float64(b))
}

// writeTable prints rows; heading is the title of their names.
func writeTable(w io.Writer, heading string, rows []row) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "%s\tsessions\tsteps\trefused\tover\tchanges\tcost\tcalls\trecall\tevidence\tedits\t\n", heading)
	for _, r := range rows {
		f := r.figures
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%.3f\t%s\t%s\t%s\t%s\t\n", r.name, f.Sessions, f.Steps, f.Refused, f.Over, f.Changes,
			f.Cost/r.baseline.Cost, ratio(f.Visible, f.Calls), ratio(f.Found, f.Wanted), ratio(f.Evident, f.Wanted), ratio(f.Shown, f.Lines))
	}
	return t.Flush()
}

// writeCounts prints counts on one line, the largest first.
func writeCounts(w io.Writer, title string, counts map[string]int) {
	if len(counts) == 0 {
		return
	}
	keys := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	fmt.Fprintf(w, "%s:", title)
	for i, k := range keys {
		if i > 0 {
			fmt.Fprint(w, ",")
		}
		fmt.Fprintf(w, " %s %d", cmp.Or(k, "unnamed"), counts[k])
	}
	fmt.Fprintln(w)
}

// writeExamples prints the first place where each rule was broken.
func writeExamples(w io.Writer, examples map[string]string) {
	for _, kind := range slices.Sorted(maps.Keys(examples)) {
		fmt.Fprintf(w, "  %s: %s\n", kind, examples[kind])
	}
}
