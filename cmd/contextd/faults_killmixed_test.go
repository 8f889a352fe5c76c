package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/contextd/contextd/cmd/contextd/internal/cli"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// mixed is what clients know besides the events that they appended.
type mixed struct {
	mu sync.Mutex
	// projections and compactions are the acknowledged ones since the last check.
	projections map[string][]string
	compactions map[string][]uint64
	// heads are the last seqs of forks and imports, which get no further appends; 0 where their creation was
	// not acknowledged.
	heads map[string]uint64
	// deleted has the sessions whose deletion was requested, and whether it was acknowledged.
	deleted map[string]bool
	done    map[string]int // counts of acknowledged calls, by kind
}

func newMixed() *mixed {
	return &mixed{
		projections: map[string][]string{}, compactions: map[string][]uint64{}, heads: map[string]uint64{},
		deleted: map[string]bool{}, done: map[string]int{},
	}
}

func (m *mixed) String() string {
	var out bytes.Buffer
	for i, kind := range slices.Sorted(maps.Keys(m.done)) {
		if i > 0 {
			out.WriteString(", ")
		}
		fmt.Fprintf(&out, "%d %s", m.done[kind], kind)
	}
	return out.String()
}

// note updates what is known, and counts an acknowledged call.
func (m *mixed) note(kind string, learned func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	learned()
	if kind != "" {
		m.done[kind]++
	}
}

// verify checks everything that a restarted daemon must still have.
func (m *mixed) verify(t *testing.T, client contextdv1.ContextServiceClient) {
	t.Helper()
	for session, ids := range m.projections {
		for _, id := range ids {
			resp, err := client.ReplayProjection(t.Context(), &contextdv1.ReplayProjectionRequest{SessionId: session, ProjectionId: id})
			if err != nil || !resp.GetSame() {
				t.Fatalf("%s: projection %s was recorded: %v, %s", session, id, err, resp.GetDifference())
			}
		}
	}
	for session, seqs := range m.compactions {
		events := readAll(t, client, session)
		for _, seq := range seqs {
			if seq > uint64(len(events)) || events[seq-1].GetCompaction() == nil {
				t.Fatalf("%s: a compaction was acknowledged as event %d and is not there", session, seq)
			}
		}
	}
	clear(m.projections)
	clear(m.compactions)
	for session, head := range m.heads {
		resp, err := client.GetSession(t.Context(), &contextdv1.GetSessionRequest{SessionId: session})
		acknowledged, doomed := m.deleted[session]
		gone := status.Code(err) == codes.NotFound
		switch {
		case acknowledged && !gone:
			t.Fatalf("%s was deleted and is there: %v", session, err)
		case gone && (doomed || head == 0):
			delete(m.heads, session)
		case err != nil:
			t.Fatalf("%s: %v", session, err)
		case head > 0 && resp.GetSession().GetHeadSeq() != head:
			t.Fatalf("%s has %d events of %d", session, resp.GetSession().GetHeadSeq(), head)
		}
	}
}

// there returns the acknowledged forks and imports whose deletion was not requested.
func (m *mixed) there() (out []string) {
	for _, session := range slices.Sorted(maps.Keys(m.heads)) {
		if _, doomed := m.deleted[session]; !doomed && m.heads[session] > 0 {
			out = append(out, session)
		}
	}
	return out
}

// killMixer makes an agent's calls other than appends, until the daemon is gone.
type killMixer struct {
	*killable
	know    *knowledge
	acked   func()
	name    string
	rng     *rand.Rand
	backups string
	own     []string // sessions that only this one may delete
	steps   int
}

func (m *killMixer) run(t *testing.T) {
	for {
		m.steps++
		if err := m.step(t); err != nil {
			expectGone(t, err)
			return
		}
		m.acked()
	}
}

func (m *killMixer) step(t *testing.T) error {
	session := fmt.Sprintf("s%d", m.rng.IntN(killSessions))
	made := fmt.Sprintf("%s-%d", m.name, m.steps)
	switch k := m.rng.IntN(20); {
	case k < 6:
		return m.assemble(session)
	case k < 9:
		return m.compact(session, []string{"mask", "window", "summarize"}[k-6])
	case k < 12:
		return m.fork(session, made)
	case k < 14:
		return m.importInto(made)
	case k < 19 && len(m.own) > 0:
		return m.delete()
	case k == 19:
		return m.backup(t, filepath.Join(m.backups, made))
	default:
		return nil
	}
}

// notYet reports that a session does not exist yet.
func notYet(err error) bool { return status.Code(err) == codes.NotFound }

