package server_test

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/contextd/contextd/internal/harness"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// withSubagents is a file of a session and its subagents, and what its reader makes of it.
func withSubagents(t *testing.T) (string, harness.Transcript) {
	t.Helper()
	data, err := os.ReadFile("../../../../internal/harness/claude/testdata/session.in.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	read, err := harness.Read(bytes.NewReader(data), "")
	if err != nil {
		t.Fatal(err)
	}
	if len(read.Sessions) < 3 {
		t.Fatalf("the fixture has %d sessions", len(read.Sessions))
	}
	return string(data), read
}

func (a *api) session(t *testing.T, id string) *contextdv1.Session {
	t.Helper()
	got, err := a.GetSession(t.Context(), &contextdv1.GetSessionRequest{SessionId: id})
	if err != nil {
		t.Fatal(err)
	}
	return got.GetSession()
}

func (a *api) listed(t *testing.T, labels map[string]string) []string {
	t.Helper()
	got, err := a.ListSessions(t.Context(), &contextdv1.ListSessionsRequest{Labels: labels})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, s := range got.GetSessions() {
		ids = append(ids, s.GetSessionId())
	}
	return ids
}

func (a *api) exportClaude(t *testing.T, id string) []byte {
	t.Helper()
	data, _, err := a.export(t, &contextdv1.ExportTranscriptRequest{SessionId: id, Harness: "claude"})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// checkSubagents holds the sessions that were imported into id to the file: with its own
// events alone, and those of subagents forks of the main one that share nothing.
func (a *api) checkSubagents(t *testing.T, id string, read harness.Transcript) {
	t.Helper()
	for _, part := range read.Sessions {
		got := a.session(t, strings.TrimSuffix(id+"/"+part.Suffix, "/"))
		if n := got.GetHeadSeq(); n != uint64(len(part.Events)) {
			t.Errorf("%s has %d events, and the file %d", got.GetSessionId(), n, len(part.Events))
		}
		parent := ""
		if part.Suffix != "" {
			parent = id
		}
		if got.GetParentSessionId() != parent || got.GetForkSeq() != 0 {
			t.Errorf("%s was forked from %q at %d; want %q at 0", got.GetSessionId(), got.GetParentSessionId(), got.GetForkSeq(), parent)
		}
		want := maps.Clone(part.Labels)
		if parent != "" {
			want["harness.parent_session"] = id
		}
		if part.ParentCallID != "" {
			want["harness.parent_call_id"] = part.ParentCallID
		}
		if !maps.Equal(got.GetLabels(), want) {
			t.Errorf("%s has the labels %v, want %v", got.GetSessionId(), got.GetLabels(), want)
		}
	}
}

// TestImportForksSubagents: a subagent's session is a fork of the one that began it, which
// shares no event; importing again, and more, leaves it one; it has its parent's settings
// and outlives it.
func TestImportForksSubagents(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		a := serve(t, open(t))
		data, read := withSubagents(t)
		side := "p/s/" + read.Sessions[1].Suffix
		if _, err := a.CreateSession(t.Context(), &contextdv1.CreateSessionRequest{
			SessionId: "p/s", Labels: read.Sessions[0].Labels, Budget: &contextdv1.Budget{MaxTokens: 12_345},
		}); err != nil {
			t.Fatal(err)
		}
		for i := range 2 {
			got, err := a.importAs(t, "p/s", "", data)
			if err != nil {
				t.Fatal(err)
			}
			if (got.GetEvents() > 0) != (i == 0) {
				t.Errorf("import %d appended %d events", i, got.GetEvents())
			}
			a.checkSubagents(t, "p/s", read)
		}
		if got := a.session(t, side).GetBudget().GetMaxTokens(); got != 12_345 {
			t.Errorf("its budget is %d", got)
		}
		all := []string{"p/s", "p/s/sidechain-1", "p/s/sidechain-2"}
		if got := a.listed(t, map[string]string{"harness.parent_session": "p/s"}); !slices.Equal(got, all[1:]) {
			t.Errorf("the sessions of subagents are %q", got)
		}
		if got := a.listed(t, nil); !slices.Equal(got, all) {
			t.Errorf("the sessions are %q", got)
		}
		if disk, ok := a.store.(*disklog.Store); ok {
			for _, id := range all {
				if err := disk.Verify(t.Context(), id); err != nil {
					t.Errorf("%s: %v", id, err)
				}
			}
		}

		// A file that grew: its subagent goes on.
		more := fmt.Sprintf(`{"type":"user","isSidechain":true,"parentUuid":%q,"uuid":"more","sessionId":"s1","message":{"role":"user","content":"More."}}`, read.Sessions[1].Events[0].ID)
		longer := data + "\n" + more + "\n"
		grown, err := harness.Read(strings.NewReader(longer), "")
		if err != nil || len(grown.Sessions[1].Events) != len(read.Sessions[1].Events)+1 {
			t.Fatalf("the file did not grow: %v", err)
		}
		if got, err := a.importAs(t, "p/s", "", longer); err != nil || got.GetEvents() != 1 {
			t.Errorf("imported %v, %v", got, err)
		}
		a.checkSubagents(t, "p/s", grown)
		exported := a.exportClaude(t, "p/s")
		if _, err := a.ForkSession(t.Context(), &contextdv1.ForkSessionRequest{SessionId: side, NewSessionId: "p/s/mine"}); err != nil {
			t.Fatal(err)
		}
		if again := a.exportClaude(t, "p/s"); !bytes.Equal(again, exported) {
			t.Error("a fork of a subagent's session is exported with its parent")
		}

		// Without its parent it stays what it was, and belongs to the next one of the name.
		if _, err := a.DeleteSession(t.Context(), &contextdv1.DeleteSessionRequest{SessionId: "p/s"}); err != nil {
			t.Fatal(err)
		}
		if got := a.session(t, side); got.GetHeadSeq() == 0 || got.GetParentSessionId() != "p/s" {
			t.Errorf("without its parent it is %v", got)
		}
		if _, _, err := a.export(t, &contextdv1.ExportTranscriptRequest{SessionId: "p/s", Harness: "claude"}); status.Code(err) != codes.NotFound {
			t.Errorf("exporting what was deleted: %v", err)
		}
		got, err := a.importAs(t, "p/s", "", longer)
		if err != nil || got.GetEvents() != uint32(len(read.Sessions[0].Events)) {
			t.Errorf("imported again: %v, %v", got, err)
		}
		a.checkSubagents(t, "p/s", grown)
		if again := a.exportClaude(t, "p/s"); !bytes.Equal(again, exported) {
			t.Error("the export differs after the parent was made again")
		}
	})
}

