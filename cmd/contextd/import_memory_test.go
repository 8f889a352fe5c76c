package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// attack is a transcript that takes much more memory than its size.
type attack struct {
	harness string
	begin   string
	// again is repeated for the rest of the transcript; %d is replaced by a number.
	again string
}

// wide is a list of n equal values.
func wide(n int, value string) string { return strings.TrimSuffix(strings.Repeat(value+",", n), ",") }

var attacks = map[string]attack{
	"tiny messages":        {harness: "claude", again: `{"type":"user","uuid":"%d","message":{"role":"user","content":"x"}}` + "\n"},
	"tiny unknown":         {harness: "claude", again: `{"type":"t%d"}` + "\n"},
	"tiny skipped":         {harness: "claude", again: `{"type":"progress","uuid":"u%d","parentUuid":"p%d"}` + "\n"},
	"one id":               {harness: "claude", again: `{"type":"user","uuid":"a","message":{"role":"user","content":"%d"}}` + "\n"},
	"sidechains":           {harness: "claude", again: `{"type":"user","uuid":"%d","isSidechain":true,"agentId":"%d","message":{"role":"user","content":"x"}}` + "\n"},
	"noise":                {harness: "claude", again: "x%d\n"},
	"values on one line":   {harness: "claude", again: `{"type":"user"} `},
	"empty lines":          {harness: "claude", again: "\n"},
	"a line without end":   {harness: "claude", again: strings.Repeat("x", 1<<20)},
	"a string without end": {harness: "codex", begin: `{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"`, again: strings.Repeat("y", 1<<20)},
	"blocks":               {harness: "claude", again: `{"type":"user","uuid":"%d","message":{"role":"user","content":[` + wide(200_000, "{}") + `]}}` + "\n"},
	"text blocks":          {harness: "claude", again: `{"type":"user","uuid":"%d","message":{"role":"user","content":[` + wide(60_000, `{"type":"text","text":"x"}`) + `]}}` + "\n"},
	"members":              {harness: "claude", again: `{"type":"user","uuid":"%d",` + wide(200_000, `"m":1`) + `}` + "\n"},
	"nesting":              {harness: "claude", again: `{"type":"user","uuid":"%d","message":{"role":"user","content":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + "}}\n"},
	"long texts":           {harness: "claude", again: `{"type":"user","uuid":"%d","message":{"role":"user","content":"` + strings.Repeat("a", 10<<20) + `"}}` + "\n"},
	"escapes":              {harness: "claude", again: `{"type":"user","uuid":"%d","message":{"role":"user","content":"` + strings.Repeat(`\u0001`, 1<<20) + `"}}` + "\n"},
	"long ids":             {harness: "claude", again: `{"type":"progress","uuid":"%d` + strings.Repeat("u", 1<<20) + `"}` + "\n"},
	"images":               {harness: "claude", again: `{"type":"user","uuid":"%d","message":{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + strings.Repeat("AAAA", 1<<20) + `"}}]}}` + "\n"},
	"open calls":           {harness: "claude", again: `{"type":"assistant","uuid":"%d","message":{"role":"assistant","id":"m%d","content":[{"type":"tool_use","id":"c%d","name":"n","input":{}}]}}` + "\n"},
	"compactions":          {harness: "codex", again: `{"type":"compacted","payload":{"message":"%d","replacement_history":[` + wide(2000, `{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]}`) + `]}}` + "\n"},
	"items":                {harness: "codex", again: `{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"%d"}]}}` + "\n"},
	"kinds":                {harness: "codex", again: `{"type":"event_msg","payload":{"type":"k%d"}}` + "\n"},
	"a list":               {harness: "chat", begin: "[", again: `{"role":"user","content":"%d"},`},
	"newlines in a list":   {harness: "chat", begin: "[", again: strings.Repeat("\n", 1<<16)},
	"conversations":        {harness: "chat", begin: "[", again: `{"messages":[{"role":"user","content":"%d"}]},`},
	"fields":               {harness: "chat", begin: `{"messages":[],`, again: `"f%d":1,`},
	"opencode messages":    {harness: "opencode", begin: `{"info":{"id":"s","directory":"/"},"messages":[`, again: `{"info":{"id":"m%d","role":"user"},"parts":[{"id":"p%d","type":"text","text":"x"}]},`},
	"gemini messages":      {harness: "gemini", begin: `{"sessionId":"s","projectHash":"h","messages":[`, again: `{"id":"%d","type":"user","content":"x"},`},
	"pi lines":             {harness: "pi", begin: `{"type":"session","id":"s","cwd":"/"}` + "\n", again: `{"type":"message","id":"%d","parentId":null,"message":{"role":"user","content":"x"}}` + "\n"},
	"openhands runs":       {harness: "openhands", again: `{"instance_id":"%d","instruction":"x","history":[{"id":0,"source":"user","action":"message","args":{"content":"x"}}]}` + "\n"},
	"aider lines":          {harness: "aider", begin: "# aider chat started at 2026-04-01 10:00:00\n\n", again: "a\n"},
	"aider chats":          {harness: "aider", again: "# aider chat started at 2026-04-01 10:00:00\n#### %d  \n"},
	"copilot records":      {harness: "copilot", again: `{"type":"user.message","id":"%d","data":{"content":"x"}}` + "\n"},
	"vscode requests":      {harness: "vscode", begin: `{"requests":[`, again: `{"requestId":"%d","message":{"text":"x"},"response":[{"value":"y"}]},`},
	"cursor rows":          {harness: "cursor", begin: "[", again: `{"key":"bubbleId:%d:%d","value":"{\"type\":1,\"text\":\"x\"}"},`},
	"cursor chats":         {harness: "cursor", begin: "[", again: `{"key":"composerData:%d","value":{"conversation":[{"bubbleId":"b","type":1,"text":"x"}]}},`},
}

// TestImportsWithinMemory sends every attack to the real program with the settings of the Kubernetes
// manifest, several times in parallel, to be imported and to be converted. The program must stay below the
// manifest's memory limit, answer each call, and go on working. Unless run in full, each attack has an
// eighth of its size.
func TestImportsWithinMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("SKIPPED: no /proc to read the memory of a process from; this needs Linux")
	}
	if testing.Short() {
		t.Skip("SKIPPED: -short leaves out imports that attack the daemon, which take minutes")
	}
	const limit = 512 << 20
	binary, dir := build(t), t.TempDir()
	d := &killable{cmd: exec.Command(binary, "serve", "--unix-socket", filepath.Join(dir, "s"), "--listen=127.0.0.1:0",
		"--data-dir", filepath.Join(dir, "data"), "--log-level=error", "--import-memory="+manifestFlag(t, "--import-memory="))}
	d.cmd.Env = append(os.Environ(), "GOMEMLIMIT="+heapLimit)
	var log bytes.Buffer
	d.cmd.Stderr = &log
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		d.stop(t)
		if t.Failed() {
			t.Logf("%.4000s", log.String())
		}
	}()
	var err error
	if d.conn, err = grpc.NewClient("unix://"+filepath.Join(dir, "s"), grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		t.Fatal(err)
	}
	if err := awaitReady(t.Context(), d.conn); err != nil {
		t.Fatal(err)
	}
	client := contextdv1.NewTranscriptServiceClient(d.conn)
	for i, name := range slices.Sorted(maps.Keys(attacks)) {
		ways := []bool{false, true}
		if !inFull() && i%4 > 0 {
			ways = ways[:1] // import and conversion read this harness in the same way
		}
		t.Run(name, func(t *testing.T) {
			for _, convert := range ways {
				answers := attacks[name].sendAll(t, client, convert, strings.ReplaceAll(name, " ", "-"))
				peak := peakMemory(t, d.cmd.Process.Pid)
				t.Logf("convert %v: %d MiB, answers %v", convert, peak>>20, answers)
				if peak > limit {
					t.Errorf("convert %v: %d MiB", convert, peak>>20)
				}
			}
		})
	}
}

