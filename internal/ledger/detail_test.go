package ledger_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/ledger"
)

func TestTheNewestCallsAreWrittenInDetail(t *testing.T) {
	long := strings.Repeat("x", 40)
	call := func(n int) ledger.Call {
		return ledger.Call{Tool: "run", Arguments: fmt.Sprintf("{%d…", n), Detail: fmt.Sprintf("{%d%s}", n, long)}
	}
	for name, c := range map[string]struct {
		calls []ledger.Call
		limit uint64
		want  string
	}{
		"all": {
			[]ledger.Call{call(1), call(2)}, 100,
			"run {1" + long + "} → ok\nrun {2" + long + "} → ok\n",
		},
		"as far as there is room for": {
			[]ledger.Call{call(1), call(2), call(3)}, 41,
			"run {1… → ok\nrun {2" + long + "} → ok\nrun {3" + long + "} → ok\n",
		},
		"none in the middle alone": {
			[]ledger.Call{call(1), {Tool: "run", Arguments: "{2…", Detail: strings.Repeat("y", 400)}, call(3)}, 60,
			"run {1… → ok\nrun {2… → ok\nrun {3" + long + "} → ok\n",
		},
		"of repeats the newest": {
			[]ledger.Call{{Tool: "run", Arguments: "{…", Detail: "{older}"}, {Tool: "run", Arguments: "{…", Detail: "{newer}"}}, 100,
			"run {newer} → ok ×2\n",
		},
		"as short where there is no more": {
			[]ledger.Call{{Tool: "run", Arguments: "{}"}}, 100,
			"run {} → ok\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := write(c.calls, c.limit, quarter); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

func TestDetailLeavesTheCountExactAndTheLimitKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		calls := drawCalls(t)
		for i := range calls {
			calls[i].Detail = calls[i].Arguments + strings.Repeat("z", rapid.IntRange(0, 200).Draw(t, "more"))
		}
		limit := rapid.Uint64Range(0, 400).Draw(t, "limit")
		text := write(calls, limit, quarter)
		lastResort := strings.HasPrefix(text, "earlier calls ×")
		if !lastResort && quarter.Text(text) > limit {
			t.Fatalf("%d tokens for a limit of %d:\n%s", quarter.Text(text), limit, text)
		}
		n := 0
		for _, k := range readLedger(t, text) {
			n += k
		}
		if n != len(calls) {
			t.Fatalf("%d calls of %d in\n%s", n, len(calls), text)
		}
	})
}

func TestDetailHasMoreRoomThanShorten(t *testing.T) {
	patch := `{"path":"a.go","new":"` + strings.Repeat("line\\n", 100) + `"}`
	if got := ledger.Detail(patch); got != patch {
		t.Errorf("cut to %d bytes of %d", len(got), len(patch))
	}
	if got := ledger.Shorten(patch); len(got) > 200 {
		t.Errorf("%d bytes", len(got))
	}
	if got := ledger.Detail(strings.Repeat("x", 5000)); len(got) > 1600 {
		t.Errorf("%d bytes", len(got))
	}
}
