// Package limit has the limits of requests and of what is stored.
package limit

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	eventlog "github.com/contextd/contextd/internal/log"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// Limits are the limits of requests and of what is stored. 0 is no limit if the field's comment says so.
type Limits struct {
	// MaxEventBytes is the largest size of an event's content. eventlog.Size may be envelopeBytes more, for ids, names
	// and labels.
	MaxEventBytes uint64
	// MaxBatchEvents and MaxBatchBytes bound one append.
	MaxBatchEvents uint64
	MaxBatchBytes  uint64
	// MaxSessions bounds the sessions of a tenant, and MaxStoreSessions those of all; 0 is no
	// limit.
	MaxSessions, MaxStoreSessions uint64
	// MaxTenantBytes bounds the content of a tenant's logs and of what is derived from them, and
	// MaxStoreBytes that of all; 0 is no limit.
	MaxTenantBytes, MaxStoreBytes uint64
	// MaxSessionEvents and MaxSessionBytes bound a session's log; 0 is no limit. They are compared with the durable
	// log, so concurrent appends may exceed them by their own size.
	MaxSessionEvents uint64
	MaxSessionBytes  uint64
	// MaxPolicyBytes is the largest encoded policy and budget of a session or a request.
	MaxPolicyBytes uint64
	// MaxImportBytes is the largest transcript that is read.
	MaxImportBytes uint64
	// ImportMemory bounds the memory, in bytes, of all transcripts that are being read.
	ImportMemory uint64
	// StreamWindow is how many appends of one stream may wait to become durable.
	StreamWindow uint64
}

// Default are the limits of a sidecar.
func Default() Limits {
	return Limits{
		MaxEventBytes:    16 << 20,
		MaxBatchEvents:   10_000,
		MaxBatchBytes:    32 << 20,
		MaxSessionEvents: 1_000_000,
		MaxPolicyBytes:   1280 << 10,
		MaxImportBytes:   512 << 20,
		ImportMemory:     1 << 30,
		StreamWindow:     256,
	}
}

// Validate returns an error for the first invalid limit.
func (l Limits) Validate() error {
	for _, required := range []struct {
		setting string
		value   uint64
	}{
		{"max_event_bytes", l.MaxEventBytes},
		{"max_batch_events", l.MaxBatchEvents},
		{"max_batch_bytes", l.MaxBatchBytes},
		{"max_policy_bytes", l.MaxPolicyBytes},
		{"max_import_bytes", l.MaxImportBytes},
		{"import_memory", l.ImportMemory},
		{"stream_window", l.StreamWindow},
	} {
		if required.value == 0 {
			return fmt.Errorf("%s must be greater than 0", required.setting)
		}
	}
	if l.MaxBatchBytes < l.MaxEventBytes {
		return fmt.Errorf("max_batch_bytes must be at least max_event_bytes (%d)", l.MaxEventBytes)
	}
	const most = 1 << 30
	if l.MaxBatchBytes > most {
		return fmt.Errorf("max_batch_bytes must be at most %d", uint64(most))
	}
	return nil
}

// CheckBatch checks a batch against the limits, and returns the size of each event and of all.
func (l Limits) CheckBatch(events []eventlog.Event) (sizes []uint64, total uint64, err error) {
	if err := l.CheckCount(len(events)); err != nil {
		return nil, 0, err
	}
	sizes = make([]uint64, len(events))
	for i, e := range events {
		size := eventlog.Size(e)
		if err := l.CheckEvent(fmt.Sprintf("events[%d]", i), size); err != nil {
			return nil, 0, err
		}
		sizes[i] = size
		total += size
	}
	if total > l.MaxBatchBytes {
		return nil, 0, &apierr.LimitError{Field: "events", Setting: "max_batch_bytes", Limit: l.MaxBatchBytes, Actual: total, Unit: "bytes"}
	}
	return sizes, total, nil
}

// CheckCount checks the number of a batch's events against the limit.
func (l Limits) CheckCount(events int) error {
	if uint64(events) > l.MaxBatchEvents {
		return &apierr.LimitError{Field: "events", Setting: "max_batch_events", Limit: l.MaxBatchEvents, Actual: uint64(events), Unit: "events"}
	}
	return nil
}

// envelopeBytes is how many bytes an event may have in addition to its content, for ids, names and labels.
const envelopeBytes = 64 << 10

// CheckEvent checks an event's size against the limit; field names the event in the error.
func (l Limits) CheckEvent(field string, size uint64) error {
	if size <= l.MaxEventBytes+envelopeBytes {
		return nil
	}
	return &apierr.LimitError{Field: field, Setting: "max_event_bytes", Limit: l.MaxEventBytes, Actual: size, Unit: "bytes"}
}

// CheckPolicy checks the size of a policy and a budget against the limit.
func (l Limits) CheckPolicy(policy *contextdv1.Policy, b *contextdv1.Budget) error {
	if n := uint64(proto.Size(policy) + proto.Size(b)); n > l.MaxPolicyBytes {
		return &apierr.LimitError{Field: "policy", Setting: "max_policy_bytes", Limit: l.MaxPolicyBytes, Actual: n, Unit: "bytes"}
	}
	return nil
}

// CheckRoom checks whether a session may have this many more events and bytes.
func (l Limits) CheckRoom(s eventlog.Session, events int, bytes uint64) error {
	if n := uint64(s.Head) + uint64(events); l.MaxSessionEvents > 0 && n > l.MaxSessionEvents {
		return &apierr.LimitError{Field: "session_id", Setting: "max_session_events", Limit: l.MaxSessionEvents, Actual: n, Unit: "events in the session"}
	}
	if n := s.LogBytes + bytes; l.MaxSessionBytes > 0 && n > l.MaxSessionBytes {
		return &apierr.LimitError{Field: "session_id", Setting: "max_session_bytes", Limit: l.MaxSessionBytes, Actual: n, Unit: "bytes in the session"}
	}
	return nil
}

// BoundStore reports whether a limit for the whole store or a tenant is set.
func (l Limits) BoundStore() bool {
	return l.MaxSessions > 0 || l.MaxStoreSessions > 0 || l.MaxTenantBytes > 0 || l.MaxStoreBytes > 0
}
