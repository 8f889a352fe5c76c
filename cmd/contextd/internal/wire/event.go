package wire

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	eventlog "github.com/contextd/contextd/internal/log"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// EventsToDomain converts a batch. Errors name the field, beginning with "events[i]".
func EventsToDomain(events []*contextdv1.Event) ([]eventlog.Event, error) {
	out := make([]eventlog.Event, len(events))
	for i, e := range events {
		converted, err := EventToDomain(e)
		if err != nil {
			return nil, Under(fmt.Sprintf("events[%d]", i), err)
		}
		out[i] = converted
	}
	return out, nil
}

// EventToDomain converts an event that will be appended. It ignores seq and turn, which the log assigns. An
// absent time or event_id stays absent. The result shares the message's labels, which must not change
// afterwards.
func EventToDomain(e *contextdv1.Event) (eventlog.Event, error) {
	out := eventlog.Event{ID: e.GetEventId(), Labels: e.GetLabels()}
	if err := checkNames(named{"event_id", e.GetEventId()}); err != nil {
		return eventlog.Event{}, err
	}
	if err := CheckLabels(e.GetLabels()); err != nil {
		return eventlog.Event{}, err
	}
	var err error
	if out.Time, err = timeToDomain("time", e.GetTime()); err != nil {
		return eventlog.Event{}, err
	}
	switch kind := e.GetKind().(type) {
	case *contextdv1.Event_Message:
		out.Body, err = messageToDomain(kind.Message)
		err = Under("message", err)
	case *contextdv1.Event_Reminder:
		out.Body, err = reminderToDomain(kind.Reminder)
		err = Under("reminder", err)
	case *contextdv1.Event_Compaction:
		out.Body, err = compactionToDomain(kind.Compaction)
		err = Under("compaction", err)
	case *contextdv1.Event_Custom:
		out.Body, err = customToDomain(kind.Custom)
		err = Under("custom", err)
	default:
		err = invalid("kind", "must be set")
	}
	if err != nil {
		return eventlog.Event{}, err
	}
	return out, nil
}

// EventToProto converts an event of the log.
func EventToProto(e eventlog.Event) *contextdv1.Event {
	out := &contextdv1.Event{
		Seq:     uint64(e.Seq),
		EventId: e.ID,
		Time:    timeToProto(e.Time),
		Turn:    e.Turn,
		Labels:  e.Labels,
	}
	switch b := e.Body.(type) {
	case *eventlog.Message:
		out.Kind = &contextdv1.Event_Message{Message: messageToProto(b)}
	case *eventlog.Reminder:
		out.Kind = &contextdv1.Event_Reminder{Reminder: reminderToProto(b)}
	case *eventlog.Compaction:
		out.Kind = &contextdv1.Event_Compaction{Compaction: compactionToProto(b)}
	case *eventlog.Custom:
		out.Kind = &contextdv1.Event_Custom{Custom: &contextdv1.CustomEvent{Type: b.Type, Json: []byte(b.JSON)}}
	}
	return out
}

// CheckLabels refuses labels that no session and no event can carry. The error is an
// *eventlog.InvalidError for the field labels["key"].
func CheckLabels(labels map[string]string) error {
	for _, k := range slices.Sorted(maps.Keys(labels)) {
		field := fmt.Sprintf("labels[%q]", k)
		if err := checkNames(named{field, k}, named{field, labels[k]}); err != nil {
			return err
		}
	}
	return nil
}

func timeToDomain(field string, t *timestamppb.Timestamp) (time.Time, error) {
	if t == nil {
		return time.Time{}, nil
	}
	if err := t.CheckValid(); err != nil {
		return time.Time{}, invalid(field, "must be a time between the years 1 and 9999 with nanoseconds from 0 to 999999999")
	}
	return t.AsTime(), nil
}

func timeToProto(t time.Time) *timestamppb.Timestamp {
	if t.IsZero() {
		return nil
	}
	return timestamppb.New(t)
}
