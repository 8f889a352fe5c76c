package config

import (
	"maps"
	"net/url"
	"slices"
)

// hidden replaces what may be a secret.
const hidden = "(hidden)"

// Redacted returns the configuration without what may be secret in it: values of headers, words
// of commands after the first, passwords in addresses, the database's address.
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

func redactedURL(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.User == nil {
		return text
	}
	return u.Redacted()
}
