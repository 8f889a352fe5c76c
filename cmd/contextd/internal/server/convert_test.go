package server_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/contextd/contextd/internal/harness"
	"github.com/contextd/contextd/internal/log/memlog"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func (a *api) convert(t *testing.T, data []byte, parts ...*contextdv1.ConvertTranscriptRequest) ([]byte, *contextdv1.ExportReport, error) {
	t.Helper()
	stream, err := a.transcripts.ConvertTranscript(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for piece := range slices.Chunk(data, 10_000) {
		parts = append(parts, &contextdv1.ConvertTranscriptRequest{Part: &contextdv1.ConvertTranscriptRequest_Data{Data: piece}})
	}
	for _, part := range parts {
		if err := stream.Send(part); err != nil {
			break // Recv says why
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	var out []byte
	var report *contextdv1.ExportReport
	for {
		resp, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return out, report, nil
		}
		if err != nil {
			return nil, nil, err
		}
		if report != nil || len(resp.GetData()) > 31<<10 {
			t.Errorf("a part of %d bytes, behind the report: %v", len(resp.GetData()), report != nil)
		}
		out, report = append(out, resp.GetData()...), resp.GetReport()
	}
}

func converting(h *contextdv1.ConvertHeader) *contextdv1.ConvertTranscriptRequest {
	return &contextdv1.ConvertTranscriptRequest{Part: &contextdv1.ConvertTranscriptRequest_Header{Header: h}}
}

// What is converted over the wire has the bytes and the warnings that it has without, and
// nothing of it is kept.
func TestConvertTranscript(t *testing.T) {
	a := serve(t, memlog.New())
	for _, file := range fixtures(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		read, err := harness.Read(bytes.NewReader(data), "")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range harness.Writers() {
			var want bytes.Buffer
			wrote, err := harness.Write(&want, read, name, harness.WriteOptions{WorkingDirectory: "/src"})
			if err != nil {
				t.Fatal(err)
			}
			got, report, err := a.convert(t, data, converting(&contextdv1.ConvertHeader{To: name, WorkingDirectory: "/src"}))
			if err != nil || !bytes.Equal(got, want.Bytes()) {
				t.Fatalf("%s to %s: %d bytes instead of %d, %v", file, name, len(got), want.Len(), err)
			}
			if n := len(read.Warnings) + len(wrote.Warnings); int(report.GetEntries()) != wrote.Entries || len(report.GetWarnings()) != n {
				t.Errorf("%s to %s: %v; %d entries and %d warnings are due", file, name, report, wrote.Entries, n)
			}
		}
	}
	sessions, err := a.ListSessions(t.Context(), &contextdv1.ListSessionsRequest{})
	if err != nil || len(sessions.GetSessions()) > 0 {
		t.Errorf("kept %v, %v", sessions.GetSessions(), err)
	}
}

func TestConvertErrors(t *testing.T) {
	a := serve(t, memlog.New())
	data := []byte(`{"messages":[{"role":"user","content":"x"}]}`)
	for name, test := range map[string]struct {
		data  []byte
		parts []*contextdv1.ConvertTranscriptRequest
		field string
	}{
		"no header":       {data, nil, "header"},
		"two headers":     {data, []*contextdv1.ConvertTranscriptRequest{converting(&contextdv1.ConvertHeader{To: "pi"}), converting(&contextdv1.ConvertHeader{To: "pi"})}, "header"},
		"to nobody":       {data, []*contextdv1.ConvertTranscriptRequest{converting(&contextdv1.ConvertHeader{To: "abacus"})}, "header.to"},
		"to a reader":     {data, []*contextdv1.ConvertTranscriptRequest{converting(&contextdv1.ConvertHeader{To: "gemini"})}, "header.to"},
		"from no harness": {data, []*contextdv1.ConvertTranscriptRequest{converting(&contextdv1.ConvertHeader{From: "abacus", To: "pi"})}, ""},
		"from no format":  {[]byte("no transcript"), []*contextdv1.ConvertTranscriptRequest{converting(&contextdv1.ConvertHeader{To: "pi"})}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := a.convert(t, test.data, test.parts...)
			if status.Code(err) != codes.InvalidArgument || test.field != "" && !strings.HasPrefix(violated(err), test.field) {
				t.Errorf("%v, at %q", err, violated(err))
			}
		})
	}
}
