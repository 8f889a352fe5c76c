package config

import (
	"maps"
	"net/url"
	"slices"
	"strings"
)

// hidden replaces what may be a secret.
const hidden = "(hidden)"

// Redacted returns the configuration without what may be secret in it: values of headers, words
// of commands after the first, users, passwords and queries of addresses, the database's address.
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

// redactedURL is an address without what may be a secret: its user, password and query, or all of
// one that is no address.
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