func (m *killMixer) assemble(session string) error {
	stream, err := m.client.AssembleContext(context.Background(), &contextdv1.AssembleContextRequest{
		SessionId: session, Budget: &contextdv1.Budget{MaxTokens: 20_000, Tokenizer: "heuristic"},
	})
	if err != nil {
		return err
	}
	first, err := stream.Recv()
	if notYet(err) || status.Code(err) == codes.FailedPrecondition { // a large message alone may exceed the budget
		return nil
	}
	if err != nil {
		return err
	}
	m.know.note("contexts", func() {
		m.know.projections[session] = append(m.know.projections[session], first.GetHeader().GetProjection().GetProjectionId())
	})
	for err == nil {
		_, err = stream.Recv()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

func (m *killMixer) compact(session, strategy string) error {
	resp, err := contextdv1.NewCompactionServiceClient(m.conn).CompactSession(context.Background(), &contextdv1.CompactSessionRequest{
		SessionId: session, Strategy: strategy, KeepLastTurns: 1,
	})
	if notYet(err) {
		return nil
	}
	if err == nil && resp.GetCompactionSeq() > 0 {
		m.know.note("compactions by "+resp.GetStrategy(), func() {
			m.know.compactions[session] = append(m.know.compactions[session], resp.GetCompactionSeq())
		})
	}
	return err
}

func (m *killMixer) fork(session, made string) error {
	m.know.note("", func() { m.know.heads[made] = 0 })
	resp, err := m.client.ForkSession(context.Background(), &contextdv1.ForkSessionRequest{SessionId: session, NewSessionId: made})
	if notYet(err) {
		return nil
	}
	if err == nil {
		m.own = append(m.own, made)
		m.know.note("forks", func() { m.know.heads[made] = resp.GetSession().GetHeadSeq() })
	}
	return err
}

// importInto imports a transcript of two messages, and repeats the import if it was not answered.
func (m *killMixer) importInto(made string) error {
	const transcript = `[{"role":"user","content":"Which files are there?"},{"role":"assistant","content":"None."}]`
	m.know.note("", func() { m.know.heads[made] = 0 })
	stream, err := contextdv1.NewTranscriptServiceClient(m.conn).ImportTranscript(context.Background())
	if err != nil {
		return err
	}
	// CloseAndRecv returns errors of Send.
	_ = stream.Send(&contextdv1.ImportTranscriptRequest{Part: &contextdv1.ImportTranscriptRequest_Header{Header: &contextdv1.ImportHeader{SessionId: made, Harness: "chat"}}})
	_ = stream.Send(&contextdv1.ImportTranscriptRequest{Part: &contextdv1.ImportTranscriptRequest_Data{Data: []byte(transcript)}})
	resp, err := stream.CloseAndRecv()
	if err == nil {
		m.own = append(m.own, made)
		m.know.note("imports", func() { m.know.heads[made] = resp.GetSession().GetHeadSeq() })
	}
	return err
}

func (m *killMixer) delete() error {
	doomed := m.own[0]
	m.own = m.own[1:]
	m.know.note("", func() { m.know.deleted[doomed] = false })
	_, err := m.client.DeleteSession(context.Background(), &contextdv1.DeleteSessionRequest{SessionId: doomed})
	if err == nil {
		m.know.note("deletions", func() { m.know.deleted[doomed] = true })
	}
	return err
}

// backup takes a backup, and checks that it has what was acknowledged before.
func (m *killMixer) backup(t *testing.T, dir string) error {
	before := m.know.newest()
	out, err := exec.Command(m.cmd.Path, "backup", dir, "--addr", "unix://"+m.socket).CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		switch exit.ExitCode() {
		case cli.ExitUnavailable:
			return status.Errorf(codes.Unavailable, "backup: %s", out)
		case cli.ExitPrecondition:
			if bytes.Contains(out, []byte("a session was deleted meanwhile")) { // at every attempt
				m.know.note("backups that deletions ended", func() {})
				return nil
			}
		}
	}
	if err != nil {
		return fmt.Errorf("backup: %w\n%s", err, out)
	}
	defer os.RemoveAll(dir)
	out, err = exec.Command(m.cmd.Path, "verify", "--json", "--embedded", dir).Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return fmt.Errorf("verify a backup: %w\n%s%s", err, exit.Stderr, out)
	}
	if err != nil {
		return err
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var found struct {
			SessionID string `json:"session_id"`
			Events    uint64 `json:"events"`
		}
		if err := dec.Decode(&found); err != nil {
			return err
		}
		if found.Events < before[found.SessionID] {
			t.Errorf("a backup has %d events of %s; %d were acknowledged before it", found.Events, found.SessionID, before[found.SessionID])
		}
		delete(before, found.SessionID)
	}
	if len(before) > 0 {
		t.Errorf("a backup lacks %v", before)
	}
	m.know.note("backups", func() {})
	return nil
}

// newest returns the last acknowledged seq of each session.
func (k *knowledge) newest() map[string]uint64 {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := map[string]uint64{}
	for session, acked := range k.acked {
		out[session] = slices.Max(slices.Collect(maps.Values(acked)))
	}
	return out
}
