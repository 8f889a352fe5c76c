package cli

import (
	"bytes"
	"context"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	grpcmetadata "google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/cmd/contextd/internal/wire"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func TestRetention(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	session := func(id string, age time.Duration, bytes uint64) *contextdv1.Session {
		return &contextdv1.Session{SessionId: id, UpdateTime: timestamppb.New(now.Add(-age)), LogBytes: bytes}
	}
	all := []*contextdv1.Session{
		session("young", time.Minute, 10), session("old", 3*time.Hour, 20), session("b", time.Hour, 30), session("a", time.Hour, 40),
		{SessionId: "broken", Damaged: true},
		{SessionId: "of a wrong clock", UpdateTime: timestamppb.New(time.Unix(1000, 0)), LogBytes: 1000},
	}
	const forever = -1
	for name, c := range map[string]struct {
		keep retention
		want []string
	}{
		"nothing":         {retention{forever, math.MaxUint64}, nil},
		"by age":          {retention{2 * time.Hour, math.MaxUint64}, []string{"old age"}},
		"at that age":     {retention{time.Hour, math.MaxUint64}, []string{"old age", "a age", "b age"}},
		"all":             {retention{0, math.MaxUint64}, []string{"old age", "a age", "b age", "young age"}},
		"by size":         {retention{forever, 80}, []string{"old size"}},
		"by more":         {retention{forever, 79}, []string{"old size", "a size"}},
		"to nothing":      {retention{forever, 0}, []string{"old size", "a size", "b size", "young size"}},
		"by age and size": {retention{2 * time.Hour, 50}, []string{"old age", "a size"}},
		"age is enough":   {retention{2 * time.Hour, 80}, []string{"old age"}},
	} {
		var got []string
		for _, s := range c.keep.plan(all, now) {
			got = append(got, s.GetSessionId()+" "+s.why)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestMisdated: sessions that a wrong clock dated are noted.
func TestMisdated(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	var all []*contextdv1.Session
	for _, at := range []time.Time{time.Unix(0, 0), earliest.Add(-1), earliest, now, now.Add(dayAhead), now.Add(dayAhead + 1)} {
		all = append(all, &contextdv1.Session{UpdateTime: timestamppb.New(at)})
	}
	notes := misdated(append(all, &contextdv1.Session{Damaged: true}), now)
	if len(notes) != 2 || !strings.HasPrefix(notes[0], "2 sessions dated before 2025") || !strings.HasPrefix(notes[1], "1 session dated in the future") {
		t.Errorf("%q", notes)
	}
	if notes = misdated(all[2:5], now); len(notes) > 0 {
		t.Errorf("of right dates: %q", notes)
	}
}

// TestAgreedTime: a session must be old by both clocks.
func TestAgreedTime(t *testing.T) {
	here := time.Unix(1_000_000, 0)
	for _, ahead := range []time.Duration{-24 * time.Hour, 0, 24 * time.Hour} {
		there := here.Add(ahead)
		now, apart := agreed(here, grpcmetadata.Pairs(wire.ClockHeader, there.UTC().Format(time.RFC3339Nano)))
		if want := min(here.Unix(), there.Unix()); now.Unix() != want || apart != ahead.Abs() {
			t.Errorf("where the daemon's clock is %s ahead: %s, %s apart", ahead, now, apart)
		}
	}
	if now, apart := agreed(here, nil); now != here || apart != 0 {
		t.Errorf("of a daemon that does not say: %s, %s", now, apart)
	}
}

func TestAgeValue(t *testing.T) {
	for text, want := range map[string]time.Duration{"30d": 720 * time.Hour, "0s": 0, "12h": 12 * time.Hour, "90m": 90 * time.Minute} {
		var v ageValue
		if err := v.Set(text); err != nil || time.Duration(v) != want {
			t.Errorf("%s: %v, %v", text, time.Duration(v), err)
		}
	}
	for _, text := range []string{"", "d", "-1d", "-1h", "1.5d", "99999d", "soon"} {
		if err := new(ageValue).Set(text); err == nil {
			t.Errorf("%q is taken for a time", text)
		}
	}
}

// failing is a daemon that fails to read some sessions, and to delete others.
type failing struct {
	contextdv1.ContextServiceClient
	get, remove map[string]codes.Code
}

func (f failing) GetSession(_ context.Context, req *contextdv1.GetSessionRequest, _ ...grpc.CallOption) (*contextdv1.GetSessionResponse, error) {
	if code := f.get[req.GetSessionId()]; code != codes.OK {
		return nil, status.Error(code, "it is so")
	}
	return &contextdv1.GetSessionResponse{Session: &contextdv1.Session{SessionId: req.GetSessionId()}}, nil
}

func (f failing) DeleteSession(_ context.Context, req *contextdv1.DeleteSessionRequest, _ ...grpc.CallOption) (*contextdv1.DeleteSessionResponse, error) {
	if code := f.remove[req.GetSessionId()]; code != codes.OK {
		return nil, status.Error(code, "it is so")
	}
	return &contextdv1.DeleteSessionResponse{}, nil
}

// busy is a daemon in which a session is appended to or replaced after every GetSession.
type busy struct {
	contextdv1.ContextServiceClient
	now map[string]*contextdv1.Session
}

func (b busy) GetSession(_ context.Context, req *contextdv1.GetSessionRequest, _ ...grpc.CallOption) (*contextdv1.GetSessionResponse, error) {
	return &contextdv1.GetSessionResponse{Session: &contextdv1.Session{SessionId: req.GetSessionId(), Incarnation: "1", HeadSeq: 3}}, nil
}

func (b busy) DeleteSession(_ context.Context, req *contextdv1.DeleteSessionRequest, _ ...grpc.CallOption) (*contextdv1.DeleteSessionResponse, error) {
	now := b.now[req.GetSessionId()]
	var code codes.Code
	var reason string
	switch {
	case now == nil:
		code, reason = codes.NotFound, apierr.ReasonSessionNotFound
	case req.GetKnown() != nil && req.GetKnown().GetIncarnation() != now.GetIncarnation():
		code, reason = codes.FailedPrecondition, apierr.ReasonLogLost
	case req.ExpectedHead != nil && req.GetExpectedHead() != now.GetHeadSeq():
		code, reason = codes.Aborted, apierr.ReasonHeadMismatch
	default:
		return &contextdv1.DeleteSessionResponse{}, nil
	}
	st, err := status.New(code, "it is so").WithDetails(&errdetails.ErrorInfo{Reason: reason, Domain: apierr.Domain})
	if err != nil {
		return nil, err
	}
	return nil, st.Err()
}

// TestCollectingKeepsWhatIsUsedMeanwhile: a session that is used between GetSession and DeleteSession is
// kept.
func TestCollectingKeepsWhatIsUsedMeanwhile(t *testing.T) {
	var plan []leaving
	for _, id := range []string{"appended", "gone", "idle", "replaced"} {
		plan = append(plan, leaving{&contextdv1.Session{SessionId: id, LogBytes: 7, Incarnation: "1", HeadSeq: 3}, whyAge})
	}
	daemon := busy{now: map[string]*contextdv1.Session{
		"appended": {Incarnation: "1", HeadSeq: 4}, "idle": {Incarnation: "1", HeadSeq: 3}, "replaced": {Incarnation: "2", HeadSeq: 3},
	}}
	var out, notes bytes.Buffer
	cmd := &cobra.Command{}
	cmd.SetOut(&out)
	cmd.SetErr(&notes)
	if err := new(client).collect(cmd, api{ContextServiceClient: daemon}, plan, 4, false); err != nil {
		t.Fatal(err)
	}
	const want = "appended stays: it was used meanwhile\ngone stays: it was deleted meanwhile\nreplaced stays: it was used meanwhile\n" +
		"1 of 4 sessions, 7 bytes, deleted\n"
	if notes.String() != want {
		t.Errorf("it noted %q, want %q", notes.String(), want)
	}
}

// TestCollectingGoesOnAndSaysHowFarItCame: deletions are reported whatever ends them, and a damaged session
// does not end them.
func TestCollectingGoesOnAndSaysHowFarItCame(t *testing.T) {
	var plan []leaving
	for _, id := range []string{"a", "b", "c", "d"} {
		plan = append(plan, leaving{&contextdv1.Session{SessionId: id, LogBytes: 7}, whyAge})
	}
	daemon := failing{get: map[string]codes.Code{"b": codes.DataLoss}, remove: map[string]codes.Code{"d": codes.Unavailable}}
	var out, notes bytes.Buffer
	cmd := &cobra.Command{}
	cmd.SetOut(&out)
	cmd.SetErr(&notes)
	err := new(client).collect(cmd, api{ContextServiceClient: daemon}, plan, 9, false)
	if status.Code(err) != codes.Unavailable {
		t.Errorf("got %v", err)
	}
	if want := regexp.MustCompile(`^SESSION .*\na .*\nc .*\n$`); !want.Match(out.Bytes()) {
		t.Errorf("it wrote %q", out.String())
	}
	if want := "b stays: it is damaged\n2 of 9 sessions, 14 bytes, deleted\n"; notes.String() != want {
		t.Errorf("it noted %q, want %q", notes.String(), want)
	}
}
