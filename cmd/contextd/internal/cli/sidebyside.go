package cli

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/rivo/uniseg"
	"github.com/spf13/cobra"
	"golang.org/x/term"
)

const (
	defaultWidth = 120
	leastColumn  = 20
)

// sideRow is a row of two texts; either may be empty.
type sideRow struct {
	mark, events string
	left, right  string
}

// sideBySide writes rows in two columns of the same width.
type sideBySide struct {
	width     int
	onlyLeft  bool
	onlyRight bool
}

// widthOf is the width of the output: as asked for, else the terminal's, else a default.
func widthOf(cmd *cobra.Command, asked int) int {
	if asked > 0 {
		return asked
	}
	if f := terminalOf(cmd.OutOrStdout()); f != nil {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil && width > 0 {
			return width
		}
	}
	return defaultWidth
}

func (s sideBySide) write(w io.Writer, header sideRow, rows []sideRow) error {
	events := uniseg.StringWidth(header.events)
	for _, r := range rows {
		events = max(events, uniseg.StringWidth(r.events))
	}
	out := bufio.NewWriter(w)
	// Subtract a mark, the events and the gaps between columns.
	column := s.width - 1 - 1 - events - 2
	if !s.onlyLeft && !s.onlyRight {
		column = (column - 3) / 2
	}
	column = max(column, leastColumn)
	for _, r := range append([]sideRow{header}, rows...) {
		line := fit(r.mark, 1) + " " + fit(r.events, events) + "  "
		switch {
		case s.onlyLeft:
			line += fit(r.left, column)
		case s.onlyRight:
			line += fit(r.right, column)
		default:
			line += fit(r.left, column) + " │ " + fit(r.right, column)
		}
		fmt.Fprintln(out, strings.TrimRight(line, " "))
	}
	return out.Flush()
}

// fit cuts or pads a text to a width in terminal cells: some characters take two, and some none.
func fit(text string, width int) string {
	text = strings.TrimRight(oneLine(text, 4*width), " ")
	if n := uniseg.StringWidth(text); n <= width {
		return text + strings.Repeat(" ", width-n)
	}
	var b strings.Builder
	used := 0
	for g := uniseg.NewGraphemes(text); g.Next(); {
		if used+g.Width() > width-1 {
			break
		}
		b.WriteString(g.Str())
		used += g.Width()
	}
	return b.String() + "…" + strings.Repeat(" ", width-1-used)
}
