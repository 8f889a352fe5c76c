package config_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
)

// flags loads a configuration from a command line alone.
func flags(args ...string) (config.Config, error) {
	c := config.Default()
	f := pflag.NewFlagSet("contextd", pflag.ContinueOnError)
	c.Bind(f)
	if err := f.Parse(args); err != nil {
		return c, err
	}
	err := c.Load(f, func(string) (string, bool) { return "", false })
	return c, err
}

func TestSummarizersAreRead(t *testing.T) {
	c, err := flags("--summarizers", `{house: {type: openai, base_url: "http://127.0.0.1:8080/v1", model: small, api_key_env: KEY, timeout: 30s, max_attempts: 2, cool_down: 5m, headers: {X-Team: core}}}`, "--default-summarizer", "house")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]config.Summarizer{
		"extractive": {Type: config.SummarizerExtractive},
		"house": {
			Type: config.SummarizerOpenAI, BaseURL: "http://127.0.0.1:8080/v1", Model: "small", APIKeyEnv: "KEY", Timeout: 30 * time.Second,
			MaxAttempts: 2, CoolDown: 5 * time.Minute, Headers: map[string]string{"X-Team": "core"},
		},
	}
	if diff := cmp.Diff(want, c.AllSummarizers()); diff != "" {
		t.Error(diff)
	}
	again, err := flags("--summarizers", c.Settings().Lookup("summarizers").Value.String(), "--default-summarizer", "house")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c.Summarizers, again.Summarizers); diff != "" {
		t.Errorf("written and read again:\n%s", diff)
	}
}

// TestTheBuiltInSummarizer: the built-in summarizer needs no configuration, and its name may be redefined.
func TestTheBuiltInSummarizer(t *testing.T) {
	c, err := flags()
	if err != nil || c.DefaultSummarizer != "extractive" || len(c.AllSummarizers()) != 1 {
		t.Errorf("%v, %+v", err, c.AllSummarizers())
	}
	c, err = flags("--summarizers", "{extractive: {type: pull}}")
	if err != nil || c.AllSummarizers()["extractive"].Type != config.SummarizerPull {
		t.Errorf("%v, %+v", err, c.AllSummarizers())
	}
}

func TestSummarizersThatMakeNoSense(t *testing.T) {
	for name, c := range map[string]struct{ yaml, byDefault, want string }{
		"no type":           {yaml: "{house: {model: small}}", want: `summarizers["house"]: type`},
		"an unknown type":   {yaml: "{house: {type: oracle}}", want: `"oracle"`},
		"an unknown key":    {yaml: "{house: {type: pull, tpye: pull}}", want: "tpye"},
		"a key in the open": {yaml: "{house: {type: openai, api_key: sk-1}}", want: "api_key"},
		"two keys":          {yaml: "{house: {type: openai, api_key_env: A, api_key_file: b}}", want: `summarizers["house"]: api_key_env and api_key_file`},
		"no name":           {yaml: `{"": {type: pull}}`, want: `summarizers[""]`},
		"the caller's name": {yaml: "{caller: {type: pull}}", want: `"caller"`},
		"a negative lease":  {yaml: "{house: {type: pull, lease: -1s}}", want: `summarizers["house"]: lease`},
		"a rule to scrub":   {yaml: "{house: {type: extractive, scrub: true}}", want: `summarizers["house"]: scrub`},
		"no such default":   {yaml: "{house: {type: pull}}", byDefault: "home", want: `default_summarizer: "home"`},
		"no map":            {yaml: "[house]", want: "summarizers"},
	} {
		t.Run(name, func(t *testing.T) {
			args := []string{"--summarizers", c.yaml}
			if c.byDefault != "" {
				args = append(args, "--default-summarizer", c.byDefault)
			}
			if _, err := flags(args...); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("the error is %v; it should name %s", err, c.want)
			}
		})
	}
}
