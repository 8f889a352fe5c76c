package cli

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rivo/uniseg"
	"github.com/spf13/cobra"
)

// table writes aligned columns, on a terminal within its width.
type table struct {
	out   io.Writer
	width int // 0 is no limit
	rows  [][]string
}

func newTable(cmd *cobra.Command, header ...any) *table {
	t := &table{out: cmd.OutOrStdout()}
	if !isWide(cmd) && terminalOf(t.out) != nil {
		t.width = widthOf(cmd, 0)
	}
	if len(header) > 0 {
		t.row(header...)
	}
	return t
}

// isWide reports whether cells are written uncut.
func isWide(cmd *cobra.Command) bool {
	f := cmd.Flag("output")
	return f != nil && f.Value.String() == string(outputWide)
}

func (t *table) row(cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = oneLine(fmt.Sprint(cell), 0)
	}
	t.rows = append(t.rows, texts)
}

// between is the gap between columns.
const between = 2

func (t *table) flush() error {
	widths := t.columns()
	out := bufio.NewWriter(t.out)
	for _, row := range t.rows {
		var line strings.Builder
		for i, cell := range row {
			if t.width == 0 {
				// Nothing is cut.
				line.WriteString(cell + strings.Repeat(" ", max(0, widths[i]-uniseg.StringWidth(cell))+between))
			} else {
				line.WriteString(fit(cell, widths[i]) + strings.Repeat(" ", between))
			}
		}
		fmt.Fprintln(out, strings.TrimRight(line.String(), " "))
	}
	return out.Flush()
}

// columns returns the widths of the columns. If the table is too wide, the widest columns are cut. The first, which
// names what a row is about, keeps half of the width as long as another can be cut.
func (t *table) columns() []int {
	var widths []int
	for _, row := range t.rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], uniseg.StringWidth(cell))
		}
	}
	if t.width == 0 || len(widths) == 0 {
		return widths
	}
	total := between * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	for ; total > t.width; total-- {
		widest := slices.Index(widths, slices.Max(widths))
		if others := widths[1:]; len(others) > 0 && widths[0] <= t.width/2 && slices.Max(others) > leastCell {
			widest = 1 + slices.Index(others, slices.Max(others))
		}
		if widths[widest] <= leastCell {
			break
		}
		widths[widest]--
	}
	return widths
}

// leastCell is the width to which a column is cut at most.
const leastCell = 6
