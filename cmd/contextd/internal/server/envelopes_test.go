package server_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/contextd/contextd/internal/harness"
	eventlog "github.com/contextd/contextd/internal/log"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// interrupted fails to put envelopes, once it was asked so often.
type interrupted struct {
	eventlog.Store
	after int
}

func (s *interrupted) PutArtifacts(ctx context.Context, id string, all ...eventlog.Artifact) error {
	if len(all) > 0 && all[0].Kind == harness.EnvelopeKind {
		if s.after--; s.after == -1 {
			return errors.New("interrupted")
		}
	}
	return s.Store.PutArtifacts(ctx, id, all...)
}

// TestEnvelopesAreCompletedByAnotherImport: an import that ended between the events and what
// is kept beside them is whole once it is repeated, and writes nothing that is there.
func TestEnvelopesAreCompletedByAnotherImport(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		data, read := withSubagents(t)
		var want bytes.Buffer
		if _, err := harness.Write(&want, read, "claude", harness.WriteOptions{}); err != nil {
			t.Fatal(err)
		}
		for after := range len(read.Sessions) {
			a := serve(t, &interrupted{open(t), after})
			if _, err := a.importAs(t, "s", "", data); err == nil {
				t.Fatalf("it was not interrupted after %d", after)
			}
			if _, err := a.importAs(t, "s", "", data); err != nil {
				t.Fatal(err)
			}
			if got := a.exportClaude(t, "s"); !bytes.Equal(got, want.Bytes()) {
				t.Errorf("interrupted after %d, the session is exported as\n%s", after, got)
			}
		}
	})
}

// TestForkOfAnImportIsExported: a fork has what was kept of the events that it shares.
func TestForkOfAnImportIsExported(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		a := serve(t, open(t))
		data, read := withSubagents(t)
		if _, err := a.importAs(t, "s", "", data); err != nil {
			t.Fatal(err)
		}
		main := read.Sessions[0]
		for n := 1; n <= len(main.Events); n++ {
			at := uint64(n)
			fork := fmt.Sprint("f", n)
			if _, err := a.ForkSession(t.Context(), &contextdv1.ForkSessionRequest{SessionId: "s", NewSessionId: fork, AtSeq: at}); err != nil {
				t.Fatal(err)
			}
			part := main
			part.Events = main.Events[:n]
			var want bytes.Buffer
			if _, err := harness.Write(&want, harness.Transcript{Sessions: []harness.Session{part}}, "claude", harness.WriteOptions{}); err != nil {
				t.Fatal(err)
			}
			if got := a.exportClaude(t, fork); !bytes.Equal(got, want.Bytes()) {
				t.Errorf("forked at %d, the session is exported as\n%s\nwant\n%s", n, got, want.Bytes())
			}
		}
	})
}
