package cli

import (
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/evaluate"
)

const hostile = "</title></svg><script>alert(1)</script><img src=x onerror=alert(1)> \"' \u202Egnp.\x1b[2J"

// hostileReport has hostile texts in all places whose text is not contextd's own.
func hostileReport() evaluate.Report {
	half, price, usd := 0.5, 3.0, 1.25
	rows := func() []evaluate.Row {
		return []evaluate.Row{
			{Policy: hostile, Kind: evaluate.KindFile, Cost: &half, USD: &usd, Recall: &half, Evidence: &half, Causes: map[string]int{hostile: 1}, PrefixChanges: 1},
			{Policy: evaluate.Everything, Kind: evaluate.KindSimple, Cost: &price, USD: &price, Evidence: &price, OverWindow: 3},
		}
	}
	trails := []evaluate.Trail{
		{Policy: hostile, Points: []evaluate.TrailPoint{{Call: 1, Tokens: 10}, {Call: 9, Tokens: 90, Cached: 10}}, Changes: []evaluate.TrailChange{{Call: 9, Cause: hostile}}},
		{Policy: evaluate.Everything},
	}
	day := func(name string) evaluate.Day {
		return evaluate.Day{Day: name, Spent: []float64{1, 2}, USD: []*float64{&usd, nil}}
	}
	return evaluate.Report{
		Settings: evaluate.Settings{Policies: []string{hostile, evaluate.Everything}, Kinds: []evaluate.Kind{evaluate.KindFile, evaluate.KindSimple}},
		Failed:   []evaluate.FailedFile{{Path: hostile, Error: hostile}}, Sessions: 2, Priced: 1, Calls: 9,
		Models: []evaluate.SessionModel{{Model: hostile, Entry: hostile, Sessions: 1, InputUSD: &price}}, Policies: rows(),
		Harnesses: []evaluate.HarnessRows{{Harness: hostile, Policies: rows()}, {Harness: "b", Policies: rows()}},
		Days:      []evaluate.Day{day("2026-01-01"), day("2026-01-02")},
		Largest:   []evaluate.SessionReport{{File: hostile, Suffix: hostile, Harness: hostile, Model: hostile, Window: 80, Calls: 9, Rows: rows(), Trails: trails}},
	}
}

// elements returns the tags and attributes of a page, and fails if it is not well-formed.
func elements(t *testing.T, text string) (tags, attributes []string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(strings.ReplaceAll(text, "<!DOCTYPE html>", "")))
	d.Strict, d.AutoClose, d.Entity = false, []string{"meta", "br", "img"}, xml.HTMLEntity
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return tags, attributes
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok {
			tags = append(tags, e.Name.Local)
			for _, a := range e.Attr {
				attributes = append(attributes, a.Name.Local)
			}
		}
	}
}

// nothingRuns checks that a page has no element and no attribute that loads or runs anything.
func nothingRuns(t *testing.T, text string) {
	t.Helper()
	tags, attributes := elements(t, text)
	for _, tag := range []string{"script", "iframe", "link", "object", "embed", "form", "base", "image", "use", "foreignObject"} {
		if slices.Contains(tags, tag) {
			t.Errorf("the page has a %s", tag)
		}
	}
	for _, name := range attributes {
		if strings.HasPrefix(name, "on") || name == "style" || name == "href" || name == "srcset" {
			t.Errorf("the page has the attribute %s", name)
		}
	}
	if strings.ContainsAny(text, "\x1b\x00\u202E") || strings.Contains(text, "http:") || strings.Contains(text, "https:") {
		t.Error("the page has a control character or an address")
	}
}

func TestEvaluationPageIsSafe(t *testing.T) {
	for name, r := range map[string]evaluate.Report{"hostile": hostileReport(), "empty": {}} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			if err := writeEvaluationPage(&b, r); err != nil {
				t.Fatal(err)
			}
			nothingRuns(t, b.String())
			if tags, _ := elements(t, b.String()); slices.Contains(tags, "img") {
				t.Error("the page has an image")
			}
			if strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "Inf") {
				t.Error("a place is no number")
			}
		})
	}
}

func TestLabelsAreApart(t *testing.T) {
	var all []label
	for i := range 6 {
		all = append(all, label{y: float64(50 + i%2), policy: i})
	}
	all = apart(all, 18, 10, 120)
	for i := range all {
		if all[i].at < 10 || all[i].at > 120 || i > 0 && all[i].at-all[i-1].at < 18-1e-9 {
			t.Errorf("label %d is at %g", i, all[i].at)
		}
	}
}
