package rules

import "encoding/json"

// request reads lines of which the first may hold the system prompt, alone and as the member of
// a name, and the others are messages. It holds all of them to how large a request may be.
func (r *report) request(lines [][]byte, most int, name string, system func(line int, prompt json.RawMessage), message func(line int, o object)) {
	total := 0
	for i, line := range lines {
		total += len(line)
		o, ok := r.open(i, "line", line)
		if !ok {
			continue
		}
		prompt, ok := o[name]
		if !ok {
			message(i, o)
			continue
		}
		if i > 0 {
			r.add(i, "system", "a system line that is not the first")
		}
		r.members(i, "line", o, []string{name}, nil)
		system(i, prompt)
	}
	if total > most {
		r.add(-1, "size", "%d bytes, more than %d", total, most)
	}
}
