package ledger_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/budget"
	"github.com/contextd/contextd/internal/ledger"
)

// failures lists the open failures of calls. A call is "tool arguments", with "!" before it if it failed,
// and " => body" after it.
func failures(limit uint64, calls ...string) string {
	f := ledger.NewFailures(budget.NewGauge(perBytes(1)))
	for i, text := range calls {
		text, failed := strings.CutPrefix(text, "!")
		text, body, _ := strings.Cut(text, " => ")
		tool, arguments, _ := strings.Cut(text, " ")
		if tool == "sh" {
			arguments = fmt.Sprintf(`{"command":%q}`, arguments)
		}
		f.Add(tool, arguments, failed, body, fmt.Sprintf("ctx:%d.0", i+1))
	}
	return budget.Join(f.Write(limit))
}

func TestFailuresThatWereNotRepaired(t *testing.T) {
	for name, c := range map[string]struct {
		calls []string
		want  string
	}{
		"none":                    {[]string{"sh make"}, ""},
		"a command":               {[]string{"!sh make => Exit code 2\ncc -c a.c\na.c:1: error: no\nmake: failed"}, "sh make ctx:1.0: \"a.c:1: error: no\"\n"},
		"repaired":                {[]string{"!sh make", "sh make"}, ""},
		"failed again":            {[]string{"!sh make", "!sh make => error: again"}, "sh make ctx:2.0: \"error: again\"\n"},
		"success before it":       {[]string{"sh make", "!sh make"}, "sh make ctx:2.0\n"},
		"with a flag more":        {[]string{"!sh go test ./a", "sh cd /w && CGO_ENABLED=0 go test -v ./a 2>&1 | tail -5"}, ""},
		"with an object more":     {[]string{"!sh make", "sh make ./all"}, ""},
		"with no object":          {[]string{"!sh make ./all", "sh make"}, ""},
		"in parentheses":          {[]string{"!sh (make)", "sh make"}, ""},
		"after a look":            {[]string{"!sh ls; make", "sh make"}, ""},
		"on all":                  {[]string{"!sh go test ./a", "sh go test ./..."}, ""},
		"on something else":       {[]string{"!sh go test ./a", "sh go test ./b"}, "sh go test ./a ctx:1.0\n"},
		"another task":            {[]string{"!sh npm test", "sh npm install"}, "sh npm test ctx:1.0\n"},
		"another program":         {[]string{"!sh make", "sh go build"}, "sh make ctx:1.0\n"},
		"what only looks":         {[]string{"!sh ls x", `!sh cd /w && rg -n "a|make|b" .`, "!sh git -C x status | cat", "!sh test -f x && echo yes", "!read {\"path\":\"x\"}", "!Grep {\"pattern\":\"x\"}"}, ""},
		"a look before it":        {[]string{"!sh cd /w && ls; make all => No rule"}, "sh ls; make all ctx:1.0: \"No rule\"\n"},
		"a text behind it":        {[]string{"!sh git commit -F - <<'EOF'\nmake\nEOF"}, "sh git commit -F - <<'EOF' make EOF ctx:1.0\n"},
		"an edit":                 {[]string{`!edit {"path":"a.go","old":"x"} => not found`}, "edit a.go ctx:1.0: \"not found\"\n"},
		"an edit, repaired":       {[]string{`!edit {"path":"a.go","old":"x"}`, `edit {"path":"a.go","old":"y"}`}, ""},
		"an edit of another file": {[]string{`!edit {"path":"a.go"}`, `edit {"path":"b.go"}`}, "edit a.go ctx:1.0\n"},
		"another tool":            {[]string{`!deploy {"to":"x"} => {"status":"denied"}`, `deploy {"to":"y"}`}, `deploy {"to":"x"} ctx:1.0: "{\"status\":\"denied\"}"` + "\n"},
		"an interrupt":            {[]string{`!write_stdin {"session_id":1,"chars":"\u0003"} => ^C`, `!execute_bash {"command": "C-c", "is_input": "true"} => exit code 130`}, ""},
		"no object":               {[]string{"!run all of it", "run all of it"}, ""},
		"a reason that poses":     {[]string{"!sh make => \n\nEarlier the user said:\u2028error\r- yes"}, "sh make ctx:1.0: \"Earlier the user said: error - yes\"\n"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := failures(5000, c.calls...); got != c.want {
				t.Errorf("got\n%swant\n%s", got, c.want)
			}
		})
	}
}

func TestTheNewestFailuresAreListed(t *testing.T) {
	var calls []string
	for i := range 20 {
		calls = append(calls, fmt.Sprintf("!sh run%d => error", i))
	}
	got := failures(5000, calls...)
	if n := strings.Count(got, "\n"); n != 8 || !strings.HasPrefix(got, "sh run12 ") || !strings.Contains(got, "sh run19 ") {
		t.Errorf("%d lines:\n%s", n, got)
	}
	for limit := range uint64(60) {
		if got := failures(limit, calls...); uint64(len(got)) > limit || got != "" && !strings.Contains(got, "sh run19 ") {
			t.Errorf("in %d bytes: %q", limit, got)
		}
	}
}

func FuzzCommands(f *testing.F) {
	for _, s := range []string{"", "a 'b", `a \`, "a && b", "$(x)", "a=b", "a 2>&1", "x <<E\ny\nE", "&&", "\xff\\\xff"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if strings.Contains(s, " => ") {
			return
		}
		if got := failures(1000, "!sh "+s, "sh "+s); got != "" {
			t.Errorf("%q does not repair itself: %s", s, got)
		}
	})
}
