package auth

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// Tokens maps the SHA-256 of bearer tokens to identities. Tokens are random, so neither a hash nor the time
// of a lookup reveals anything about one.
type Tokens map[[sha256.Size]byte]Identity

// TokenEntry is an entry of a token file.
type TokenEntry struct {
	Name string `yaml:"name"`
	// SHA256 is the SHA-256 of the token, in hexadecimal digits.
	SHA256 string `yaml:"sha256"`
	Tenant string `yaml:"tenant,omitempty"`
}

// NewToken returns a random token and its entry.
func NewToken(name, tenant string) (token string, e TokenEntry, err error) {
	var secret [32]byte
	rand.Read(secret[:]) // never fails
	token = base64.RawURLEncoding.EncodeToString(secret[:])
	hash := sha256.Sum256([]byte(token))
	e = TokenEntry{Name: name, SHA256: hex.EncodeToString(hash[:]), Tenant: tenant}
	_, _, err = e.parse()
	return token, e, err
}

// parseTokens parses a YAML list of entries. Errors name the entry, and contain no hash.
func parseTokens(contents ...[]byte) (Tokens, error) {
	var entries []TokenEntry
	decoder := yaml.NewDecoder(bytes.NewReader(contents[0]))
	decoder.KnownFields(true)
	if err := decoder.Decode(&entries); err != nil && !errors.Is(err, io.EOF) {
		return nil, errors.New("must be a YAML list of name, sha256 and, where the caller is a tenant, tenant")
	}
	all := make(Tokens, len(entries))
	for i, e := range entries {
		hash, who, err := e.parse()
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", i+1, err)
		}
		if other, taken := all[hash]; taken {
			return nil, fmt.Errorf("entry %d: %s is the token of %s, too", i+1, e.Name, other.Name)
		}
		all[hash] = who
	}
	return all, nil
}

func (e TokenEntry) parse() (hash [sha256.Size]byte, who Identity, err error) {
	if e.Name == "" {
		return hash, who, errors.New("name must not be empty")
	}
	decoded, err := hex.DecodeString(e.SHA256)
	if err != nil || len(decoded) != len(hash) {
		return hash, who, fmt.Errorf("sha256 of %s must be %d hexadecimal digits", e.Name, 2*len(hash))
	}
	copy(hash[:], decoded)
	return hash, Identity{Name: "token " + e.Name, Tenant: e.Tenant}, checkTenant(e.Tenant)
}

func (t Tokens) find(token string) (Identity, bool) {
	who, ok := t[sha256.Sum256([]byte(token))]
	return who, ok
}
