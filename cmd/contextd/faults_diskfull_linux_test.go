package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/cmd/contextd/internal/health"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// TestFaultDiskFull fills the disk of the real program. The program must still read, export, delete and start
// again, and accept appends again once there is space.
func TestFaultDiskFull(t *testing.T) {
	dir := ownDisk(t, "96m")
	binary := build(t)
	data := "--data-dir=" + filepath.Join(dir, "data")
	p := spawn(t, exec.Command(binary, "serve", data))
	client := contextdv1.NewContextServiceClient(p.conn)

	acked := map[string]int{}
	var refused error
	for n := 0; refused == nil; n++ {
		session := fmt.Sprintf("s%d", n%2)
		if refused = appendNoise(t.Context(), client, session, n); refused == nil {
			acked[session]++
		}
	}
	expectDiskFull(t, refused)
	if got := partOf(t, p, health.Store); got != grpc_health_v1.HealthCheckResponse_NOT_SERVING {
		t.Errorf("the health of the store is %s", got)
	}
	if got := partOf(t, p, ""); got != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("the health of the daemon is %s", got)
	}

	readAllOf(t, client, acked)
	p.kill(t)
	p = spawn(t, exec.Command(binary, "serve", data))
	client = contextdv1.NewContextServiceClient(p.conn)
	readAllOf(t, client, acked)
	// Cleaning up after the kill may have freed some space.
	refused = nil
	for n := 1_000_000; refused == nil; n++ {
		if refused = appendNoise(t.Context(), client, "s1", n); refused == nil {
			acked["s1"]++
		}
	}
	expectDiskFull(t, refused)
	if _, err := client.DeleteSession(t.Context(), &contextdv1.DeleteSessionRequest{SessionId: "s0"}); err != nil {
		t.Fatalf("delete on a full disk: %v", err)
	}
	delete(acked, "s0")

	// Deleting frees space.
	within := time.Now().Add(time.Minute)
	err := appendNoise(t.Context(), client, "s1", -1)
	for ; err != nil && time.Now().Before(within); err = appendNoise(t.Context(), client, "s1", -1) {
		expectDiskFull(t, err)
	}
	if err != nil {
		t.Fatalf("with room: %v\n%s", err, p.log)
	}
	acked["s1"]++
	readAllOf(t, client, acked)
	if log := p.log.String(); !strings.Contains(log, "there is room on the disk again") {
		t.Errorf("the log does not say so:\n%s", log)
	}
}

func expectDiskFull(t *testing.T, err error) {
	t.Helper()
	st := status.Convert(err)
	retry := false
	for _, detail := range st.Details() {
		if d, ok := detail.(*errdetails.RetryInfo); ok {
			retry = d.GetRetryDelay().AsDuration() > 0
		}
	}
	if st.Code() != codes.ResourceExhausted || reasonOf(err) != apierr.ReasonDiskFull || !retry {
		t.Fatalf("an append was refused with %v %v", st, st.Details())
	}
}

func partOf(t *testing.T, p *process, part string) grpc_health_v1.HealthCheckResponse_ServingStatus {
	t.Helper()
	// The daemon checks its parts every second, and the watch gets each change.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	watch, err := grpc_health_v1.NewHealthClient(p.conn).Watch(ctx, &grpc_health_v1.HealthCheckRequest{Service: part})
	if err != nil {
		t.Fatal(err)
	}
	var last grpc_health_v1.HealthCheckResponse_ServingStatus
	for {
		resp, err := watch.Recv()
		if err != nil {
			return last
		}
		last = resp.GetStatus()
		if part == "" || last == grpc_health_v1.HealthCheckResponse_NOT_SERVING {
			return last
		}
	}
}

// appendNoise appends a message that hardly compresses.
func appendNoise(ctx context.Context, client contextdv1.ContextServiceClient, session string, n int) error {
	id := fmt.Sprintf("%s-%d", session, n)
	random := make([]byte, 128<<10)
	_, _ = rand.NewChaCha8(sha256.Sum256([]byte(id))).Read(random) // it never fails
	_, err := client.AppendEvents(ctx, &contextdv1.AppendEventsRequest{SessionId: session, Events: []*contextdv1.Event{{
		EventId: id, Kind: &contextdv1.Event_Message{Message: &contextdv1.Message{
			Role:   contextdv1.Role_ROLE_USER,
			Blocks: []*contextdv1.Block{{Kind: &contextdv1.Block_Text{Text: &contextdv1.Text{Text: hex.EncodeToString(random)}}}},
		}},
	}}})
	return err
}

func readAllOf(t *testing.T, client contextdv1.ContextServiceClient, acked map[string]int) {
	t.Helper()
	for session, n := range acked {
		if events := readAll(t, client, session); len(events) != n {
			t.Errorf("%s has %d events of %d", session, len(events), n)
		}
	}
}