// TestImportIntoOlderSessions: where subagents' sessions are there from before they were
// forks, they stay what they are, and go on; a session of something else is left alone.
func TestImportIntoOlderSessions(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		a := serve(t, open(t))
		data, read := withSubagents(t)
		side := read.Sessions[1]
		labels := maps.Clone(side.Labels)
		labels["harness.parent_session"], labels["harness.parent_call_id"] = "s", side.ParentCallID
		if _, err := a.store.CreateSession(t.Context(), eventlog.Session{ID: "s/" + side.Suffix, CreateTime: epoch, Labels: labels}); err != nil {
			t.Fatal(err)
		}
		commit, err := a.store.Append(t.Context(), "s/"+side.Suffix, eventlog.Batch{Events: side.Events[:1], Time: epoch})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := commit.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"s", "new"} {
			if _, err := a.importAs(t, id, "", data); err != nil {
				t.Fatal(err)
			}
		}
		got := a.session(t, "s/"+side.Suffix)
		if got.GetParentSessionId() != "" || got.GetHeadSeq() != uint64(len(side.Events)) || !maps.Equal(got.GetLabels(), labels) {
			t.Errorf("the older session is %v", got)
		}
		a.checkSubagents(t, "new", read)
		if older, fresh := a.exportClaude(t, "s"), a.exportClaude(t, "new"); !bytes.Equal(older, fresh) {
			t.Error("the older session is exported in another way")
		}

		if _, err := a.CreateSession(t.Context(), &contextdv1.CreateSessionRequest{SessionId: "q/" + side.Suffix}); err != nil {
			t.Fatal(err)
		}
		_, err = a.importAs(t, "q", "", data)
		if got := violated(err); got != "header.session_id" {
			t.Errorf("importing over a session of something else: %v", err)
		}
	})
}

// TestImportSubagentsFile: a subagent's transcript that is a file of its own becomes a fork
// of the session whose id the file's place names, if that is there and began it.
func TestImportSubagentsFile(t *testing.T) {
	record := func(rest string) string { return `{"sessionId":"aaaa",` + rest + "}\n" }
	call := func(id, prompt string) string {
		return record(fmt.Sprintf(`"type":"assistant","uuid":%q,"message":{"role":"assistant","id":%q,"content":[{"type":"tool_use","id":%q,"name":"Task","input":{"prompt":%q}}]}`, "a"+id, "m"+id, id, prompt))
	}
	agent := record(`"type":"user","uuid":"x1","isSidechain":true,"agentId":"x","message":{"role":"user","content":"Look."}`)
	main := record(`"type":"user","uuid":"u1","message":{"role":"user","content":"Go."}`)
	for name, c := range map[string]struct {
		main, at, file string
		parent, call   string
	}{
		"below its parent":             {main + call("t1", "Look.") + call("t2", "Read."), "p/aaaa/subagents/agent-x", agent, "p/aaaa", "t1"},
		"of a call that is not known":  {main + call("t2", "Read."), "p/aaaa/subagents/agent-x", agent, "p/aaaa", ""},
		"of one of two calls":          {main + call("t1", "Look.") + call("t2", "Look."), "p/aaaa/subagents/agent-x", agent, "p/aaaa", ""},
		"elsewhere":                    {main + call("t1", "Look."), "q/agent-x", agent, "", ""},
		"of another session":           {main + call("t1", "Look."), "p/aaaa/subagents/agent-x", strings.ReplaceAll(agent, "aaaa", "p"), "", ""},
		"below a session of that name": {strings.ReplaceAll(main, "aaaa", "zzzz"), "p/aaaa/subagents/agent-x", agent, "", ""},
		"before its parent":            {"", "p/aaaa/subagents/agent-x", agent, "", ""},
		"no subagent":                  {main + call("t1", "Look."), "p/aaaa/subagents/agent-x", strings.ReplaceAll(agent, "true", "false"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
				a := serve(t, open(t))
				if c.main != "" {
					if _, err := a.importAs(t, "p/aaaa", "", c.main); err != nil {
						t.Fatal(err)
					}
				}
				for range 2 {
					if _, err := a.importAs(t, c.at, "claude", c.file); err != nil {
						t.Fatal(err)
					}
				}
				got := a.session(t, c.at)
				if got.GetHeadSeq() != 1 || got.GetParentSessionId() != c.parent || got.GetLabels()["harness.parent_call_id"] != c.call {
					t.Errorf("it is %v", got)
				}
				if again := a.exportClaude(t, c.at); strings.Count(string(again), "\n") != 1 || !strings.Contains(string(again), "Look.") {
					t.Errorf("it is exported as %s", again)
				}
			})
		})
	}
}
