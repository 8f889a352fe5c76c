// Package artifact encodes artifacts, which are stored next to a log. Each kind is a versioned message of
// contextd.storage.v1.
package artifact

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/proto"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Message is a stored message. Its version is its first field and never 0.
type Message interface {
	proto.Message
	GetVersion() uint32
}

// VersionError reports that an artifact has a version that this program cannot read.
type VersionError struct {
	Kind, ID          string
	Version, Readable uint32
}

func (e *VersionError) Error() string {
	if e.Version > e.Readable {
		return fmt.Sprintf("%s %s has version %d and this contextd reads up to %d: run the newer contextd that wrote it", e.Kind, e.ID, e.Version, e.Readable)
	}
	return fmt.Sprintf("%s %s was written before version 1 of its format: delete the session, or export it with the contextd that wrote it and import it again", e.Kind, e.ID)
}

// Encode returns a with the encoded m as its value.
func Encode(a eventlog.Artifact, m Message) (eventlog.Artifact, error) {
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return a, fmt.Errorf("encode %s: %w", a.Name(), err)
	}
	a.Value = value
	return a, nil
}

// Put encodes m as the value of a and stores it. It is durable on return.
func Put(ctx context.Context, store eventlog.Artifacts, sessionID string, a eventlog.Artifact, m Message) error {
	a, err := Encode(a, m)
	if err != nil {
		return err
	}
	return store.PutArtifacts(ctx, sessionID, a)
}

// Newest returns the newest artifact of a kind whose event is not after to; 0 is no limit. ok is false if
// there is none.
func Newest(ctx context.Context, store eventlog.Artifacts, sessionID, kind string, to eventlog.Seq) (a eventlog.Artifact, ok bool, err error) {
	for a, err := range store.Artifacts(ctx, sessionID, eventlog.ArtifactQuery{Kind: kind, To: to, Reverse: true}) {
		return a, err == nil, err
	}
	return a, false, nil
}

// Decode decodes the value of a into m. Its version must be from 1 to readable. Errors are *VersionError and
// *eventlog.CorruptError.
func Decode(a eventlog.Artifact, m Message, readable uint32) error {
	if bytes.HasPrefix(a.Value, []byte("{")) && json.Valid(a.Value) { // builds before version 1 wrote JSON
		return &VersionError{Kind: a.Kind, ID: a.ID, Readable: readable}
	}
	if err := proto.Unmarshal(a.Value, m); err != nil {
		return &eventlog.CorruptError{What: a.Name(), Reason: err.Error()}
	}
	if v := m.GetVersion(); v == 0 || v > readable {
		return &VersionError{Kind: a.Kind, ID: a.ID, Version: v, Readable: readable}
	}
	return nil
}
