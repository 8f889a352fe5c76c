package cli

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// The kinds of faults.
const (
	faultOfStore      = "store"
	faultOfLog        = "log"
	faultOfWitness    = "witness"
	faultOfRecords    = "records"
	faultOfProjection = "projection"
)

// sessionAudit is what was found out about a session.
type sessionAudit struct {
	SessionID   string       `json:"session_id"`
	Events      uint64       `json:"events"`
	ChainHead   string       `json:"chain_head,omitempty"`
	Log         string       `json:"log"`
	Projections int          `json:"projections"`
	Faults      []auditFault `json:"faults,omitempty"`
}

type auditFault struct {
	Kind         string `json:"kind"`
	ProjectionID string `json:"projection_id,omitempty"`
	Text         string `json:"text"`
	// Rebuilt is set where the projection can be rebuilt but differs, as one recorded by an earlier version
	// may.
	Rebuilt bool `json:"rebuilt_otherwise,omitempty"`
}

func (f auditFault) String() string {
	if f.ProjectionID != "" {
		return f.Kind + " " + f.ProjectionID + ": " + f.Text
	}
	return f.Kind + ": " + f.Text
}

// writeAudit writes the findings. It returns an error if there is a fault.
func (c *client) writeAudit(cmd *cobra.Command, found []sessionAudit) error {
	var events uint64
	projections, faults, faulty, rebuilt := 0, 0, 0, 0
	for _, s := range found {
		events += s.Events
		projections += s.Projections
		faults += len(s.Faults)
		if len(s.Faults) > 0 {
			faulty++
		}
		for _, f := range s.Faults {
			if f.Rebuilt {
				rebuilt++
			}
		}
	}
	var err error
	if c.output.structured() {
		err = writeLines(cmd.OutOrStdout(), c.output, found)
	} else {
		err = writeAuditText(cmd, found)
		fmt.Fprintf(cmd.OutOrStdout(), "\n%s, %s, %s: %s\n",
			counted(len(found), "session"), counted(events, "event"), counted(projections, "projection"), counted(faults, "fault"))
	}
	switch {
	case err != nil || faults == 0:
	case rebuilt == faults:
		err = fmt.Errorf("%d of %d sessions are whole, and projections of theirs are rebuilt otherwise, as those that an earlier version recorded may be", faulty, len(found))
	default:
		err = fmt.Errorf("%d of %d sessions are not what they were", faulty, len(found))
	}
	return err
}

// writeStoreFaults writes faults of a whole store, which is then not opened.
func (c *client) writeStoreFaults(cmd *cobra.Command, faults []string, all string) error {
	var found sessionAudit
	for _, fault := range faults {
		found.Faults = append(found.Faults, auditFault{Kind: faultOfStore, Text: fault})
	}
	if c.output.structured() {
		if err := writeLines(cmd.OutOrStdout(), c.output, []sessionAudit{found}); err != nil {
			return err
		}
	} else {
		for _, f := range found.Faults {
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), f); err != nil {
				return err
			}
		}
	}
	return errors.New(all)
}

func writeAuditText(cmd *cobra.Command, found []sessionAudit) error {
	t := newTable(cmd, "SESSION", "EVENTS", "LOG", "PROJECTIONS", "FAULTS", "CHAIN HEAD")
	for _, s := range found {
		t.row(s.SessionID, s.Events, dash(s.Log), s.Projections, len(s.Faults), dash(s.ChainHead))
	}
	if err := t.flush(); err != nil {
		return err
	}
	for _, s := range found {
		for _, f := range s.Faults {
			if _, err := fmt.Fprintln(cmd.OutOrStdout(), oneLine(s.SessionID+": "+f.String(), 0)); err != nil {
				return err
			}
		}
	}
	return nil
}

// witness is a record of a log's chain, kept outside of the store.
type witness struct {
	SessionID string `json:"session_id"`
	Events    uint64 `json:"events"`
	ChainHead string `json:"chain_head"`
}

// readWitness reads the output of verify --json, one session per line.
func readWitness(cmd *cobra.Command, name string) (known []witness, err error) {
	if name == "" {
		return nil, nil
	}
	in := cmd.InOrStdin()
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	dec := json.NewDecoder(bufio.NewReader(in))
	for {
		var w witness
		switch err := dec.Decode(&w); {
		case errors.Is(err, io.EOF):
			return known, nil
		case err != nil:
			return nil, fmt.Errorf("value %d is none that --json writes", len(known)+1)
		case w.SessionID == "":
			return nil, fmt.Errorf("value %d has no session_id", len(known)+1)
		}
		known = append(known, w)
	}
}
