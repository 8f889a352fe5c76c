package transport

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/contextd/contextd/internal/fair"
)

func refusedBy(t *testing.T, err error, setting string) (busy *fair.BusyError) {
	t.Helper()
	if !errors.As(err, &busy) || busy.Setting != setting || busy.RetryAfter <= 0 {
		t.Fatalf("not refused by %s: %v", setting, err)
	}
	return busy
}

func TestCallsOfAClientAreBounded(t *testing.T) {
	var c calls
	now := time.Now()
	o := Calls{Max: 512, MaxPerClient: 3}
	for range 3 {
		if err := c.begin("a", o, now); err != nil {
			t.Fatal(err)
		}
	}
	_ = refusedBy(t, c.begin("a", o, now), "max_client_calls")
	if err := c.begin("b", o, now); err != nil {
		t.Errorf("another client: %v", err)
	}
	c.end("a", now)
	if err := c.begin("a", o, now); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
	for range 3 {
		c.end("a", now)
	}
	c.end("b", now)
	if len(c.clients) != 0 || c.running != 0 {
		t.Errorf("%d clients and %d calls after all", len(c.clients), c.running)
	}
}

// TestAPlaceIsLeft has clients make as many calls as they may: another one may make some, too.
func TestAPlaceIsLeft(t *testing.T) {
	var c calls
	now := time.Now()
	o := Calls{Max: 1024, MaxPerClient: 1024}
	for i := range 64 {
		for more := true; more; {
			more = c.begin(fmt.Sprint(i), o, now) == nil
		}
	}
	for range 4 {
		if err := c.begin("behaved", o, now); err != nil {
			t.Fatalf("with %d calls: %v", c.running, err)
		}
	}
	_ = refusedBy(t, c.begin("behaved", o, now), "max_calls")
}

func TestCallRates(t *testing.T) {
	var c calls
	now := time.Now()
	o := Calls{Max: 8, MaxPerClient: 8, Rate: 5, RatePerClient: 3}
	call := func(client string) error {
		err := c.begin(client, o, now)
		if err == nil {
			c.end(client, now)
		}
		return err
	}
	for i := range 3 {
		if err := call("a"); err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
	}
	if busy := refusedBy(t, call("a"), "max_client_call_rate"); busy.Limit != 3 || busy.RetryAfter > time.Second/3+time.Millisecond {
		t.Errorf("%+v", busy)
	}
	for range 2 {
		if err := call("b"); err != nil {
			t.Error(err)
		}
	}
	_ = refusedBy(t, call("b"), "max_call_rate")
	now = now.Add(time.Second)
	if err := call("a"); err != nil {
		t.Errorf("a second later: %v", err)
	}
	now = now.Add(time.Minute)
	for i := range 100 { // of which none is kept forever
		_ = call(fmt.Sprint(i))
		now = now.Add(time.Second)
	}
	if n := len(c.clients); n > 20 {
		t.Errorf("%d clients are remembered", n)
	}
}
