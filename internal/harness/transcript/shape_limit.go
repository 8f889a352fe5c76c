package transcript

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// manyValues is from how many on the values of a record are counted one by one; that many
// do not matter.
const manyValues = 10_000

// record holds a whole record to the limits of what one may be, and takes what reading it
// does.
func (a *Account) record(record []byte) error {
	opened := bytes.Count(record, []byte("{")) + bytes.Count(record, []byte("["))
	values := 0
	if opened > MaxLongRecordDepth || opened+bytes.Count(record, []byte(",")) > manyValues {
		var deepest int
		values, deepest = countValues(record)
		limit := uint64(MaxRecordDepth)
		if len(record) > deepBytes {
			limit = MaxLongRecordDepth
		}
		if uint64(deepest) > limit {
			return &LimitError{What: "levels of nesting in a record", Limit: limit, Actual: uint64(deepest)}
		}
		if values > MaxRecordValues {
			return &LimitError{What: "values in a record", Limit: MaxRecordValues, Actual: uint64(values)}
		}
	}
	return a.read(len(record), values)
}

// countValues counts the values of a record, and how deep they are, up to where it is no
// JSON.
func countValues(record []byte) (values, deepest int) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(record), lenient)
	for {
		token, err := dec.ReadToken()
		if err != nil {
			return values, deepest
		}
		depth := dec.StackDepth()
		in, members := dec.StackIndex(depth)
		isName := in == '{' && members%2 == 1
		if kind := token.Kind(); kind != '}' && kind != ']' && !isName {
			values++
		}
		deepest = max(deepest, depth)
	}
}
