package reference

import "strings"

// shape describes the characters of a word.
type shape struct {
	lowers, uppers, vowels, digits, underscores, dashes, slashes, scopes int
	// mixed is set if an upper-case letter follows a lower-case one, or a lower-case letter follows two upper-case
	// ones, digits between them ignored. hex is set if all letters are hexadecimal digits in lower case.
	mixed, hex bool
	// extension is the length of the part after the last dot, if that looks like a file's extension; otherwise 0.
	extension int
}

func shapeOf(s string) shape {
	w := shape{hex: true}
	var one, two uint8 // the classes of the two bytes before that are no digits
	lastDot := -1
	for i := range len(s) {
		class := nameClass(s[i])
		switch {
		case class&lowerByte != 0:
			w.lowers++
			w.mixed = w.mixed || one&upperByte != 0 && two&upperByte != 0
			w.hex = w.hex && s[i] <= 'f'
		case class&upperByte != 0:
			w.uppers++
			if strings.IndexByte("AEIOUY", s[i]) >= 0 {
				w.vowels++
			}
			w.mixed = w.mixed || one&lowerByte != 0
			w.hex = false
		case class&digitByte != 0:
			w.digits++
			continue
		default:
			w.hex = false
			w.punctuation(s, i)
			if s[i] == '.' {
				lastDot = i
			}
		}
		one, two = class, one
	}
	if lastDot > 0 && lastDot+1 < len(s) && len(s)-lastDot-1 <= 8 && nameClass(s[lastDot+1])&(lowerByte|upperByte) != 0 {
		w.extension = len(s) - lastDot - 1
	}
	return w
}

func (w *shape) punctuation(s string, i int) {
	switch s[i] {
	case '_':
		w.underscores++
	case '-':
		w.dashes++
	case '/':
		w.slashes++
	case ':':
		w.scopes++
	}
}

// isName reports whether a trimmed word is a name by its shape.
func isName(s string) bool {
	if len(s) < 4 || len(s) > longestName || structural[s] {
		return false
	}
	w := shapeOf(s)
	letters := w.lowers + w.uppers
	switch {
	case letters == 0:
		return w.digits >= 6 && w.digits == len(s)
	case w.scopes > 0: // a::b
		return true
	case w.slashes > 0:
		return isPath(s, w)
	case w.digits >= 3:
		return true // PROJ-123, sess_1a2b3c, UUIDs
	case w.hex && w.digits > 0 && len(s) >= 7 && len(s) <= 40:
		return true // a git id
	case w.underscores > 0 && len(s) >= 6:
		return true
	case w.extension > 0:
		return true
	case w.uppers == len(s):
		return w.uppers >= 5 && w.vowels == 0 // SQLDB; words in capitals are for emphasis
	default:
		return w.mixed
	}
}

const longestName = 300 // bytes

// isPath distinguishes a path from words with a slash between them, such as and/or.
func isPath(s string, w shape) bool {
	return w.slashes >= 2 || s[0] == '/' || s[0] == '~' || s[0] == '@' || strings.HasPrefix(s, "../") ||
		w.extension > 0 || w.underscores > 0 || w.digits > 0 || w.mixed || w.dashes > 0 || len(s) >= 12
}

// Structural reports whether a word is so frequent in every session that it names nothing.
func Structural(word string) bool { return structural[word] }

// structural are words that are so frequent in every session, because protocols and harnesses write them, that they
// name nothing.
var structural = func() map[string]bool {
	all := map[string]bool{}
	for _, s := range strings.Fields(`
		tool_result tool_results tool_use tool_use_id tool_call tool_calls tool_call_id tool_name
		toolResult toolCall toolCallId toolName function_call function_call_output call_id callId
		is_error isError exit_code exitCode stdout stderr return_code content_type input_schema output_text input_text
		role type user assistant system tool text name value true false null none
		file_path filePath old_string new_string oldString newString replace_all
		and/or read/write input/output e.g i.e a.m p.m
		JavaScript TypeScript GitHub HTTPS XHTML`) {
		all[s] = true
	}
	return all
}()
