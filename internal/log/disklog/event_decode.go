package disklog

import (
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/eventcodec"
	storagev1 "github.com/contextd/contextd/proto/contextd/storage/v1"
)

// decodeEvent reads the event that is under an event key.
func decodeEvent(key, value []byte) (eventlog.Event, error) {
	e, _, err := decodeRecord(key, value)
	return e, err
}

// decodeRecord reads an event and its head.
func decodeRecord(key, value []byte) (eventlog.Event, *storagev1.Head, error) {
	var m storagev1.Event
	if err := decode(key, keyEvent, value, &m); err != nil {
		return eventlog.Event{}, nil, err
	}
	if err := checkHead(key, m.GetHead()); err != nil {
		return eventlog.Event{}, nil, err
	}
	e, ok := eventcodec.Decode(&m)
	if !ok {
		return eventlog.Event{}, nil, &eventlog.CorruptError{What: describeKey(key), Reason: "its content is of no known kind"}
	}
	e.Seq, e.Turn = keySeq(key), m.GetHead().GetTurns()
	return e, m.GetHead(), nil
}
