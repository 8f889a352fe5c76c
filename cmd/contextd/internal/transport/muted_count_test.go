package transport

import (
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

func TestFailuresAreCounted(t *testing.T) {
	f, now := newFailures(), time.Unix(0, 0)
	take := func(code codes.Code) (bool, int) { return f.take(failureKind{"m", code}, now) }
	for i := range 100 {
		if ok, muted := take(codes.NotFound); ok != (i < failuresLogged) || muted != 0 {
			t.Fatalf("call %d: %t, %d", i, ok, muted)
		}
	}
	if ok, muted := take(codes.Internal); !ok || muted != 0 {
		t.Errorf("another kind: %t, %d", ok, muted)
	}
	now = now.Add(logEvery)
	if ok, muted := take(codes.NotFound); !ok || muted != 100-failuresLogged {
		t.Errorf("later: %t, %d", ok, muted)
	}
	if ok, muted := take(codes.NotFound); !ok || muted != 0 {
		t.Errorf("once more: %t, %d", ok, muted)
	}
}
