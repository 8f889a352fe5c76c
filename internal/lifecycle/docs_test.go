package lifecycle_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// constants reads event.go: every type with the attributes that the comment over it
// names, and the keys of attributes.
func constants(t *testing.T) (types map[string]string, keys map[string]bool) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "event.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	types, keys = map[string]string{}, map[string]bool{}
	attributes := ""
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		if m := regexp.MustCompile(`: ([a-z_,\s]+)\.`).FindStringSubmatch(spec.Doc.Text()); m != nil {
			attributes = strings.Join(strings.Fields(m[1]), " ")
		}
		value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(spec.Names[0].Name, "Attribute") {
			keys[value] = true
		} else {
			types[value] = attributes
		}
		return true
	})
	return types, keys
}

// TestDocumented holds docs/compaction.md to the types and attributes that there
// are.
func TestDocumented(t *testing.T) {
	types, keys := constants(t)
	if len(types) < 11 || len(keys) < 12 {
		t.Fatalf("found the types %v and the attributes %v", types, keys)
	}
	page, err := os.ReadFile("../../docs/compaction.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(page), "| type | attributes |")
	table, _, _ = strings.Cut(table, "\n\n")
	documented := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| (.+) \\|$").FindAllStringSubmatch(table, -1) {
		documented[row[1]] = strings.ReplaceAll(row[2], "`", "")
	}
	for name, attributes := range types {
		if documented[name] != attributes {
			t.Errorf("%s: the page has the attributes %q, the code %q", name, documented[name], attributes)
		}
		for key := range strings.SplitSeq(attributes, ", ") {
			if !keys[key] {
				t.Errorf("%s: there is no attribute %q", name, key)
			}
		}
	}
	for name := range documented {
		if _, ok := types[name]; !ok {
			t.Errorf("%s is documented and does not exist", name)
		}
	}
}
