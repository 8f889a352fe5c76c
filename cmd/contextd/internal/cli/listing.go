package cli

import (
	"errors"
	"io"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
)

// errEnough ends a listing early.
var errEnough = errors.New("enough is listed")

// listing writes messages one after the other: as rows of a table for people, or each on its own for
// programs.
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

// add writes a message; cells are its row in a table.
func (l *listing) add(m proto.Message, cells ...any) error {
	if l.table == nil {
		return l.output.write(l.out, m)
	}
	l.table.row(cells...)
	return nil
}

// end ends the listing. errEnough is not an error; any other is returned.
func (l *listing) end(err error) error {
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	if l.table == nil {
		return nil
	}
	return l.table.flush()
}
