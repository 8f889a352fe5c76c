package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/contextd/contextd/cmd/contextd/internal/gauges"
	"github.com/contextd/contextd/internal/assemble"
	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// makeStore writes a session and a projection of it into a store.
func makeStore(t *testing.T, dir, session string, texts ...string) {
	t.Helper()
	store, err := disklog.Open(dir, disklog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	var events []eventlog.Event
	for _, text := range texts {
		events = append(events, eventlog.Event{ID: text, Body: &eventlog.Message{Role: eventlog.RoleUser, Blocks: []eventlog.Block{eventlog.Text{Text: text}}}})
	}
	commit, err := store.Append(t.Context(), session, eventlog.Batch{Events: events})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := commit.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	models, err := budget.NewModels()
	if err != nil {
		t.Fatal(err)
	}
	clock := func() time.Time { return time.Unix(1, 0) }
	engine := assemble.New(store, assemble.Options{Gauges: gauges.Open, Models: models, Clock: clock})
	if _, err := engine.Assemble(t.Context(), assemble.Request{SessionID: session, Budget: budget.Spec{Tokenizer: budget.TokenizerHeuristic, MaxTokens: 1000}}); err != nil {
		t.Fatal(err)
	}
}

func runVerify(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, diagnostics bytes.Buffer
	p := Program{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &diagnostics, LookupEnv: func(string) (string, bool) { return "", false }}
	code = p.Run(context.WithoutCancel(t.Context()), append([]string{"verify"}, args...))
	return code, out.String(), diagnostics.String()
}

// TestVerifyFindsForgery replaces a store by a consistent one with other content, which only a witness
// detects.
func TestVerifyFindsForgery(t *testing.T) {
	dir := t.TempDir()
	honest, forged := filepath.Join(dir, "honest"), filepath.Join(dir, "forged")
	makeStore(t, honest, "s", "one", "two")
	makeStore(t, forged, "s", "one", "too")
	code, heads, stderr := runVerify(t, "--embedded", honest, "--json")
	if code != ExitOK || !strings.Contains(heads, `"projections":1`) {
		t.Fatalf("exit %d, %s%s", code, heads, stderr)
	}
	witness := filepath.Join(dir, "heads.jsonl")
	if err := os.WriteFile(witness, []byte(heads), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, _ := runVerify(t, "--embedded", honest, "--witness", witness); code != ExitOK {
		t.Errorf("its own witness: exit %d, %s", code, out)
	}
	if code, out, _ := runVerify(t, "--embedded", forged); code != ExitOK {
		t.Errorf("without a witness: exit %d, %s", code, out)
	}
	if code, out, _ := runVerify(t, "--embedded", forged, "--witness", witness); code != ExitFailure || !strings.Contains(out, "s: witness: the chain after event 2 is") {
		t.Errorf("with a witness: exit %d, %s", code, out)
	}
}

// TestVerifyFindsDamage changes an event in the database beneath the store. The other session stays intact.
func TestVerifyFindsDamage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	makeStore(t, dir, "s", "said once and for all", "two")
	makeStore(t, dir, "t", "other")
	db, err := pebble.Open(filepath.Join(dir, "db"), &pebble.Options{FormatMajorVersion: pebble.FormatNewest, Logger: quiet{}})
	if err != nil {
		t.Fatal(err)
	}
	it, err := db.NewIter(nil)
	if err != nil {
		t.Fatal(err)
	}
	changed := 0
	for ok := it.First(); ok; ok = it.Next() {
		value := bytes.Clone(it.Value())
		if at := bytes.Index(value, []byte("once")); at >= 0 && it.Key()[0] == 'g' && it.Key()[9] == 'e' {
			changed++
			value[at] = 'O'
			if err := db.Set(bytes.Clone(it.Key()), value, pebble.Sync); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(it.Close(), db.Close()); err != nil || changed != 1 {
		t.Fatalf("changed %d records, %v", changed, err)
	}
	code, out, stderr := runVerify(t, "--embedded", dir)
	if code != ExitFailure || !strings.Contains(out, "s: log: ") || !strings.Contains(stderr, "1 of 2 sessions") {
		t.Errorf("exit %d, %s%s", code, out, stderr)
	}
	if code, out, stderr := runVerify(t, "--embedded", dir, "--session", "t"); code != ExitOK {
		t.Errorf("the other session: exit %d, %s%s", code, out, stderr)
	}
}

// wrongSource is a source whose projections differ when they are rebuilt.
type wrongSource struct{}

func (wrongSource) sessions(context.Context, []string) ([]string, error) { return []string{"s"}, nil }

func (wrongSource) life(context.Context, string) (string, error) { return "one", nil }

func (wrongSource) log(context.Context, string) (auditedLog, error) {
	return auditedLog{1, "sha256:1", logRead}, nil
}

func (wrongSource) chain(context.Context, string, uint64) (string, error) { return "sha256:1", nil }

func (wrongSource) projections(context.Context, string) ([]string, error) {
	return []string{"p1-0001", "p1-0002", "p1-0003"}, nil
}

func (wrongSource) replay(_ context.Context, _, id string) (string, error) {
	switch id {
	case "p1-0001":
		return "", nil
	case "p1-0002":
		return "tokens: recorded 1, replayed 2", nil
	default:
		return "", &eventlog.NotFoundError{Kind: "artifact", Name: "summary"}
	}
}

// endedSource is a source that becomes unavailable.
type endedSource struct{ wrongSource }

func (endedSource) replay(context.Context, string, string) (string, error) {
	return "", &eventlog.UnavailableError{Cause: io.ErrUnexpectedEOF}
}

// deletedSource is a source whose session is deleted and created again while it is verified, a number of
// times.
type deletedSource struct {
	wrongSource
	left, asked int
}

func (d *deletedSource) life(context.Context, string) (string, error) {
	if d.asked++; d.asked%2 == 0 && d.left > 0 {
		d.left--
		return "another", nil
	}
	return "one", nil
}

// briefSource is a source whose session only exists while it is read.
type briefSource struct{ wrongSource }

func (briefSource) life(context.Context, string) (string, error) { return "", nil }

// TestAuditorOfSessionsThatAreDeleted: a session that is deleted while it is verified is verified again.
// Faults that the deletion caused are not reported.
func TestAuditorOfSessionsThatAreDeleted(t *testing.T) {
	for source, want := range map[auditSource]sessionAudit{
		&deletedSource{left: 1}:   {Log: logRead, Projections: 3, Faults: make([]auditFault, 2)},
		&deletedSource{left: 100}: {Log: logGone},
		briefSource{}:             {Log: logGone},
	} {
		a := auditor{source: source, progress: &progress{}}
		found, err := a.run(t.Context(), []string{"s"}, true)
		if err != nil || len(found) != 1 || found[0].Log != want.Log || found[0].Projections != want.Projections || len(found[0].Faults) != len(want.Faults) {
			t.Errorf("%T: %+v, %v", source, found, err)
		}
	}
}

func TestAuditorNamesWhatDiffers(t *testing.T) {
	a := auditor{source: wrongSource{}, progress: &progress{}}
	found, err := a.run(t.Context(), []string{"s"}, true)
	if err != nil || len(found) != 1 {
		t.Fatalf("found %v, %v", found, err)
	}
	var got []string
	for _, f := range found[0].Faults {
		got = append(got, f.String())
	}
	want := `projection p1-0002: tokens: recorded 1, replayed 2 / projection p1-0003: artifact "summary" does not exist`
	if text := strings.Join(got, " / "); text != want || found[0].Projections != 3 {
		t.Errorf("%d projections, faults %s; want %s", found[0].Projections, text, want)
	}
	for rebuiltAlone, want := range map[bool]string{true: "1 of 1 sessions are whole", false: "1 of 1 sessions are not what they were"} {
		found := slices.Clone(found)
		if rebuiltAlone {
			found[0].Faults = found[0].Faults[:1]
		}
		cmd := &cobra.Command{}
		cmd.SetOut(io.Discard)
		if err := (&client{}).writeAudit(cmd, found); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	a.source = endedSource{}
	if _, err := a.run(t.Context(), []string{"s"}, true); err == nil {
		t.Error("a store that failed was verified")
	}
}

// quiet drops Pebble's log.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}

// briefly is a daemon that has many projections, of which it may be asked for what does not grow with the log alone.
type briefly struct {
	contextdv1.ContextServiceClient
	t *testing.T
}

func (b briefly) ListProjections(_ context.Context, req *contextdv1.ListProjectionsRequest, _ ...grpc.CallOption) (*contextdv1.ListProjectionsResponse, error) {
	if !req.GetBrief() {
		b.t.Error("the projections were asked for with all that they list")
	}
	if req.GetPageToken() == "" {
		return &contextdv1.ListProjectionsResponse{Projections: []*contextdv1.Projection{{ProjectionId: "p1-0001"}}, NextPageToken: "more"}, nil
	}
	return &contextdv1.ListProjectionsResponse{Projections: []*contextdv1.Projection{{ProjectionId: "p2-0001"}}}, nil
}

// TestVerifyListsIDs: the ids of 6,000 projections of a long session came with 75 MB of what they had dropped.
func TestVerifyListsIDs(t *testing.T) {
	ids, err := remoteSource{api{ContextServiceClient: briefly{t: t}}}.projections(t.Context(), "s")
	if err != nil || !slices.Equal(ids, []string{"p1-0001", "p2-0001"}) {
		t.Errorf("ids %v, %v", ids, err)
	}
}
