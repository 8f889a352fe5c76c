package demo

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"google.golang.org/grpc"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// watch follows the session's lifecycle events.
type watch struct {
	stream grpc.ServerStreamingClient[contextdv1.WatchLifecycleResponse]
	cancel context.CancelFunc
}

// newWatch returns once the daemon is sending events.
func newWatch(ctx context.Context, api contextdv1.CompactionServiceClient) (*watch, error) {
	ctx, cancel := context.WithCancel(ctx)
	stream, err := api.WatchLifecycle(ctx, &contextdv1.WatchLifecycleRequest{SessionIds: []string{sessionID}})
	if err == nil {
		_, err = stream.Header()
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return &watch{stream, cancel}, nil
}

func (w *watch) close() { w.cancel() }

// summaryTime is how long the demo's summarizer, which calls no model, may take.
const summaryTime = 30 * time.Second

// summary waits until the summary up to an event is ready. For a real agent, it becomes ready while the model
// works.
func (w *watch) summary(through uint64) error {
	late := time.AfterFunc(summaryTime, w.cancel)
	defer late.Stop()
	for {
		resp, err := w.stream.Recv()
		if err != nil {
			return fmt.Errorf("waiting for the summary through event %d: %w", through, err)
		}
		e := resp.GetEvent()
		to, _ := strconv.ParseUint(e.GetAttributes()["to_seq"], 10, 64)
		switch {
		case e.GetType() == "summary_ready" && to >= through:
			return nil
		case e.GetType() == "summary_failed" && to >= through:
			return fmt.Errorf("no summary through event %d: %s", through, e.GetAttributes()["reason"])
		}
	}
}
