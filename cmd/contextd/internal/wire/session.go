package wire

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/records"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// Settings are what a session is created with in addition to its labels. Both may be nil.
type Settings struct {
	Policy *contextdv1.Policy
	Budget *contextdv1.Budget
}

// Encode returns the bytes that the log stores with the session: a CreateSessionRequest with only policy and
// budget, so that any request can be stored. Nothing compares or hashes them.
func (s Settings) Encode() ([]byte, error) {
	if s.Policy == nil && s.Budget == nil {
		return nil, nil
	}
	b, err := proto.Marshal(&contextdv1.CreateSessionRequest{Policy: s.Policy, Budget: s.Budget})
	if err != nil {
		return nil, fmt.Errorf("encode session settings: %w", err)
	}
	return b, nil
}

// DecodeSettings is the inverse of Encode.
func DecodeSettings(b []byte) (Settings, error) {
	if len(b) == 0 {
		return Settings{}, nil
	}
	var m contextdv1.CreateSessionRequest
	if err := proto.Unmarshal(b, &m); err != nil {
		return Settings{}, fmt.Errorf("decode session settings: %w", err)
	}
	return Settings{Policy: m.GetPolicy(), Budget: m.GetBudget()}, nil
}

// ChainHead returns a chain's hash as the API has it; "" if there is none.
func ChainHead(chain []byte) string {
	if len(chain) == 0 {
		return ""
	}
	return records.HashName(chain)
}

// MarkToProto converts the position that a client may name later to detect a lost log.
func MarkToProto(s eventlog.Session) *contextdv1.LogMark {
	return &contextdv1.LogMark{Incarnation: s.IncarnationName(), HeadSeq: uint64(s.Head), ChainHead: ChainHead(s.ChainHead)}
}

// SessionToProto converts a session with its settings.
func SessionToProto(s eventlog.Session) (*contextdv1.Session, error) {
	settings, err := DecodeSettings(s.Settings)
	if err != nil {
		return nil, fmt.Errorf("session %q: %w", s.ID, err)
	}
	return &contextdv1.Session{
		SessionId:       s.ID,
		HeadSeq:         uint64(s.Head),
		Turns:           s.Turns,
		CreateTime:      timeToProto(s.CreateTime),
		UpdateTime:      timeToProto(s.UpdateTime),
		Labels:          s.Labels,
		Policy:          settings.Policy,
		ParentSessionId: s.ParentID,
		ForkSeq:         uint64(s.ForkSeq),
		LogBytes:        s.LogBytes,
		Budget:          settings.Budget,
		ChainHead:       ChainHead(s.ChainHead),
		Damaged:         s.Damaged,
		Incarnation:     s.IncarnationName(),
	}, nil
}

// ClockHeader is the header of a list of sessions that has the daemon's time, by RFC 3339: the sessions' times are by
// that clock.
const ClockHeader = "contextd-clock"
