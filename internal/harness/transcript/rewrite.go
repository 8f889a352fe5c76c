package transcript

import "github.com/contextd/contextd/internal/harness/transcript/jsonvalue"

// Rewrite returns the object with each member's value as member gives it, and
// without those for which it gives nil. The object must be valid JSON.
func Rewrite(object []byte, member func(name string, value []byte) []byte) []byte {
	all := membersOf(object)
	kept := make([]jsonvalue.Member, 0, len(all))
	for _, m := range all {
		if value := member(string(m.name), m.value); value != nil {
			kept = append(kept, jsonvalue.Member{Name: string(m.name), Value: jsonvalue.Raw(string(value))})
		}
	}
	v := jsonvalue.Object(kept...)
	return v.JSON()
}
