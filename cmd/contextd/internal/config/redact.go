package config

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

// hidden replaces values that may be secret.
const hidden = "(hidden)"

// Redacted returns a copy without possible secrets: values of headers, arguments of commands, users,
// passwords and queries of URLs, and the database's address.
func (c Config) Redacted() Config {
	if len(c.EncryptionKeyCommand) > 1 {
		c.EncryptionKeyCommand = []string{c.EncryptionKeyCommand[0], hidden}
	}
	if c.Postgres.DSN != "" {
		c.Postgres.DSN = hidden
	}
	c.Auth.JWT.Keys = redactedURL(c.Auth.JWT.Keys)
	c.Summarizers = maps.Clone(c.Summarizers)
	for name, s := range c.Summarizers {
		s.BaseURL = redactedURL(s.BaseURL)
		s.Headers = maps.Clone(s.Headers)
		for _, header := range slices.Collect(maps.Keys(s.Headers)) {
			s.Headers[header] = hidden
		}
		c.Summarizers[name] = s
	}
	return c
}

// redactedURL is a URL without user, password and query. A text that is not a URL is hidden whole.
func redactedURL(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return hidden
	}
	if u.User == nil && u.RawQuery == "" {
		return text
	}
	plain := (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
	if u.User != nil {
		plain = strings.Replace(plain, "//", "//"+hidden+"@", 1)
	}
	if u.RawQuery != "" {
		plain += "?" + hidden
	}
	return plain
}
