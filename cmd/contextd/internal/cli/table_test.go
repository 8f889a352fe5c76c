package cli

import (
	"slices"
	"testing"
)

// TestColumns checks which columns a narrow terminal cuts.
func TestColumns(t *testing.T) {
	long := "project/agent-1/session"
	for _, test := range []struct {
		name  string
		width int
		cells []any
		want  []int
	}{
		{"no limit", 0, []any{long, 100, long}, []int{23, 3, 23}},
		{"all fit", 60, []any{long, 100, long}, []int{23, 3, 23}},
		{"the widest that is not the first", 50, []any{long, 100, long}, []int{23, 3, 20}},
		{"the first keeps half", 40, []any{long, 100, long}, []int{20, 3, 13}},
		{"the widest beyond half", 30, []any{long, 100, long}, []int{15, 3, 8}},
		{"nothing below the least", 10, []any{long, 100, long}, []int{6, 3, 6}},
		{"one column", 10, []any{long}, []int{10}},
	} {
		t.Run(test.name, func(t *testing.T) {
			table := &table{width: test.width}
			table.row(test.cells...)
			if got := table.columns(); !slices.Equal(got, test.want) {
				t.Errorf("widths %v; want %v", got, test.want)
			}
		})
	}
}
