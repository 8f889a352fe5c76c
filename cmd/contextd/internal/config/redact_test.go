package config_test

import (
	"testing"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
)

func TestAddressesAreRedacted(t *testing.T) {
	for address, want := range map[string]string{
		"http://127.0.0.1:11434/v1":                "http://127.0.0.1:11434/v1",
		"https://me:hush@example.org/v1":           "https://(hidden)@example.org/v1",
		"https://hush@example.org/v1":              "https://(hidden)@example.org/v1",
		"https://example.org/v1?key=hush":          "https://example.org/v1?(hidden)",
		"https://hush:hush@example.org/?hush#hush": "https://(hidden)@example.org/?(hidden)",
		"http://me:hush@[::1":                      "(hidden)",
		"/etc/contextd/jwks.json":                  "/etc/contextd/jwks.json",
		"":                                         "",
	} {
		var c config.Config
		c.Auth.JWT.Keys = address
		c.Summarizers = map[string]config.Summarizer{"s": {BaseURL: address}}
		got := c.Redacted()
		if got.Auth.JWT.Keys != want || got.Summarizers["s"].BaseURL != want {
			t.Errorf("%s became %s and %s, want %s", address, got.Auth.JWT.Keys, got.Summarizers["s"].BaseURL, want)
		}
	}
}
