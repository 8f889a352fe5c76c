package modelhttp

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
)

// maxSecretBytes bounds what is read as a secret: a wrong file is an error, not a
// header.
const maxSecretBytes = 16 << 10

const concealed = "[secret]"

// Secret is a credential, or where to read one. Whatever prints, logs or encodes it
// shows a placeholder; the text comes from Reveal alone. The zero value is no
// credential.
//
// A function keeps the text, so that printing a struct that holds a Secret in an
// unexported field, where no method of it is called, shows an address.
type Secret struct{ read func() (string, error) }

// Literal returns the secret with this text; the zero Secret if it is blank.
func Literal(text string) Secret {
	text = strings.TrimSpace(text)
	if text == "" {
		return Secret{}
	}
	return Secret{func() (string, error) { return text, checkSecret(text) }}
}

// FromEnv returns the secret in the variable, as it is now. One that is unset or
// blank is an error, which names it.
func FromEnv(name string) (Secret, error) {
	s := Literal(os.Getenv(name))
	if !s.IsSet() {
		return Secret{}, fmt.Errorf("variable %s is not set", name)
	}
	if _, err := s.Reveal(); err != nil {
		return Secret{}, fmt.Errorf("variable %s: %w", name, err)
	}
	return s, nil
}

// FromFile returns the secret that the file holds, which is read at every use, so
// that a file that is replaced takes effect. It is read once here, and an error
// names it.
func FromFile(path string) (Secret, error) {
	s := Secret{func() (string, error) {
		text, err := readSecret(path)
		if err != nil {
			return "", fmt.Errorf("secret file %s: %w", path, err)
		}
		return text, nil
	}}
	if _, err := s.Reveal(); err != nil {
		return Secret{}, err
	}
	return s, nil
}

func readSecret(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", errors.Unwrap(err)
	}
	defer f.Close()
	raw, err := io.ReadAll(io.LimitReader(f, maxSecretBytes+1))
	if err != nil {
		return "", errors.New("cannot be read")
	}
	text := strings.TrimSpace(string(raw))
	return text, checkSecret(text)
}

func checkSecret(text string) error {
	switch {
	case text == "":
		return errors.New("is empty")
	case len(text) > maxSecretBytes:
		return fmt.Errorf("is larger than %d bytes", maxSecretBytes)
	case strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }):
		return errors.New("holds characters that a header cannot")
	}
	return nil
}

// IsSet says whether there is a credential.
func (s Secret) IsSet() bool { return s.read != nil }

// Reveal returns the text, for the request that needs it; empty if there is none.
func (s Secret) Reveal() (string, error) {
	if s.read == nil {
		return "", nil
	}
	return s.read()
}

// String returns a placeholder, or nothing if there is no credential.
func (s Secret) String() string {
	if s.read == nil {
		return ""
	}
	return concealed
}

// GoString is String.
func (s Secret) GoString() string { return s.String() }

// Format writes String for every verb.
func (s Secret) Format(w fmt.State, _ rune) { _, _ = io.WriteString(w, s.String()) }

// LogValue is String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is String; encoders of JSON and YAML use it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
