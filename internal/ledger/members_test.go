package ledger_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/ledger"
)

// listed is a ledger of calls of tools with these arguments.
func listed(limit uint64, arguments ...string) string {
	var calls []ledger.Call
	for i, text := range arguments {
		tool, a, _ := strings.Cut(text, " ")
		calls = append(calls, ledger.Call{Tool: tool, Arguments: ledger.Shorten(a), Members: ledger.Members(a), Pointer: fmt.Sprintf("ctx:%d.0", i+1)})
	}
	return write(calls, limit, budget.NewGauge(perBytes(1)))
}

func TestWhatCallsHaveInCommonIsSaidOnce(t *testing.T) {
	for name, c := range map[string]struct {
		calls []string
		want  string
	}{
		"too few": {
			[]string{`sh {"cmd":"ls","dir":"/w"}`, `sh {"cmd":"make","dir":"/w"}`},
			`sh {"cmd":"ls","dir":"/w"} → ok ctx:1.0
sh {"cmd":"make","dir":"/w"} → ok ctx:2.0
`,
		},
		"the same": {
			[]string{`sh {"cmd":"ls","dir":"/w","ms":10}`, `sh {"cmd":"make","dir":"/w","ms":10}`, `sh {"cmd":"a\nb","dir":"/w","ms":10}`},
			`sh, unless a line says otherwise: {"dir":"/w","ms":10}
sh ls → ok ctx:1.0
sh make → ok ctx:2.0
sh {"cmd":"a\nb"} → ok ctx:3.0
`,
		},
		"another and none": {
			[]string{`sh {"cmd":"ls","dir":"/w"}`, `sh {"dir":"/w","cmd":"make"}`, `sh {"cmd":"go","dir":"/w"}`, `sh {"cmd":"git","dir":"/x"}`, `sh {"cmd":"id"}`},
			`sh, unless a line says otherwise: {"dir":"/w"}
sh ls → ok ctx:1.0
sh make → ok ctx:2.0
sh go → ok ctx:3.0
sh {"cmd":"git","dir":"/x"} → ok ctx:4.0
sh {"cmd":"id","dir":null} → ok ctx:5.0
`,
		},
		"all of it": {
			[]string{`plan {"a":1}`, `plan {"a":1}`, `plan {"a":1}`, `plan {"a":2}`},
			`plan, unless a line says otherwise: {"a":1}
plan → ok ×3 ctx:3.0
plan {"a":2} → ok ctx:4.0
`,
		},
		"the folder of a command": {
			[]string{`sh {"command":"cd /w && ls"}`, `sh {"command":"cd /w && make"}`, `sh {"command":"cd /w && go test"}`, `sh {"command":"cd /x && ls"}`, `sh {"command":"id"}`},
			`sh, unless a line says otherwise: {"cd":"/w"}
sh ls → ok ctx:1.0
sh make → ok ctx:2.0
sh go test → ok ctx:3.0
sh cd /x && ls → ok ctx:4.0
sh {"command":"id","cd":null} → ok ctx:5.0
`,
		},
		"folders of one command each": {
			[]string{`sh {"command":"cd /w && ls"}`, `sh {"command":"cd '/a b' && ls"}`, `sh {"cd":"/w","command":"ls"}`},
			`sh cd /w && ls → ok ctx:1.0
sh cd '/a b' && ls → ok ctx:2.0
sh {"cd":"/w","command":"ls"} → ok ctx:3.0
`,
		},
		"texts that may be taken for something else": {
			[]string{`sh {"c":"{\"a\":1}"}`, `sh {"c":" x"}`, `sh {"c":""}`, `sh {"c":"a\u0085b"}`, `sh {"c":"a\u2028b"}`, `sh {"c":["a"]}`, `sh {"c":"\"a\""}`},
			`sh {"c":"{\"a\":1}"} → ok ctx:1.0
sh {"c":" x"} → ok ctx:2.0
sh {"c":""} → ok ctx:3.0
sh {"c":"a\u0085b"} → ok ctx:4.0
sh {"c":"a\u2028b"} → ok ctx:5.0
sh {"c":["a"]} → ok ctx:6.0
sh {"c":"\"a\""} → ok ctx:7.0
`,
		},
		"no object": {
			[]string{`sh make all`, `sh {"a":`},
			"sh make all → ok ctx:1.0\nsh {\"a\": → ok ctx:2.0\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := listed(5000, c.calls...); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}

// TestOlderCallsAreInShort: only the newest calls are in detail; what their tool's calls share is left out of all.
func TestOlderCallsAreInShort(t *testing.T) {
	var calls []string
	for _, c := range "abcd" {
		calls = append(calls, fmt.Sprintf(`sh {"cmd":%q,"dir":"/w"}`, strings.Repeat(string(c), 200)))
	}
	want := "sh, unless a line says otherwise: {\"dir\":\"/w\"}\n"
	for i, shown := range []string{strings.Repeat("a", 93) + "…", strings.Repeat("b", 93) + "…", strings.Repeat("c", 200), strings.Repeat("d", 200)} {
		want += fmt.Sprintf("sh %s → ok ctx:%d.0\n", shown, i+1)
	}
	if got := listed(800, calls...); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// The arguments of each call can be read off its line together with the line of usual arguments.
func TestEveryLineSaysItsArguments(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.SampledFrom([]string{`"x"`, `"y"`, `1`, `null`, `["x"]`})
		var calls []string
		for range rapid.IntRange(1, 12).Draw(t, "calls") {
			members := []string{`"only":` + rapid.SampledFrom([]string{`"a"`, `"b"`, `2`}).Draw(t, "only")}
			for _, name := range []string{"p", "q"} {
				if rapid.IntRange(0, 3).Draw(t, "has "+name) > 0 {
					members = append(members, fmt.Sprintf("%q:%s", name, value.Draw(t, name)))
				}
			}
			calls = append(calls, "tool {"+strings.Join(members, ",")+"}")
		}
		usual := map[string]any{}
		want := map[string]int{}
		for _, c := range calls {
			var a map[string]any
			if err := json.Unmarshal([]byte(strings.TrimPrefix(c, "tool ")), &a); err != nil {
				t.Fatal(err)
			}
			want[withoutNull(a)]++
		}
		got := map[string]int{}
		for line := range strings.Lines(listed(1<<20, calls...)) {
			if rest, ok := strings.CutPrefix(line, "tool, unless a line says otherwise: "); ok {
				if err := json.Unmarshal([]byte(rest), &usual); err != nil {
					t.Fatal(err)
				}
				continue
			}
			text, end, _ := strings.Cut(strings.TrimPrefix(line, "tool"), "→ ok")
			all := map[string]any{}
			for name, v := range usual {
				all[name] = v
			}
			switch text = strings.TrimSpace(text); {
			case strings.HasPrefix(text, "{"):
				if err := json.Unmarshal([]byte(text), &all); err != nil {
					t.Fatalf("%q: %v", line, err)
				}
			case text != "":
				for _, name := range []string{"only", "p", "q"} { // the one that is not usual
					if _, ok := usual[name]; !ok {
						all[name] = text
						break
					}
				}
			}
			n := 1
			if _, times, ok := strings.Cut(end, "×"); ok {
				if _, err := fmt.Sscan(times, &n); err != nil {
					t.Fatal(err)
				}
			}
			got[withoutNull(all)] += n
		}
		// A text by itself belongs to a name that is not usual; which, a person sees by the name
		// of the tool. Here only one is left where that is so.
		if len(usual) >= 2 && fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("%v reads as %v, not %v:\n%s", calls, got, want, listed(1<<20, calls...))
		}
	})
}

// withoutNull is an object as JSON: a member that is null is as none.
func withoutNull(a map[string]any) string {
	for name, v := range a {
		if v == nil {
			delete(a, name)
		}
	}
	text, err := json.Marshal(a)
	if err != nil {
		panic(err)
	}
	return string(text)
}
