package reduce

import "strings"

// SectionKind says what a section of a digest holds.
type SectionKind string

// The kinds of section, in the order in which a digest has them.
const (
	SectionNotice  SectionKind = "notice"  // what the digest is
	SectionSummary SectionKind = "summary" // the text of a summary, quoted
	SectionQuotes  SectionKind = "quotes"  // what the user, the runtime and reminders said
	SectionLedger  SectionKind = "ledger"  // files and calls
	SectionIndex   SectionKind = "index"   // names, and the lines of some
)

// Section is a part of a digest with its heading.
type Section struct {
	Kind SectionKind
	Text string
}

// The headings, or what they begin with. An empty line stands before each: what
// comes before ends its line.
const (
	titleSummary   = "\nSummary of what was said through event "
	titleUsers     = "\nEarlier the user said:\n"
	titleNotes     = "\nEarlier the runtime put in:\n"
	titleReminders = "\nEarlier reminders said:\n"
	titleChanged   = "\nFiles changed: "
	titleRead      = "\nFiles read: "
	titleCalls     = "\nEarlier tool calls ("
	titleLines     = "\nLines in which names last stood:\n"
	titleNames     = "\nNames that stood there:\n"
)

// sectionTitles are the headings in their order.
var sectionTitles = []struct {
	title string
	kind  SectionKind
}{
	{titleSummary, SectionSummary},
	{titleUsers, SectionQuotes},
	{titleNotes, SectionQuotes},
	{titleReminders, SectionQuotes},
	{titleChanged, SectionLedger},
	{titleRead, SectionLedger}, // a heading where no file was changed
	{titleCalls, SectionLedger},
	{titleLines, SectionIndex},
	{titleNames, SectionIndex},
}

// Sections splits the digest's text, in order: joined they are the text again. What
// is quoted holds no empty lines, so that it cannot pose as a heading, unless a
// tool's name does.
func (d Digest) Sections() []Section {
	if d.Text == "" {
		return nil
	}
	out := []Section{{Kind: SectionNotice, Text: d.Text}}
	for _, t := range sectionTitles {
		last := &out[len(out)-1]
		at := strings.Index(last.Text, "\n"+t.title)
		if at < 0 {
			continue
		}
		rest := last.Text[at+1:]
		last.Text = last.Text[:at+1]
		out = append(out, Section{t.kind, rest})
	}
	return out
}
