package render

import eventlog "github.com/contextd/contextd/internal/log"

// appendArguments appends a call's arguments where a format takes a JSON object alone,
// and reports whether they had to be wrapped: whatever is no object, as when a model
// broke off, is the text in {"raw_arguments":"…"}. No arguments are an empty object.
func appendArguments(dst []byte, arguments string) (out []byte, wrapped bool) {
	switch {
	case arguments == "":
		return append(dst, '{', '}'), false
	case eventlog.IsJSONObject(arguments):
		return appendRaw(dst, arguments), false
	default:
		dst = append(dst, `{"`+eventlog.WrappedArguments+`":`...)
		return append(appendString(dst, arguments), '}'), true
	}
}
