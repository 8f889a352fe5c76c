package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// eventReader reads events, one JSON object per line. line is for error messages.
type eventReader struct {
	in   *bufio.Reader
	line int
}

func newEventReader(r io.Reader) *eventReader {
	return &eventReader{in: bufio.NewReaderSize(r, 1<<16)}
}

func (r *eventReader) next() (*contextdv1.Event, error) {
	for {
		text, err := r.in.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		if r.line++; r.line == 1 {
			text = bytes.TrimPrefix(text, byteOrderMark)
		}
		text = bytes.TrimSpace(text)
		if len(text) == 0 {
			if err != nil {
				return nil, io.EOF
			}
			continue
		}
		e, err := eventOf(text)
		if err != nil {
			return nil, usageError{fmt.Errorf("stdin: line %d: %w", r.line, err)}
		}
		return e, nil
	}
}

// byteOrderMark is what some editors write before a text in UTF-8.
var byteOrderMark = []byte("\xef\xbb\xbf")

// eventOf parses an event. Invalid UTF-8 in its strings, except for its id, is replaced by U+FFFD.
func eventOf(text []byte) (*contextdv1.Event, error) {
	e := &contextdv1.Event{}
	err := protojson.Unmarshal(text, e)
	if err != nil {
		if valid, unreadable := jsontext.AppendFormat(nil, text, jsontext.AllowInvalidUTF8(true)); unreadable == nil {
			text = valid
			err = protojson.Unmarshal(text, e)
		}
		if err == nil && strings.Contains(e.GetEventId(), "\uFFFD") {
			return nil, errors.New("event_id: must be valid Unicode: two ids that differ only in what is not would be one")
		}
	}
	if err != nil {
		if misfit := config.Misfit(text, e.ProtoReflect().Descriptor()); misfit != nil {
			err = misfit
		} else {
			err = config.JSONError(err)
		}
		return nil, fmt.Errorf("not an event: %w%s", err, eventHint(text, err.Error()))
	}
	if e.GetKind() == nil {
		return nil, fmt.Errorf("not an event: one of %s must be set", kindsOfEvent())
	}
	return e, nil
}

// kindsOfEvent lists the fields of which an event has exactly one.
func kindsOfEvent() string {
	fields := (&contextdv1.Event{}).ProtoReflect().Descriptor().Oneofs().ByName("kind").Fields()
	names := make([]string, fields.Len())
	for i := range names {
		names[i] = string(fields.Get(i).Name())
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// eventHint is advice for an error about the text of an event; empty if there is none.
func eventHint(text []byte, wrong string) string {
	switch {
	case text[0] == '[':
		return "; give one event on each line, not a list"
	case strings.HasSuffix(wrong, "unexpected EOF"):
		return "; an event is one line"
	case strings.Contains(wrong, `unknown field "role"`), strings.Contains(wrong, `unknown field "parts"`), strings.Contains(wrong, `unknown field "content"`) && !bytes.Contains(text, []byte(`"message"`)):
		return "; messages of a provider need --format"
	}
	return ""
}
