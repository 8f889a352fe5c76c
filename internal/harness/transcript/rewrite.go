package transcript

import "github.com/go-json-experiment/json/jsontext"

// Rewrite returns the object with each member's value as member gives it, and
// without those for which it gives nil. The object must be valid JSON.
func Rewrite(object []byte, member func(name string, value []byte) []byte) []byte {
	out := append(make([]byte, 0, len(object)+64), '{')
	for _, m := range membersOf(object) {
		value := member(string(m.name), m.value)
		if value == nil {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		n := len(out)
		var err error
		if out, err = jsontext.AppendQuote(out, m.name); err != nil {
			out = append(out[:n], Quote(string(m.name))...)
		}
		out = append(append(out, ':'), value...)
	}
	return append(out, '}')
}
