package transcript

import (
	"errors"
	"fmt"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// ShapeError says that a value is JSON, but not of the kind that was expected at a
// place in it.
type ShapeError struct {
	Pointer string // RFC 6901; empty for the value itself
	Kind    string // what is there
}

func (e *ShapeError) Error() string {
	if e.Pointer == "" {
		return "unexpected " + e.Kind
	}
	return fmt.Sprintf("unexpected %s at %s", e.Kind, e.Pointer)
}

// shaped gives errors of decoding a text of their own: the library varies its words
// from run to run, and warnings must be the same each time.
func shaped(err error) error {
	var semantic *jsonv2.SemanticError
	if !errors.As(err, &semantic) || Malformed(err) {
		return err
	}
	return &ShapeError{Pointer: string(semantic.JSONPointer), Kind: kindName(semantic.JSONKind)}
}

func kindName(k jsontext.Kind) string {
	switch k {
	case 'n':
		return "null"
	case 't', 'f':
		return "boolean"
	case '"':
		return "string"
	case '0':
		return "number"
	case '{':
		return "object"
	case '[':
		return "list"
	}
	return "value"
}