// sendAll sends the transcript several times in parallel, and counts the answers.
func (a attack) sendAll(t *testing.T, client contextdv1.TranscriptServiceClient, convert bool, id string) map[string]int {
	t.Helper()
	answers := map[string]int{}
	var mu sync.Mutex
	var senders sync.WaitGroup
	for i := range 3 {
		senders.Go(func() {
			st := status.Convert(a.send(t, client, convert, fmt.Sprintf("a%d/%s", i, id)))
			mu.Lock()
			defer mu.Unlock()
			answers[st.Code().String()]++
			switch st.Code() {
			case codes.OK, codes.ResourceExhausted, codes.InvalidArgument, codes.AlreadyExists:
			default:
				t.Errorf("convert %v: %v", convert, st)
			}
		})
	}
	senders.Wait()
	return answers
}

// send sends the transcript until the daemon answers, and returns the answer's error.
func (a attack) send(t *testing.T, client contextdv1.TranscriptServiceClient, convert bool, id string) error {
	most := 10 << 20
	if len(a.again) > 1000 {
		most = 40 << 20 // records are few and long
	}
	if !inFull() {
		most /= 8
	}
	var send func([]byte) error
	var answer func() error
	if convert {
		stream, err := client.ConvertTranscript(t.Context())
		if err != nil {
			return err
		}
		header := &contextdv1.ConvertHeader{From: a.harness, To: "codex"}
		if err := stream.Send(&contextdv1.ConvertTranscriptRequest{Part: &contextdv1.ConvertTranscriptRequest_Header{Header: header}}); err != nil {
			return err
		}
		send = func(data []byte) error {
			return stream.Send(&contextdv1.ConvertTranscriptRequest{Part: &contextdv1.ConvertTranscriptRequest_Data{Data: data}})
		}
		answer = func() error {
			if err := stream.CloseSend(); err != nil {
				return err
			}
			for {
				if _, err := stream.Recv(); errors.Is(err, io.EOF) {
					return nil
				} else if err != nil {
					return err
				}
			}
		}
	} else {
		stream, err := client.ImportTranscript(t.Context())
		if err != nil {
			return err
		}
		header := &contextdv1.ImportHeader{SessionId: id, Harness: a.harness}
		if err := stream.Send(&contextdv1.ImportTranscriptRequest{Part: &contextdv1.ImportTranscriptRequest_Header{Header: header}}); err != nil {
			return err
		}
		send = func(data []byte) error {
			return stream.Send(&contextdv1.ImportTranscriptRequest{Part: &contextdv1.ImportTranscriptRequest_Data{Data: data}})
		}
		answer = func() error {
			_, err := stream.CloseAndRecv()
			return err
		}
	}
	const piece = 64 << 10
	buffer := []byte(a.begin)
	for n, sent := 0, 0; sent < most; n++ {
		for len(buffer) < piece {
			buffer = append(buffer, strings.ReplaceAll(a.again, "%d", strconv.Itoa(n))...)
			n++
		}
		for len(buffer) >= piece {
			data := bytes.Clone(buffer[:piece])
			buffer = append(buffer[:0], buffer[piece:]...)
			if send(data) != nil {
				return answer() // its error says why the stream ended
			}
			sent += piece
		}
	}
	return answer()
}

// peakMemory is the most memory that a process held since the last call.
func peakMemory(t *testing.T, pid int) uint64 {
	t.Helper()
	proc := fmt.Sprintf("/proc/%d/", pid)
	text, err := os.ReadFile(proc + "status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kib, err := strconv.ParseUint(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(proc+"clear_refs", []byte("5"), 0); err != nil {
		t.Fatal(err)
	}
	return kib << 10
}

// manifestFlag is the value of a flag in the Kubernetes manifest.
func manifestFlag(t *testing.T, flag string) string {
	t.Helper()
	manifest, err := os.ReadFile("../../deploy/kubernetes/base/sidecar/sidecar.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(manifest), flag)
	if !found {
		t.Fatalf("the manifest does not give %s", flag)
	}
	return strings.Fields(rest)[0]
}
