package evaluate

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/contextd/contextd/internal/budget"
	eventlog "github.com/contextd/contextd/internal/log"
)

// ModelOf returns the model that most messages of a session name; empty if none does.
func ModelOf(events []eventlog.Event) string {
	n := map[string]int{}
	for _, e := range events {
		if m, ok := e.Body.(*eventlog.Message); ok && m.Model != "" {
			n[m.Model]++
		}
	}
	best := ""
	for _, name := range slices.Sorted(maps.Keys(n)) {
		if n[name] > n[best] {
			best = name
		}
	}
	return best
}

// compactionsOf counts the compactions that the harness of a session recorded.
func compactionsOf(s *Session) int {
	n := 0
	for _, e := range s.Events {
		if c, ok := e.Body.(*eventlog.Compaction); ok && c.Decision == nil {
			n++
		}
	}
	return n
}

// NewSessionModel describes the model by which a session is measured.
func NewSessionModel(name string, m budget.Model, b budget.Budget) SessionModel {
	out := SessionModel{Model: name, Entry: m.Name, Window: b.MaxTokens, Target: b.Target}
	if m.Prices.Input > 0 {
		out.InputUSD = &m.Prices.Input
	}
	return out
}

// usd returns a bill in dollars; nil if the price is unknown.
func (m SessionModel) usd(spent float64) *float64 {
	if m.InputUSD == nil {
		return nil
	}
	d := spent * *m.InputUSD / 1e6
	return &d
}

func share(a, b int) *float64 {
	if b == 0 {
		return nil
	}
	x := float64(a) / float64(b)
	return &x
}

// sum adds up the outcomes of one policy.
type sum struct {
	figures Figures
	bill    Bill
	usd     float64
	priced  bool // at least one session's price is known
}

func (s *sum) add(o Outcome, m SessionModel) {
	s.figures.Add(o.Figures)
	s.bill.add(o.Bill)
	if usd := m.usd(o.Bill.Spent); usd != nil {
		s.usd, s.priced = s.usd+*usd, true
	}
}

// rows returns the sums of all policies. Costs are relative to the policy named Everything.
func rows(set Settings, sums []sum) []Row {
	all := 0.0
	if i := slices.Index(set.Policies, Everything); i >= 0 {
		all = sums[i].bill.Spent
	}
	out := make([]Row, len(sums))
	for i, s := range sums {
		f, b := s.figures, s.bill
		out[i] = Row{
			Policy: set.Policies[i], Kind: set.Kinds[i], Spent: b.Spent,
			Recall: share(f.Found, f.Wanted), Evidence: share(f.Evident, f.Wanted), Edits: share(f.Shown, f.Lines), CallsVisible: share(f.Visible, f.Calls),
			OverWindow: b.OverWindow, OverTarget: f.Over, Refused: f.Refused, PrefixChanges: f.Changes, Causes: f.Causes,
			Tokens: b.Tokens, Cached: b.Read, Largest: b.Largest, Expired: b.Expired,
		}
		if all > 0 {
			cost := b.Spent / all
			out[i].Cost = &cost
		}
		if s.priced {
			out[i].USD = &s.usd
		}
	}
	return out
}

// Everything is the name of the policy that sends everything.
const Everything = "everything"

// Tally builds a report from sessions that are added one by one. It keeps no sessions, so it takes only the memory of
// the report.
type Tally struct {
	set       Settings
	keep      int
	report    Report
	sums      []sum
	models    map[string]SessionModel
	harnesses map[string]*harnessSums
	days      map[string]*daySums
	largest   []sized
}

type harnessSums struct {
	sessions, calls int
	sums            []sum
}

type daySums struct {
	calls  int
	spent  []float64
	usd    []float64
	priced bool
}

type sized struct {
	tokens uint64
	SessionReport
}

// NewTally returns a Tally that describes at most largest sessions in detail.
func NewTally(set Settings, largest int) *Tally {
	return &Tally{
		set: set, keep: largest, sums: make([]sum, len(set.Policies)), models: map[string]SessionModel{},
		harnesses: map[string]*harnessSums{}, days: map[string]*daySums{},
	}
}

// File counts a file that was read.
func (t *Tally) File() { t.report.Files++ }

// Other counts a file that is no transcript.
func (t *Tally) Other() { t.report.Others++ }

// Fail records a file that could not be read.
func (t *Tally) Fail(path, why string) {
	t.report.Failed = append(t.report.Failed, FailedFile{path, why})
}

