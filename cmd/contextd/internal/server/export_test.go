package server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/contextd/contextd/internal/harness"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/memlog"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// export asks for a session and holds the parts to the contract: pieces of at most
// 31 KiB, and one report, after them.
func (a *api) export(t *testing.T, req *contextdv1.ExportTranscriptRequest) ([]byte, *contextdv1.ExportReport, error) {
	t.Helper()
	stream, err := a.transcripts.ExportTranscript(t.Context(), req)
	if err != nil {
		return nil, nil, err
	}
	var data []byte
	var report *contextdv1.ExportReport
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			if report == nil {
				t.Error("there was no report")
			}
			return data, report, nil
		}
		if err != nil {
			return nil, nil, err
		}
		if report != nil {
			t.Error("a part came behind the report")
		}
		if n := len(resp.GetData()); n > 31<<10 {
			t.Errorf("a piece has %d bytes", n)
		}
		data, report = append(data, resp.GetData()...), resp.GetReport()
	}
}

// fixtures are the files that the readers are tested with.
func fixtures(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("../../../../internal/harness/*/testdata/*.in.*")
	if err != nil || len(found) < 15 {
		t.Fatalf("there are %d fixtures: %v", len(found), err)
	}
	return found
}

// TestConvertThroughTheLog: a file that goes through the log to a writer gives the
// bytes that it gives without one, subagents and absent times included.
func TestConvertThroughTheLog(t *testing.T) {
	eachStore(t, func(t *testing.T, open func(t *testing.T) eventlog.Store) {
		a := serve(t, open(t))
		read, linked, independent, untimed := map[string]bool{}, 0, 0, 0
		for _, file := range fixtures(t) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			direct, err := harness.Read(bytes.NewReader(data), "")
			if err != nil {
				t.Fatal(err)
			}
			read[direct.Harness] = true
			for _, s := range direct.Sessions {
				if s.ParentCallID != "" {
					linked++
				}
				for _, e := range s.Events {
					if e.Time.IsZero() {
						untimed++
					}
				}
			}
			id := strings.NewReplacer("../", "", "/testdata", "").Replace(file)
			if _, err := a.importAs(t, id, direct.Harness, string(data)); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			for _, s := range direct.Sessions[1:] {
				parent := ""
				if s.ParentCallID != "" || strings.HasPrefix(s.Suffix, "sidechain-") {
					parent = id
				} else {
					independent++
				}
				if got := a.session(t, id+"/"+s.Suffix); got.GetParentSessionId() != parent {
					t.Errorf("%s is a fork of %q, want %q", got.GetSessionId(), got.GetParentSessionId(), parent)
				}
			}
			for _, name := range harness.Writers() {
				o := harness.WriteOptions{SessionID: "0195f7c2-7e1a-7a53-9b0c-3f6f0a4b6f10", WorkingDirectory: "/src"}
				var want bytes.Buffer
				wrote, err := harness.Write(&want, direct, name, o)
				if err != nil {
					t.Fatal(err)
				}
				got, report, err := a.export(t, &contextdv1.ExportTranscriptRequest{
					SessionId: id, Harness: name, HarnessSessionId: o.SessionID, WorkingDirectory: o.WorkingDirectory,
				})
				if err != nil {
					t.Fatalf("%s as %s: %v", file, name, err)
				}
				if !bytes.Equal(got, want.Bytes()) {
					at := 0
					for at < len(got) && at < want.Len() && got[at] == want.Bytes()[at] {
						at++
					}
					t.Errorf("%s as %s: differs at byte %d:\n%.300s\nwithout the log:\n%.300s", file, name, at, got[max(0, at-100):], want.Bytes()[max(0, at-100):])
				}
				if report.GetEntries() != uint64(wrote.Entries) || report.GetCompactions() != uint64(wrote.Compactions) || len(report.GetWarnings()) != len(wrote.Warnings) {
					t.Errorf("%s as %s: reported %v; without the log: %v", file, name, report, wrote)
				}
			}
		}
		for _, name := range harness.Names() {
			if !read[name] {
				t.Errorf("no fixture is read by %s", name)
			}
		}
		if linked == 0 || independent == 0 || untimed == 0 {
			t.Errorf("the fixtures have %d subagents with a call, %d other sessions in a file and %d entries without a time", linked, independent, untimed)
		}
	})
}

// violated is the field that an error names.
func violated(err error) string {
	for _, d := range status.Convert(err).Details() {
		if bad, ok := d.(*errdetails.BadRequest); ok {
			return bad.GetFieldViolations()[0].GetField()
		}
	}
	return ""
}

func TestExportErrors(t *testing.T) {
	a := serve(t, memlog.New())
	if _, err := a.importInto(t, "s", transcript("What is there?")); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		req   *contextdv1.ExportTranscriptRequest
		code  codes.Code
		field string
		says  []string
	}{
		{"unknown harness", &contextdv1.ExportTranscriptRequest{SessionId: "s", Harness: "soup"}, codes.InvalidArgument, "harness", append([]string{"soup"}, harness.Writers()...)},
		{"no writer", &contextdv1.ExportTranscriptRequest{SessionId: "s", Harness: "gemini"}, codes.InvalidArgument, "harness", append([]string{"gemini"}, harness.Writers()...)},
		{"no harness", &contextdv1.ExportTranscriptRequest{SessionId: "s"}, codes.InvalidArgument, "harness", nil},
		{"unknown session", &contextdv1.ExportTranscriptRequest{SessionId: "t", Harness: "claude"}, codes.NotFound, "", []string{`"t"`}},
		{"budget for nothing", &contextdv1.ExportTranscriptRequest{SessionId: "s", Harness: "claude", Budget: &contextdv1.Budget{MaxTokens: 9}}, codes.InvalidArgument, "budget", nil},
		{"policy for nothing", &contextdv1.ExportTranscriptRequest{SessionId: "s", Harness: "claude", Policy: &contextdv1.Policy{}}, codes.InvalidArgument, "policy", nil},
		{"unknown policy", &contextdv1.ExportTranscriptRequest{SessionId: "s", Harness: "claude", AsCompacted: true, Policy: &contextdv1.Policy{Name: "soup"}}, codes.InvalidArgument, "policy.name", nil},
		{"too small a budget", &contextdv1.ExportTranscriptRequest{SessionId: "s", Harness: "claude", AsCompacted: true, Budget: &contextdv1.Budget{MaxTokens: 10}}, codes.FailedPrecondition, "", nil},
	}
	for _, tt := range tests {
		_, _, err := a.export(t, tt.req)
		if status.Code(err) != tt.code || violated(err) != tt.field {
			t.Errorf("%s: %v, field %q; want %s, %q", tt.name, err, violated(err), tt.code, tt.field)
		}
		for _, text := range tt.says {
			if !strings.Contains(status.Convert(err).Message(), text) {
				t.Errorf("%s: %v does not say %s", tt.name, err, text)
			}
		}
	}
	if _, _, err := a.export(t, &contextdv1.ExportTranscriptRequest{SessionId: "s", Harness: "claude-code"}); err != nil {
		t.Errorf("another name of a harness: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	stream, err := a.transcripts.ExportTranscript(ctx, &contextdv1.ExportTranscriptRequest{SessionId: "s", Harness: "claude"})
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.Canceled {
		t.Errorf("after the caller had gone: %v", err)
	}
	a.server.Drain()
	if _, _, err := a.export(t, &contextdv1.ExportTranscriptRequest{SessionId: "s", Harness: "claude"}); status.Code(err) != codes.Unavailable {
		t.Errorf("while draining: %v", err)
	}
}
