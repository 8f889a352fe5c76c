package log_test

import (
	"errors"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/logtest"
)

func TestRolesHaveNames(t *testing.T) {
	for role, want := range map[eventlog.Role]string{
		eventlog.RoleUnspecified: "unspecified", eventlog.RoleSystem: "system", eventlog.RoleUser: "user",
		eventlog.RoleAssistant: "assistant", eventlog.RoleTool: "tool", 77: "unspecified",
	} {
		if got := role.String(); got != want {
			t.Errorf("role %d is %q, want %q", role, got, want)
		}
	}
}

func TestTokensAreSummed(t *testing.T) {
	c := eventlog.TokenCounts{Blocks: []uint32{1<<32 - 1, 1<<32 - 1, 2}}
	if got := c.Total(); got != 1<<33 {
		t.Errorf("the total is %d", got)
	}
}

func TestThinkingIsSealedByAnySeal(t *testing.T) {
	for want, all := range map[bool][]eventlog.Thinking{
		false: {{}, {Text: "t"}},
		true:  {{Signature: "s"}, {RedactedData: "r"}, {EncryptedContent: "e"}},
	} {
		for _, th := range all {
			if th.Sealed() != want {
				t.Errorf("%+v is sealed: %t", th, !want)
			}
		}
	}
}

func TestErrorsSayWhat(t *testing.T) {
	cause := errors.New("sync failed")
	for want, err := range map[string]error{
		`session "s" does not exist`:                                           &eventlog.NotFoundError{Kind: "session", Name: "s"},
		`session "s" exists already`:                                           &eventlog.ExistsError{Kind: "session", Name: "s"},
		`events[2]: event_id "e" belongs to event 7 with different content`:    &eventlog.EventConflictError{EventID: "e", Index: 2, Seq: 7},
		`events[2]: event_id "e" is twice in the batch with different content`: &eventlog.EventConflictError{EventID: "e", Index: 2},
		`expected_head is 1 but the log's head is 2`:                           &eventlog.HeadMismatchError{Expected: 1, Actual: 2},
		`f: why`:                        &eventlog.InvalidError{Field: "f", Reason: "why"},
		`store has failed: sync failed`: &eventlog.UnavailableError{Cause: cause},
		`event 1 is corrupt: checksum`:  &eventlog.CorruptError{What: "event 1", Reason: "checksum"},
	} {
		if err.Error() != want {
			t.Errorf("got %q, want %q", err, want)
		}
	}
	if !errors.Is(&eventlog.UnavailableError{Cause: cause}, cause) {
		t.Error("the cause is lost")
	}
}

// A store's own failure while it looks an id up is passed on.
func TestAdmissionPassesLookupErrorsOn(t *testing.T) {
	p, err := eventlog.Prepare(eventlog.Batch{Events: []eventlog.Event{logtest.Say("a")}})
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	_, err = p.Admit(eventlog.Head{}, func(int) (eventlog.Known, bool, error) { return eventlog.Known{}, false, broken })
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}
