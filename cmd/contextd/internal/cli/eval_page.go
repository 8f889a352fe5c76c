package cli

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/contextd/contextd/cmd/contextd/internal/page"
	"github.com/contextd/contextd/internal/evaluate"
)

// evalPage writes a report as an HTML page.
type evalPage struct {
	*page.Page
	report evaluate.Report
}

func writeEvaluationPage(w io.Writer, r evaluate.Report) error {
	p := evalPage{page.Begin(w, "contextd eval"), r}
	p.Raw("<h1>What each policy would have cost and kept</h1>\n")
	p.Raw(`<p class="soft">`).Text(fmt.Sprintf("%s of %s, %s, %s.", counted(r.Sessions, "session"), counted(r.Files, "transcript"),
		counted(r.Calls, "model call"), counted(r.Compactions, "recorded compaction"))).Raw("</p>\n")
	if r.Sessions > 0 {
		p.tiles()
		p.policies()
		p.front()
		p.days()
		p.sessions()
		p.harnesses()
	}
	p.failed()
	p.reading()
	return p.End()
}

// tiles shows the most important figures on top.
func (p *evalPage) tiles() {
	rows := p.report.Policies
	p.Raw(`<div class="tiles">`)
	for _, r := range rows {
		if r.Kind == evaluate.KindSimple || r.Kind == evaluate.KindHarness && p.report.Compactions == 0 || r.Cost == nil {
			continue
		}
		p.Raw(`<div class="tile">`).In("span", "soft small", r.Policy).In("b", "", fmt.Sprintf("%.0f%%", *r.Cost*100))
		p.Raw(`<span class="small">`).Text("of the cost of everything" + p.saved(r) + "; " + percent(r.Evidence) + " of the evidence").Raw("</span></div>")
	}
	p.Raw("</div>\n")
	if i := p.everything(); i >= 0 && rows[i].OverWindow > 0 {
		p.In("p", "", fmt.Sprintf("Everything would have been over the window in %d of %s: the provider refuses those calls.", rows[i].OverWindow, counted(p.report.Calls, "call")))
	}
}

// saved is the cost with a policy next to the cost without, where prices are known.
func (p *evalPage) saved(r evaluate.Row) string {
	i := p.everything()
	if i < 0 || r.USD == nil || p.report.Policies[i].USD == nil {
		return ""
	}
	return fmt.Sprintf(", $%s instead of $%s", evalUSD(r.USD), evalUSD(p.report.Policies[i].USD))
}

func (p *evalPage) everything() int {
	return slices.Index(p.report.Settings.Policies, evaluate.Everything)
}

func (p *evalPage) policies() {
	p.Raw("<h2>Policies</h2>\n")
	p.table(p.report.Policies)
	if r := p.report; r.Priced < r.Sessions {
		p.In("p", "soft small", fmt.Sprintf("US$ is of the %s whose model has a known price.", counted(r.Priced, "session")))
	}
}

func (p *evalPage) table(rows []evaluate.Row) {
	p.Raw(`<div class="scroll"><table><thead><tr>`)
	for _, h := range []string{"policy", "cost", "US$", "over the window", "refused", "prefix changes", "recall", "evidence", "edits", "calls visible", "cached", "largest context"} {
		p.In("th", "", h)
	}
	p.Raw("</tr></thead><tbody>\n")
	for i, r := range rows {
		own := ""
		if r.Kind == evaluate.KindContextd || r.Kind == evaluate.KindFile {
			own = ` class="own"`
		}
		p.Rawf(`<tr%s><td><span class="key k%d"></span>`, own, colour(i)).Text(r.Policy).Raw("</td>")
		p.In("td", "", evalShare(r.Cost)).In("td", "", evalUSD(r.USD)).In("td", bad(r.OverWindow), fmt.Sprint(r.OverWindow)).In("td", bad(r.Refused), fmt.Sprint(r.Refused))
		p.Raw(`<td title="`).Text(causes(r.Causes)).Rawf(`">%d</td>`, r.PrefixChanges)
		for _, x := range []*float64{r.Recall, r.Evidence, r.Edits, r.CallsVisible} {
			p.In("td", "", evalShare(x))
		}
		p.In("td", "", evalPercent(r.Cached, r.Tokens)).In("td", "", thousands(r.Largest)).Raw("</tr>\n")
	}
	p.Raw("</tbody></table></div>\n")
}

