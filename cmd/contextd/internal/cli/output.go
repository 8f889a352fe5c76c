package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// writeJSON writes one message on one line, with the API's field names. The
// whitespace that protojson varies is taken out.
func writeJSON(w io.Writer, m proto.Message) error {
	loose, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return err
	}
	var line bytes.Buffer
	if err := json.Compact(&line, loose); err != nil {
		return err
	}
	line.WriteByte('\n')
	_, err = w.Write(line.Bytes())
	return err
}

// table writes aligned columns; cells are made to fit on a line.
type table struct{ w *tabwriter.Writer }

func newTable(cmd *cobra.Command, header ...any) table {
	t := table{tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)}
	t.row(header...)
	return t
}

func (t table) row(cells ...any) {
	texts := make([]string, len(cells))
	for i, cell := range cells {
		texts[i] = oneLine(fmt.Sprint(cell), 0)
	}
	// Write errors surface in flush.
	fmt.Fprintln(t.w, strings.TrimRight(strings.Join(texts, "\t"), "\t"))
}

func (t table) flush() error { return t.w.Flush() }

// oneLine makes text fit into a cell: no control characters, which could move
// the terminal's cursor, and at most limit runes; 0 is no limit.
func oneLine(s string, limit int) string {
	var b strings.Builder
	n := 0
	for _, r := range s {
		if limit > 0 && n == limit {
			b.WriteRune('…')
			break
		}
		if unicode.IsControl(r) || !unicode.IsPrint(r) {
			r = ' '
		}
		b.WriteRune(r)
		n++
	}
	return b.String()
}

func when(t *timestamppb.Timestamp) string {
	if t == nil {
		return "-"
	}
	return t.AsTime().Format(time.RFC3339)
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func labels(m map[string]string) string {
	var parts []string
	for _, k := range sortedKeys(m) {
		parts = append(parts, k+"="+m[k])
	}
	return dash(strings.Join(parts, ","))
}
