package cli

import (
	"errors"
	"io"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
)

// errEnough ends a listing early.
var errEnough = errors.New("enough is listed")

// listing shows messages one after the other: as rows of a table, or each by itself for programs.
type listing struct {
	output outputFormat
	out    io.Writer
	table  *table // nil for programs
}

func (c *client) newListing(cmd *cobra.Command, header ...any) *listing {
	l := &listing{output: c.output, out: cmd.OutOrStdout()}
	if !c.output.structured() {
		l.table = newTable(cmd, header...)
	}
	return l
}

// add shows a message, of which a row has these cells.
func (l *listing) add(m proto.Message, cells ...any) error {
	if l.table == nil {
		return l.output.write(l.out, m)
	}
	l.table.row(cells...)
	return nil
}

// end ends the listing, with the error that ended it early, if one did.
func (l *listing) end(err error) error {
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	if l.table == nil {
		return nil
	}
	return l.table.flush()
}
