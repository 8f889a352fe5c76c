package main

// known are the cases in which a CLI sends something else, by harness and the end of the
// case's name, and why. They are printed and do not fail; one that is the same by now does,
// so that it is taken out here.
var known = map[string]string{
	"claude rewritten claude/kept":                                                 "damaged: parents close a circle, and Claude Code goes on from the newest chain alone",
	"claude original claude/obra__episodic-memory/large-conversation":              spokenInto,
	"claude rewritten claude/obra__episodic-memory/large-conversation":             spokenInto,
	"pi original pi/badlogic__pi-mono/session":                                     "damaged: two entries on one line, which pi passes over and contextd reads",
	"opencode original opencode/The-Best-Codes__bestcodes.dev/360aa9943d-0__full":  textFirst,
	"opencode rewritten opencode/The-Best-Codes__bestcodes.dev/360aa9943d-0__full": textFirst,
	"opencode shrunk opencode/The-Best-Codes__bestcodes.dev/360aa9943d-0__full":    textFirst,
}

const spokenInto = "the user spoke while the model did: contextd joins a reply, Claude Code leaves its parts in place"

const textFirst = "the model wrote after its calls: OpenCode puts the text before them for Anthropic, contextd does not"