// colours is how many colours the page's style sheet has for policies.
const colours = 10

func colour(policy int) int { return policy % colours }

func bad(n int) string {
	if n > 0 {
		return "bad"
	}
	return ""
}

func causes(n map[string]int) string {
	var all []string
	for _, cause := range slices.SortedFunc(maps.Keys(n), func(a, b string) int {
		return cmp.Or(cmp.Compare(n[b], n[a]), cmp.Compare(a, b))
	}) {
		all = append(all, fmt.Sprintf("%s: %d", causeText(cause), n[cause]))
	}
	return strings.Join(all, "\n")
}

// causeTexts say in words what changed a prefix.
var causeTexts = map[string]string{
	"tool_results":    "old tool results became stubs",
	"duplicates":      "repeated results became pointers",
	"clipping":        "large texts were clipped",
	"thinking":        "old reasoning was dropped",
	"dialogue_window": "the oldest turns became a digest",
	"results":         "old results were removed",
	"window":          "the oldest messages were dropped",
	"compaction":      "the harness compacted",
	"log":             "a message of the log grew",
}

func causeText(cause string) string { return cmp.Or(causeTexts[cause], cause) }

func percent(x *float64) string {
	if x == nil {
		return dash("")
	}
	return fmt.Sprintf("%.0f%%", *x*100)
}

// thousands writes a number of tokens in few digits.
func thousands(n uint64) string {
	switch {
	case n >= 10_000_000:
		return fmt.Sprintf("%.0fM", float64(n)/1e6)
	case n >= 1_000_000:
		return fmt.Sprintf("%.1fM", float64(n)/1e6)
	case n >= 10_000:
		return fmt.Sprintf("%.0fk", float64(n)/1e3)
	case n >= 1000:
		return fmt.Sprintf("%.1fk", float64(n)/1e3)
	default:
		return fmt.Sprint(n)
	}
}

// sessions shows the largest sessions call by call.
func (p *evalPage) sessions() {
	if len(p.report.Largest) == 0 {
		return
	}
	p.Raw("<h2>The largest sessions, call by call</h2>\n")
	p.Raw(`<p class="soft small">Each picture is one policy: the tokens of every context, the pale part as sent before and read from the provider's cache, the dark part new or rewritten. ` +
		`A red tick is a change of the prefix; the red line is the window; the dotted line is everything.</p>` + "\n")
	for _, s := range p.report.Largest {
		name := filepath.Base(s.File)
		if s.Suffix != "" {
			name += " / " + s.Suffix
		}
		p.In("h3", "", name)
		p.Raw(`<p class="soft small">`).Text(fmt.Sprintf("%s, %s, %s, window %s", s.Harness, cmp.Or(s.Model, "no model named"), counted(s.Calls, "call"), thousands(s.Window))).Raw("</p>\n")
		p.Raw(`<div class="cards">`)
		top := s.Window
		for _, t := range s.Trails {
			for _, point := range t.Points {
				top = max(top, point.Tokens)
			}
		}
		for i := range s.Trails {
			p.trail(s, i, top)
		}
		p.Raw("</div>\n")
		p.changes(s)
	}
}

