package scrub_test

import (
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/scrub"
)

func scrubber(t testing.TB, o scrub.Options) *scrub.Scrubber {
	t.Helper()
	s, err := scrub.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// long is n characters of a kind that keys consist of.
func long(n int) string { return strings.Repeat("aB3dE5gH7", n/9+1)[:n] }

// credentials are assembled at run time, so that no file of the repository seems to contain some.
var credentials = map[string]string{
	"aws_access_key":     "AKIA" + strings.ToUpper(long(16)),
	"github_token":       "ghp_" + long(36),
	"gitlab_token":       "glpat-" + long(20),
	"slack_token":        "xoxb-" + long(40),
	"slack_webhook":      "hooks.slack.com/services/T0/B0/" + long(24),
	"google_key":         "AIza" + long(35),
	"stripe_key":         "sk_live_" + long(24),
	"npm_token":          "npm_" + long(36),
	"pypi_token":         "pypi-" + long(60),
	"docker_token":       "dckr_pat_" + long(27),
	"huggingface_token":  "hf_" + long(34),
	"sendgrid_key":       "SG." + long(22) + "." + long(43),
	"digitalocean_token": "dop_v1_" + strings.Repeat("0a1b2c3d", 8),
	"shopify_token":      "shpat_" + strings.Repeat("0a1b2c3d", 4),

	"vault_token":      "hvs." + long(24),
	"databricks_token": "dapi" + strings.Repeat("0a1b2c3d", 4),
	"age_key":          "AGE-SECRET-KEY-1" + strings.ToUpper(long(58)),
	"model_api_key":    "sk-ant-api03-" + long(40),
	"jwt":              "eyJ" + long(20) + ".eyJ" + long(40) + "." + long(43),
	"private_key":      "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\n" + long(64) + "\n" + long(20) + "==\n-----END RSA PRIVATE KEY-----",
}

func TestKnownShapesAreReplacedWhereverTheyAre(t *testing.T) {
	found := map[string]int{}
	s := scrubber(t, scrub.Options{Observe: func(rule string, n int) { found[rule] += n }})
	for rule, credential := range credentials {
		for _, frame := range []string{"%", "say % now", "x = '%'", "(%)", "line\n%\nline", `{"v":"%"}`} {
			if strings.HasPrefix(frame, "{") {
				quoted, err := json.Marshal(credential)
				if err != nil {
					t.Fatal(err)
				}
				credential = strings.Trim(string(quoted), `"`)
			}
			want := strings.ReplaceAll(frame, "%", "[scrubbed:"+rule+"]")
			if got := s.Text(strings.ReplaceAll(frame, "%", credential)); got != want {
				t.Errorf("%s in %q: %q, want %q", rule, frame, got, want)
			}
		}
	}
	for rule := range credentials {
		if found[rule] == 0 {
			t.Errorf("%s was never observed", rule)
		}
	}
}

func TestSecretsAreKnownByWhatStandsBeforeThem(t *testing.T) {
	s := scrubber(t, scrub.Options{})
	for in, want := range map[string]string{
		"Authorization: Bearer " + long(20):                 "Authorization: Bearer [scrubbed:authorization]",
		`-H "authorization: Basic ` + long(20) + `=="`:      `-H "authorization: Basic [scrubbed:authorization]"`,
		`{"Authorization":"Bearer ` + long(20) + `"}`:       `{"Authorization":"Bearer [scrubbed:authorization]"}`,
		"bot 123456789:AA" + long(33):                       "bot 123456789:[scrubbed:telegram_token]",
		"postgres://app:s3cr3t@db/x":                        "postgres://app:[scrubbed:url_password]@db/x",
		"redis://:pa55@cache:6379":                          "redis://:[scrubbed:url_password]@cache:6379",
		"DB_PASSWORD=hunter2x9Q":                            "DB_PASSWORD=[scrubbed:assigned_secret]",
		`"client_secret": "x8Kq2-Lm91"`:                     `"client_secret": "[scrubbed:assigned_secret]"`,
		`{\"api_key\":\"x8Kq2Lm91zz\"}`:                     `{\"api_key\":\"[scrubbed:assigned_secret]\"}`,
		"aws_secret_access_key = " + long(30) + "/x+" + "y": "aws_secret_access_key = [scrubbed:assigned_secret]",
		"apiKey := 'x8Kq2Lm91zz'":                           "apiKey := '[scrubbed:assigned_secret]'",
	} {
		if got := s.Text(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestOrdinaryTextStays(t *testing.T) {
	s := scrubber(t, scrub.Options{})
	for _, text := range []string{
		"password: str = Field(...)", "password=os.environ[\"PASSWORD\"]", "the secret: nobody knows",
		"max_tokens=16000", "api_key: ${API_KEY}", "api_key_env: ANTHROPIC_API_KEY", "sk-learn is sk-something-rather-longer-than-that",
		"http://user@host/path", "https://example.org/a:b@c", "http://$USER:$PASS@host", "postgres://user:<password>@host",
		"eyJ alone", "commit 3ac5905f3ac5905f3ac5905f3ac5905f3ac5905f", "task-runner-x1-something-longer-than-20",
		"sha256:" + strings.Repeat("0a1b2c3d", 8), "BEGIN PRIVATE KEY", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
		"Bearer tokens are used", "Authorization: Bearer <token>", "primary_key=user_identifier_2", "passwords=0, tokens=1",
	} {
		if got := s.Text(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func TestOperatorsPatterns(t *testing.T) {
	s := scrubber(t, scrub.Options{Patterns: map[string]string{"ticket": `ACME-[0-9]{4}`, "pin": `pin is ([0-9]{4})`}})
	if got, want := s.Text("ACME-1234, the pin is 9876."), "[scrubbed:ticket], the pin is [scrubbed:pin]."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for name, pattern := range map[string]string{
		"Bad Name": "x", "jwt": "x", "open": "(", "empty": "x*", "marks": `\[scrubbed`,
	} {
		_, err := scrub.New(scrub.Options{Patterns: map[string]string{name: pattern}})
		var invalid *eventlog.InvalidError
		if !errors.As(err, &invalid) || invalid.Field != name {
			t.Errorf("pattern %s %q: %v", name, pattern, err)
		}
	}
}

func TestEventsAreScrubbedWhereProvidersAllowIt(t *testing.T) {
	s := scrubber(t, scrub.Options{})
	key := credentials["github_token"]
	mark := "[scrubbed:github_token]"
	for name, body := range map[string]func(text string) eventlog.Body{
		"text": func(x string) eventlog.Body {
			return &eventlog.Message{Blocks: []eventlog.Block{eventlog.Text{Text: x}}}
		},
		"thinking": func(x string) eventlog.Body {
			return &eventlog.Message{Blocks: []eventlog.Block{eventlog.Thinking{Text: x}}}
		},
		"call": func(x string) eventlog.Body {
			return &eventlog.Message{Blocks: []eventlog.Block{eventlog.ToolCall{CallID: "c", Name: "bash", Arguments: `{"command":"` + x + `"}`}}}
		},
		"result": func(x string) eventlog.Body {
			return &eventlog.Message{Blocks: []eventlog.Block{eventlog.ToolResult{CallID: "c", Content: []eventlog.Block{eventlog.Text{Text: x}}}}}
		},
		"reminder":   func(x string) eventlog.Body { return &eventlog.Reminder{Body: x} },
		"compaction": func(x string) eventlog.Body { return &eventlog.Compaction{Summary: x, NativeJSON: `["` + x + `"]`} },
		"custom":     func(x string) eventlog.Body { return &eventlog.Custom{JSON: `{"x":"` + x + `"}`} },
	} {
		given := eventlog.Event{Body: body("a " + key + " b")}
		got := s.Event(given)
		if text, want := dump(t, got.Body), dump(t, body("a "+mark+" b")); text != want {
			t.Errorf("%s: %s, want %s", name, text, want)
		}
		if text, want := dump(t, given.Body), dump(t, body("a "+key+" b")); text != want {
			t.Errorf("%s: the event that was given became %s", name, text)
		}
	}
	for name, block := range map[string]eventlog.Block{
		"signed": eventlog.Thinking{Text: key, Signature: "s"}, "provider": eventlog.ProviderBlock{JSON: `"` + key + `"`}, "media": eventlog.Media{Data: key},
	} {
		given := &eventlog.Message{Blocks: []eventlog.Block{block}}
		if got := dump(t, s.Event(eventlog.Event{Body: given}).Body); got != dump(t, given) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// TestWhatContextsShow: a context shows a scrubbed event and the number of replacements. An assistant message
// with a sealed part is not changed at all.
func TestWhatContextsShow(t *testing.T) {
	s := scrubber(t, scrub.Options{Patterns: map[string]string{"ticket": `ACME-[0-9]{4}`}})
	key := credentials["github_token"]
	say := func(role eventlog.Role, blocks ...eventlog.Block) *eventlog.Message {
		return &eventlog.Message{Role: role, Blocks: blocks}
	}
	said := eventlog.Text{Text: "ACME-1234 with " + key}
	signed := eventlog.Thinking{Text: key, Signature: "s"}
	for name, c := range map[string]struct {
		body eventlog.Body
		want int
	}{
		"nothing to replace":     {say(eventlog.RoleUser, eventlog.Text{Text: "Begin."}), 0},
		"a message":              {say(eventlog.RoleUser, said), 2},
		"several blocks":         {say(eventlog.RoleAssistant, said, eventlog.ToolCall{Arguments: `["` + key + `"]`}), 3},
		"open reasoning":         {say(eventlog.RoleAssistant, eventlog.Thinking{Text: key}, said), 3},
		"sealed reasoning":       {say(eventlog.RoleAssistant, signed, said), 0},
		"a provider's block":     {say(eventlog.RoleAssistant, eventlog.ProviderBlock{JSON: "{}"}, said), 0},
		"members of a block":     {say(eventlog.RoleAssistant, eventlog.ProviderBlock{Provider: "openai", JSON: `{"phase":"commentary"}`}, said), 2},
		"signature of a call":    {say(eventlog.RoleAssistant, eventlog.ProviderBlock{Provider: "openai", JSON: `{"extra_content":{"google":{"thought_signature":"c2ln"}}}`}, said), 0},
		"one in a user's words":  {say(eventlog.RoleUser, eventlog.ProviderBlock{JSON: "{}"}, said), 2},
		"a reminder":             {&eventlog.Reminder{Body: key}, 1},
		"a summary":              {&eventlog.Compaction{Summary: key, NativeJSON: `["` + key + `"]`}, 2},
		"no body of these kinds": {nil, 0},
	} {
		given := eventlog.Event{Seq: 7, Tokens: eventlog.TokenCounts{Tokenizer: "t"}, Body: c.body}
		want, before := s.Event(given), dump(t, c.body)
		if c.want == 0 {
			want = given
		}
		got, n := s.Shown(given)
		if n != c.want || dump(t, got.Body) != dump(t, want.Body) {
			t.Errorf("%s: %d replaced in %s; want %d in %s", name, n, dump(t, got.Body), c.want, dump(t, want.Body))
		}
		if counted := got.Tokens.Tokenizer != ""; counted != (n == 0) || got.Seq != 7 || dump(t, c.body) != before {
			t.Errorf("%s: the event is %+v, and the one given %s", name, got, dump(t, c.body))
		}
	}
}

func TestRulesAreIdentified(t *testing.T) {
	rules := func(patterns map[string]string) string {
		return scrubber(t, scrub.Options{Patterns: patterns, Observe: func(string, int) {}}).Rules()
	}
	if a, b := rules(nil), scrubber(t, scrub.Options{}).Rules(); a == "" || a != b {
		t.Errorf("the same rules are %q and %q", a, b)
	}
	if a, b := rules(map[string]string{"a": "x", "b": "y"}), rules(map[string]string{"b": "y", "a": "x"}); a != b {
		t.Errorf("the same patterns are %q and %q", a, b)
	}
	seen := map[string]bool{}
	all := []map[string]string{nil, {"a": "x"}, {"a": "(x)"}, {"b": "x"}, {"a": "x", "b": "y"}, {"a": "x b y"}}
	for _, patterns := range all {
		seen[rules(patterns)] = true
	}
	if len(seen) != len(all) {
		t.Errorf("%d sets of patterns have %d names", len(all), len(seen))
	}
}

func dump(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestJSONStaysJSONUnderPatternsThatCrossStrings(t *testing.T) {
	s := scrubber(t, scrub.Options{Patterns: map[string]string{"greedy": `ACME.*`}})
	const in, want = `{ "a" : "is ACME-12", "b":["x", 1.0, "\u0041CME"] }`, `{ "a" : "is [scrubbed:greedy]", "b":["x", 1.0, "[scrubbed:greedy]"] }`
	if got := s.JSON(in); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestScrubbedTextStaysAsItIs(t *testing.T) {
	s := scrubber(t, scrub.Options{})
	var pieces []string
	for _, c := range credentials {
		pieces = append(pieces, c)
	}
	pieces = append(pieces, "password=", "x8Kq2Lm91zz", "://u:", "@", `"`, `\n`, ":", "Bearer", "[scrubbed:jwt]", "secret")
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOf(rapid.SampledFrom(pieces)).Draw(t, "pieces"), " ")
		once := s.Text(text)
		if twice := s.Text(once); twice != once {
			t.Fatalf("%q became %q and then %q", text, once, twice)
		}
		quoted, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if out := s.JSON(string(quoted)); !json.Valid([]byte(out)) {
			t.Fatalf("%s became %s", quoted, out)
		}
	})
}

func TestReaderScrubsLines(t *testing.T) {
	s := scrubber(t, scrub.Options{})
	in := `{"a":"` + credentials["npm_token"] + `"}` + "\n\n" + `{"b":1}`
	got, err := io.ReadAll(s.NewReader(iotest.OneByteReader(strings.NewReader(in))))
	if want := `{"a":"[scrubbed:npm_token]"}` + "\n\n" + `{"b":1}`; err != nil || string(got) != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	_, err = io.ReadAll(s.NewReader(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("x\ny")))))
	if !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("an error of the reader became %v", err)
	}
}

func FuzzText(f *testing.F) {
	for _, c := range credentials {
		f.Add(c)
	}
	s := scrubber(f, scrub.Options{})
	f.Fuzz(func(t *testing.T, text string) {
		if json.Valid([]byte(text)) && !json.Valid([]byte(s.JSON(text))) {
			t.Errorf("%s became %s", text, s.JSON(text))
		}
	})
}

func BenchmarkText(b *testing.B) {
	text := strings.Repeat("func (s *Scrubber) Text(text string) string { // a line of code, with a key and a token\n", 200)
	s := scrubber(b, scrub.Options{})
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		s.Text(text)
	}
}
