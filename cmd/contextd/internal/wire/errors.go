package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	eventlog "github.com/contextd/contextd/internal/log"
)

// Under adapts err for the message that contains the converted one: if err names a field, path is put before
// it.
func Under(path string, err error) error {
	if err == nil {
		return nil
	}
	if invalid, ok := errors.AsType[*eventlog.InvalidError](err); ok {
		return &eventlog.InvalidError{Field: path + "." + invalid.Field, Reason: invalid.Reason}
	}
	return err
}

func invalid(field, format string, args ...any) error {
	return &eventlog.InvalidError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// named is a field that identifies something. Names are shown in tables, compared and used in keys, where a
// NUL is never intended.
type named struct{ field, value string }

func checkNames(all ...named) error {
	for _, n := range all {
		if strings.IndexByte(n.value, 0) >= 0 {
			return invalid(n.field, "must not contain NUL")
		}
	}
	return nil
}

func checkNameList(field string, all []string) error {
	for i, s := range all {
		if err := checkNames(named{fmt.Sprintf("%s[%d]", field, i), s}); err != nil {
			return err
		}
	}
	return nil
}

// checkJSON accepts an empty value, or one JSON value in UTF-8. Later stages pass the bytes on unchecked.
func checkJSON(field string, b []byte) error {
	switch {
	case len(b) == 0:
		return nil
	case !utf8.Valid(b):
		return invalid(field, "must be UTF-8")
	case !json.Valid(b):
		return invalid(field, "must be valid JSON")
	default:
		return nil
	}
}
