package rules_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/render"
	"github.com/contextd/contextd/internal/render/rules"
)

// Each case of testdata/*.txt is a context, after a line "# what it shows" and before a
// line "= rule rule", which names the rules that it breaks, or "= valid". The file's name
// up to the first dot is the format; those of *.returning.txt are for APIs that want reasoning back.
type ruleCase struct {
	file, name string
	lines      [][]byte
	want       string
}

func readCases(t *testing.T, file string) []ruleCase {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []ruleCase
	var c ruleCase
	in := bufio.NewScanner(bytes.NewReader(data))
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		switch line := in.Text(); {
		case strings.HasPrefix(line, "# "):
			c = ruleCase{file: filepath.Base(file), name: line[2:]}
		case strings.HasPrefix(line, "= "):
			c.want = line[2:]
			all = append(all, c)
		case line != "":
			c.lines = append(c.lines, []byte(line))
		}
	}
	return all
}

// formatOf is the format that a file of cases is named after.
func formatOf(t *testing.T, file string) *render.Format {
	t.Helper()
	name, _, _ := strings.Cut(filepath.Base(file), ".")
	f, ok := render.FormatNamed(name)
	if !ok || rules.Of(f.Name) == nil {
		t.Fatalf("%s: no rules for %q", file, name)
	}
	return f
}

// TestRules shows for every rule a context that breaks it, and nothing else.
func TestRules(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		check := rules.Of(formatOf(t, file).Name)
		if strings.HasSuffix(file, ".returning.txt") {
			check = rules.OfReturning(formatOf(t, file).Name)
		}
		for _, c := range readCases(t, file) {
			t.Run(c.file+"/"+c.name, func(t *testing.T) {
				found := check(c.lines)
				var broken []string
				for _, v := range found {
					if !strings.Contains(" "+strings.Join(broken, " ")+" ", " "+v.Rule+" ") {
						broken = append(broken, v.Rule)
					}
				}
				got := strings.Join(broken, " ")
				if got == "" {
					got = "valid"
				}
				if got != c.want {
					t.Errorf("breaks %q, not %q: %v", got, c.want, found)
				}
			})
		}
	}
}

// TestEveryRuleIsShown: no rule is without a context that breaks it, nor missing from
// the package's documentation.
func TestEveryRuleIsShown(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	elsewhere := map[string]bool{"size": true} // TestLimits
	added := regexp.MustCompile(`\.add\([^"]*"([a-z ]+)"`)
	for _, f := range render.Formats()[1:] {
		format := f.Name
		shown := map[string]bool{}
		cases := readCases(t, "testdata/"+format+".txt")
		if format != "gemini" {
			cases = append(cases, readCases(t, "testdata/"+format+".returning.txt")...)
		}
		for _, c := range cases {
			for _, rule := range strings.Fields(strings.NewReplacer(
				"calls last", "calls_last", "results first", "results_first", "responses first", "responses_first", "server tools", "server_tools",
				"call id", "call_id",
			).Replace(c.want)) {
				shown[strings.ReplaceAll(rule, "_", " ")] = true
			}
		}
		files, err := filepath.Glob(format + "*.go")
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(format, "openai") {
			files = append(files, "openai.go")
		} else {
			files = append(files, "request.go", "decoded.go")
		}
		for _, file := range append(files, "object.go", "rules.go") {
			source, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range added.FindAllSubmatch(source, -1) {
				rule := string(m[1])
				if !shown[rule] && !elsewhere[rule] {
					t.Errorf("%s: no context breaks %q", file, rule)
				}
				if !bytes.Contains(doc, []byte("//\t"+rule+" ")) {
					t.Errorf("%s: %q is not documented", file, rule)
				}
			}
		}
	}
}

// TestNoLines: a context without lines breaks nothing.
func TestNoLines(t *testing.T) {
	for _, f := range render.Formats()[1:] {
		if found := rules.Of(f.Name)(nil); len(found) != 0 {
			t.Errorf("%s: %v", f.Name, found)
		}
	}
}

// TestLimits holds the limits of size, whose cases are too large for a file.
func TestLimits(t *testing.T) {
	sized := func(bytes int) string {
		return `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + strings.Repeat("AAAA", bytes/4) + `"}}`
	}
	user := func(items ...string) []byte {
		return []byte(`{"role":"user","content":[` + strings.Join(items, ",") + `]}`)
	}
	inline := func(bytes int) []byte {
		return []byte(`{"role":"user","parts":[{"inlineData":{"mimeType":"image/png","data":"` + strings.Repeat("AAAA", bytes/4) + `"}}]}`)
	}
	for _, c := range []struct {
		name, format string
		line         []byte
		broken       bool
	}{
		{"image", "anthropic", user(sized(5 << 20)), false},
		{"too large an image", "anthropic", user(sized(5<<20 + 4)), true},
		{"as wide an image", "anthropic", user(picture(t, 8000, 1)), false},
		{"too wide an image", "anthropic", user(picture(t, 8001, 1)), true},
		{"too high an image", "anthropic", user(picture(t, 1, 8001)), true},
		{"too large a request", "anthropic", user(`{"type":"text","text":"` + strings.Repeat("a", 32<<20) + `"}`), true},
		{"inline", "gemini", inline(1 << 20), false},
		{"too much inline", "gemini", inline(20 << 20), true},
	} {
		found := rules.Of(c.format)([][]byte{c.line})
		if (len(found) == 1 && found[0].Rule == "size") != c.broken || !c.broken && len(found) > 0 {
			t.Errorf("%s: %v", c.name, found)
		}
	}
}

// picture is a block with a picture of so many pixels.
func picture(t *testing.T, width, height int) string {
	var data bytes.Buffer
	if err := png.Encode(&data, image.NewGray(image.Rect(0, 0, width, height))); err != nil {
		t.Fatal(err)
	}
	return `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + base64.StdEncoding.EncodeToString(data.Bytes()) + `"}}`
}

// TestCallsOfAMessage: Chat Completions takes so many calls in one.
func TestCallsOfAMessage(t *testing.T) {
	for n, broken := range map[int]bool{128: false, 129: true} {
		calls := make([]string, n)
		lines := [][]byte{nil}
		for i := range n {
			calls[i] = fmt.Sprintf(`{"id":"c%d","type":"function","function":{"name":"f","arguments":"{}"}}`, i)
			lines = append(lines, fmt.Appendf(nil, `{"role":"tool","tool_call_id":"c%d","content":""}`, i))
		}
		lines[0] = []byte(`{"role":"assistant","content":null,"tool_calls":[` + strings.Join(calls, ",") + `]}`)
		found := rules.Of("openai_chat")(lines)
		if (len(found) == 1 && found[0].Rule == "size") != broken || !broken && len(found) > 0 {
			t.Errorf("%d calls: %v", n, found)
		}
	}
}

// FuzzCheck: whatever the lines are, they are judged.
func FuzzCheck(f *testing.F) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			f.Add(bytes.TrimSpace(line))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		lines := bytes.Split(data, []byte("\n"))
		for _, f := range render.Formats()[1:] {
			for _, v := range rules.Of(f.Name)(lines) {
				if v.Line >= len(lines) || v.Line < -1 || v.Rule == "" || v.What == "" {
					t.Errorf("%+v", v)
				}
			}
		}
	})
}
