package telemetry_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDocumented compares docs/monitoring.md with the existing metrics: each is in its table, and the table has no
// other.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "\n## Metrics\n")
	table, _, _ = strings.Cut(table, "\n## ")
	documented := map[string]bool{}
	var meant [][]string // for each name in the table those that it may be short for
	named := regexp.MustCompile("`([a-z.]+)`")
	for _, row := range regexp.MustCompile("(?m)^\\| (`contextd\\..*?) \\|").FindAllStringSubmatch(table, -1) {
		first := ""
		for _, name := range named.FindAllStringSubmatch(row[1], -1) {
			all := name[1:]
			if suffix := name[1]; strings.HasPrefix(suffix, ".") { // it replaces the end of the first name
				all = nil
				for front := first; front != ""; front = front[:max(0, strings.LastIndexByte(front, '.'))] {
					all = append(all, front+suffix)
				}
			} else {
				first = suffix
			}
			meant = append(meant, all)
			for _, each := range all {
				documented[each] = true
			}
		}
	}
	metrics := map[string]bool{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		// An instrument's name is followed by its unit or its description.
		for _, name := range regexp.MustCompile(`[({]"(contextd\.[a-z.]+)",\s+(?:"|metric\.)`).FindAllStringSubmatch(string(source), -1) {
			metrics[name[1]] = true
			if !documented[name[1]] {
				t.Errorf("%s of %s is not in the table of docs/monitoring.md", name[1], file)
			}
		}
	}
	if len(metrics) < 40 {
		t.Errorf("%d metrics were found in the sources", len(metrics))
	}
	for _, names := range meant {
		if !slices.ContainsFunc(names, func(name string) bool { return metrics[name] }) {
			t.Errorf("docs/monitoring.md has a row of a metric that does not exist: %s", names[0])
		}
	}
}
