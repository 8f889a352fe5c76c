package projection

// ClearEvery is how many turns a batch of reachability_gc waits at most.
const ClearEvery = defaultClearEvery

// Names, Fields, Lines and References give what the scanners of the same names yield.
var (
	Names      = gather(eachName)
	Fields     = gather(eachField)
	Lines      = gather(eachLine)
	References = gather(eachReference)
	Unescaped  = unescaped
	Phrase     = holdsPhrase
)

func gather(each func(string, func(string))) func(string) []string {
	return func(text string) []string {
		var all []string
		each(text, func(name string) { all = append(all, name) })
		return all
	}
}
