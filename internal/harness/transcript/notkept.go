package transcript

import "strings"

// NotKept is one thing in a harness's files that its reader leaves out on purpose.
// Each harness has a table of them, which is all that a file written again may
// lack.
type NotKept struct {
	// Entry is the kind of entry that it is in; "*" for every kind, and a "*" at
	// the end for every kind with that beginning.
	Entry string
	// Field is the path of the member, such as "message.usage"; "[]" goes into every
	// element of a list. Empty: the entry as a whole.
	Field  string
	Reason string
}

// FieldsOf are the rows of a table about fields of entries of the kind.
func FieldsOf(table []NotKept, kind string) []NotKept {
	var fields []NotKept
	for _, row := range table {
		if row.Field != "" && row.Covers(kind) {
			fields = append(fields, row)
		}
	}
	return fields
}

// Covers reports whether the row is about entries of the kind.
func (n NotKept) Covers(kind string) bool {
	if prefix, ok := strings.CutSuffix(n.Entry, "*"); ok {
		return strings.HasPrefix(kind, prefix)
	}
	return n.Entry == kind
}
