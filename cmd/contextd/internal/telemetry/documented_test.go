package telemetry_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocumented compares docs/monitoring.md with the existing metrics.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{}
	named := regexp.MustCompile("`([a-z.]+)`")
	for _, row := range regexp.MustCompile("(?m)^\\| (`contextd\\..*?) \\|").FindAllStringSubmatch(string(page), -1) {
		first := ""
		for _, name := range named.FindAllStringSubmatch(row[1], -1) {
			if suffix := name[1]; strings.HasPrefix(suffix, ".") { // it replaces the end of the first name
				for front := first; front != ""; front = front[:max(0, strings.LastIndexByte(front, '.'))] {
					documented[front+suffix] = true
				}
				continue
			}
			first = name[1]
			documented[first] = true
		}
	}
	metrics := 0
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
		for _, name := range regexp.MustCompile(`[({]"(contextd\.[a-z.]+)", (?:"|metric\.)`).FindAllStringSubmatch(string(source), -1) {
			metrics++
			if !documented[name[1]] {
				t.Errorf("%s of %s is not in the table of docs/monitoring.md", name[1], file)
			}
		}
	}
	if metrics < 40 {
		t.Errorf("%d metrics were found in the sources", metrics)
	}
}