// changes lists when each policy dropped what.
func (p *evalPage) changes(s evaluate.SessionReport) {
	p.Raw("<details><summary>What was dropped when, of each policy</summary>\n")
	for _, t := range s.Trails {
		if len(t.Changes) == 0 {
			continue
		}
		p.In("h3", "", t.Policy)
		p.Raw(`<div class="scroll"><table><thead><tr><th>call</th><th class="left">what changed the prefix</th><th>tokens before</th><th>after</th><th>of them cached</th></tr></thead><tbody>` + "\n")
		for _, c := range t.Changes[:min(len(t.Changes), shownChanges)] {
			p.Rawf("<tr><td>%d</td>", c.Call).In("td", "left", causeText(c.Cause)).Rawf("<td>%d</td><td>%d</td><td>%d</td></tr>\n", c.Before, c.After, c.Cached)
		}
		p.Raw("</tbody></table></div>\n")
		if more := len(t.Changes) - shownChanges; more > 0 {
			p.In("p", "soft small", fmt.Sprintf("and %s more; -o json has them", counted(more, "change")))
		}
	}
	p.Raw("</details>\n")
}

// shownChanges is how many changes of a policy the page lists at most.
const shownChanges = 60

func (p *evalPage) harnesses() {
	if len(p.report.Harnesses) < 2 {
		return
	}
	p.Raw("<h2>By harness</h2>\n")
	for _, h := range p.report.Harnesses {
		p.Raw("<details><summary>").Text(fmt.Sprintf("%s: %s, %s", h.Harness, counted(h.Sessions, "session"), counted(h.Calls, "call"))).Raw("</summary>\n")
		p.table(h.Policies)
		p.Raw("</details>\n")
	}
}

func (p *evalPage) failed() {
	if len(p.report.Failed) == 0 {
		return
	}
	p.Raw("<h2>Files that could not be read</h2>\n" + `<div class="scroll"><table><tbody>` + "\n")
	for _, f := range p.report.Failed {
		p.Raw("<tr>").In("td", "left", f.Path).In("td", "left", f.Error).Raw("</tr>\n")
	}
	p.Raw("</tbody></table></div>\n")
}

// reading explains the figures.
func (p *evalPage) reading() {
	p.Raw("<h2>How to read this</h2>\n<div class=\"scroll\"><table><tbody>\n")
	for _, row := range [][2]string{
		{"cost", "what all prompts cost at the provider's prices, relative to sending everything: what the prompt has in common with the one before is read from the cache, the rest is written to it. What the model writes is left out"},
		{"over the window", "contexts of more tokens than the model takes: the provider refuses them"},
		{"refused", "contexts that contextd refuses because what may not be changed does not fit"},
		{"prefix changes", "how often the request before was not a prefix of the next, so that the provider reads what follows again"},
		{"recall", "of the names in the agent's next calls that the log had shown before, the share that the context still holds"},
		{"evidence", "the share that it holds with the text around them"},
		{"edits", "of the lines that the agent's next edit had to reproduce to the letter, the share that the context holds"},
		{"calls visible", "of the calls of the log, the share that is in full, stubbed or in the ledger"},
		{"harness, as recorded", "what the harness itself sent, by the compactions in its transcript; they cost calls of a model that are not counted"},
	} {
		p.Raw("<tr>").In("td", "", row[0]).In("td", "left", row[1]).Raw("</tr>\n")
	}
	p.Raw("</tbody></table></div>\n")
	p.Raw(`<p class="soft small">`).Text(p.terms()).Raw("</p>\n")
}

func (p *evalPage) terms() string {
	s := p.report.Settings
	ttl := "kept forever"
	if s.CacheTTLSeconds > 0 {
		ttl = fmt.Sprintf("kept for %g minutes", s.CacheTTLSeconds/60)
	}
	var models []string
	for _, m := range p.report.Models {
		models = append(models, fmt.Sprintf("%s (%s, window %s, %s)", cmp.Or(m.Model, "no model named"), counted(m.Sessions, "session"), thousands(m.Window), evalPrice(m)))
	}
	return "The provider's cache is " + ttl + ". Models: " + strings.Join(models, "; ") + "."
}