// Add adds a session.
func (t *Tally) Add(m Measured) {
	s := m.Session
	t.report.Sessions++
	t.report.Calls += len(s.Steps)
	if m.Model.InputUSD != nil {
		t.report.Priced++
	}
	t.report.Compactions += compactionsOf(s)
	model, ok := t.models[m.Model.Model]
	if !ok {
		model = m.Model
	}
	model.Sessions++
	t.models[m.Model.Model] = model
	h := t.harnesses[s.Format]
	if h == nil {
		h = &harnessSums{sums: make([]sum, len(t.sums))}
		t.harnesses[s.Format] = h
	}
	h.sessions++
	h.calls += len(s.Steps)
	for i, o := range m.Outcomes {
		t.sums[i].add(o, m.Model)
		h.sums[i].add(o, m.Model)
		t.addDays(i, o, m.Model)
	}
	t.addLargest(m)
}

func (t *Tally) addDays(policy int, o Outcome, m SessionModel) {
	before := 0.0
	for _, p := range o.Trail {
		spent := p.Spent - before
		before = p.Spent
		if p.Time.IsZero() {
			continue
		}
		key := p.Time.UTC().Format(time.DateOnly)
		d := t.days[key]
		if d == nil {
			d = &daySums{spent: make([]float64, len(t.sums)), usd: make([]float64, len(t.sums))}
			t.days[key] = d
		}
		if policy == 0 {
			d.calls++
		}
		d.spent[policy] += spent
		if usd := m.usd(spent); usd != nil {
			d.usd[policy], d.priced = d.usd[policy]+*usd, true
		}
	}
}

func (t *Tally) addLargest(m Measured) {
	i := max(slices.Index(t.set.Policies, Everything), 0)
	tokens := m.Outcomes[i].Bill.Tokens
	if t.keep == 0 || len(m.Session.Steps) == 0 || len(t.largest) == t.keep && tokens <= t.largest[len(t.largest)-1].tokens {
		return
	}
	at, _ := slices.BinarySearchFunc(t.largest, tokens, func(l sized, tokens uint64) int {
		if l.tokens >= tokens {
			return -1
		}
		return 1
	})
	t.largest = slices.Insert(t.largest, at, sized{tokens, t.describe(m)})
	t.largest = t.largest[:min(len(t.largest), t.keep)]
}

func (t *Tally) describe(m Measured) SessionReport {
	sums := make([]sum, len(m.Outcomes))
	out := SessionReport{
		File: m.Session.File, Suffix: m.Session.Suffix, Harness: m.Session.Format, Model: m.Model.Model,
		Window: m.Model.Window, Target: m.Model.Target, Calls: len(m.Session.Steps),
	}
	for i, o := range m.Outcomes {
		sums[i].add(o, m.Model)
		out.Trails = append(out.Trails, trailOf(t.set.Policies[i], o.Trail))
	}
	out.Rows = rows(t.set, sums)
	return out
}

// The most points and changes of a trail.
const (
	trailPoints  = 240
	trailChanges = 500
)

func trailOf(policy string, trail []Point) Trail {
	out := Trail{Policy: policy, Points: []TrailPoint{}, Changes: []TrailChange{}}
	every := max((len(trail)+trailPoints-1)/trailPoints, 1)
	var before uint64
	for i, p := range trail {
		if (len(trail)-1-i)%every == 0 && !p.Refused {
			out.Points = append(out.Points, TrailPoint{i + 1, p.Tokens, p.Read, p.Spent})
		}
		if p.Changed && len(out.Changes) < trailChanges {
			out.Changes = append(out.Changes, TrailChange{i + 1, p.Cause, before, p.Tokens, p.Read})
		}
		if !p.Refused {
			before = p.Tokens
		}
	}
	return out
}

// Report returns the report of all sessions so far.
func (t *Tally) Report() Report {
	out := t.report
	out.Settings, out.Policies = t.set, rows(t.set, t.sums)
	out.Failed = append([]FailedFile{}, out.Failed...)
	out.Models, out.Harnesses, out.Days, out.Largest = []SessionModel{}, []HarnessRows{}, []Day{}, []SessionReport{}
	for _, name := range slices.Sorted(maps.Keys(t.models)) {
		out.Models = append(out.Models, t.models[name])
	}
	slices.SortStableFunc(out.Models, func(a, b SessionModel) int { return cmp.Compare(b.Sessions, a.Sessions) })
	for _, name := range slices.Sorted(maps.Keys(t.harnesses)) {
		h := t.harnesses[name]
		out.Harnesses = append(out.Harnesses, HarnessRows{name, h.sessions, h.calls, rows(t.set, h.sums)})
	}
	for _, name := range slices.Sorted(maps.Keys(t.days)) {
		d := t.days[name]
		day := Day{Day: name, Calls: d.calls, Spent: d.spent, USD: make([]*float64, len(d.usd))}
		for i := range d.usd {
			if d.priced {
				day.USD[i] = &d.usd[i]
			}
		}
		out.Days = append(out.Days, day)
	}
	for _, l := range t.largest {
		out.Largest = append(out.Largest, l.SessionReport)
	}
	return out
}
