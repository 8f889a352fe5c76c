package budget

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// spelling is one way to write a model's name, in lower case.
type spelling struct {
	name string
	// dotted is the name with dots in its versions.
	dotted string
	// maker is who made the model, if the name says so before the model.
	maker string
}

// mostSpellings is how many ways there are to write a name.
const mostSpellings = 5

// spellings appends the ways in which the tables may have a name, the given one first. Routers put a path before the name
// ("openrouter/z-ai/glm-4.6:free"), and some hosts the region and the maker ("us.deepseek.r1-v1:0", "zai-glm-4.7").
// last is a spelling for what matches none of the others: with the maker's name as that of the model.
func spellings(all []spelling, path string) (_ []spelling, last spelling) {
	all = append(all, spelled(path, ""))
	name := path[strings.LastIndexByte(path, '/')+1:]
	name = strings.TrimPrefix(strings.TrimPrefix(name, "ft:"), "databricks-") // what was trained further; a host's own names
	if name != path {
		all = append(all, spelled(name, ""))
	}
	maker, own, rest := madeBy(name)
	if maker != "" {
		all = append(all, spelled(own, maker), spelled(rest, maker))
		last = spelled(maker+"-"+rest, maker)
		name = rest
	}
	if parts := versionFirst.FindStringSubmatch(name); parts != nil {
		all = append(all, spelled("claude-"+parts[2]+"-"+parts[1]+parts[3], maker))
	}
	return all, last
}

func spelled(name, maker string) spelling { return spelling{name, dotted(name), maker} }

// versionFirst matches names of Anthropic's models with the version before the family, as some hosts write them.
var versionFirst = regexp.MustCompile(`^claude-(\d(?:[.-]\d)?)-([a-z]+)(.*)$`)

// makers are the providers of the built-in entries.
var makers = []string{
	"amazon", "anthropic", "cohere", "deepseek", "google", "meta", "minimax", "mistral", "moonshot", "openai", "qwen", "xai", "xiaomi", "zai",
}

// madeBy divides a name that begins with its maker, perhaps after a region and a dot. own is the name without the region.
func madeBy(name string) (maker, own, rest string) {
	for own = name; ; {
		for _, maker := range makers {
			after, ok := strings.CutPrefix(own, maker)
			if !ok {
				continue
			}
			after = strings.TrimPrefix(after, "ai") // "moonshotai"
			if rest := strings.TrimLeft(after, ".-"); rest != after && rest != "" {
				return maker, own, rest
			}
		}
		region, after, ok := strings.Cut(own, ".")
		if !ok || strings.Trim(region, "abcdefghijklmnopqrstuvwxyz-") != "" {
			return "", "", ""
		}
		own = after
	}
}

// dotted writes a version with dots where a name has a dash, an underscore or a "p" between two digits: "claude-opus-4-5",
// "kimi-k2p6". Dates and sizes stay ("gpt-4-0613", "llama-3-8b").
func dotted(name string) string {
	var out []byte
	for i := 1; i+1 < len(name); i++ {
		c := name[i]
		if c != '-' && c != '_' && c != 'p' || !digitAt(name, i-1) || !digitAt(name, i+1) || digitAt(name, i-2) || digitAt(name, i+2) {
			continue
		}
		if c != 'p' && i+2 < len(name) && 'a' <= name[i+2] && name[i+2] <= 'z' {
			continue
		}
		if out == nil {
			out = []byte(name)
		}
		out[i] = '.'
	}
	if out == nil {
		return name
	}
	return string(out)
}

func digitAt(s string, i int) bool { return 0 <= i && i < len(s) && '0' <= s[i] && s[i] <= '9' }

// key is what a table keeps an entry under. Names with one key are one name.
func key(name string) string { return dotted(strings.ToLower(name)) }

// table finds models by exact name and by longest prefix.
type table struct {
	byKey    map[string]Model
	prefixes []prefix // longest first
}

// prefix is what names of a family begin with, in lower case: as it was given, and with dots in its versions. The family's
// key has a "*" after it.
type prefix struct{ name, dotted string }

func newTable(models []Model) table {
	t := table{byKey: make(map[string]Model, len(models)), prefixes: make([]prefix, 0, len(models))}
	for _, m := range models {
		t.byKey[key(m.Name)] = m
		if name, ok := strings.CutSuffix(strings.ToLower(m.Name), "*"); ok {
			t.prefixes = append(t.prefixes, prefix{name, dotted(name)})
		}
	}
	slices.SortFunc(t.prefixes, func(a, b prefix) int {
		return cmp.Or(cmp.Compare(len(b.name), len(a.name)), cmp.Compare(a.name, b.name))
	})
	return t
}

// begins reports whether a name belongs to the family. A router's path is compared only with prefixes that have one.
func (p prefix) begins(s spelling) bool {
	return (strings.HasPrefix(s.name, p.name) || strings.HasPrefix(s.dotted, p.dotted)) &&
		(strings.Contains(p.name, "/") || !strings.Contains(s.name, "/"))
}

// find returns the entry for a name in one of its spellings, and the maker that the spelling names, who made the model.
func (t table) find(all ...spelling) (model Model, maker string, ok bool) {
	fits := func(m Model, s spelling) bool { return s.maker == "" || s.maker == m.Provider }
	for _, s := range all {
		m, ok := t.byKey[s.dotted]
		if end := strings.IndexAny(s.dotted, ":@"); !ok && end > 0 {
			m, ok = t.byKey[s.dotted[:end]] // without a variant, as in "gpt-4:extended", or a version
		}
		if ok && fits(m, s) {
			return m, s.maker, true
		}
	}
	for _, p := range t.prefixes {
		for _, s := range all {
			if !p.begins(s) {
				continue
			}
			if m := t.byKey[p.dotted+"*"]; fits(m, s) {
				return m, s.maker, true
			}
		}
	}
	return Model{}, "", false
}
