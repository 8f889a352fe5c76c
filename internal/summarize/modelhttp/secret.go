package modelhttp

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
)

// maxSecretBytes is the longest secret that is read, so that a wrong file is an error and not sent as a header.
const maxSecretBytes = 16 << 10

const concealed = "[secret]"

// Secret is a credential, or the place from which to read one. Printed, logged or encoded it is a placeholder: only
// Reveal returns the text. The zero value is no credential.
//
// The text is kept in a function. So if a struct with a Secret in an unexported field is printed, where no method is
// called, an address is shown.
type Secret struct{ read func() (string, error) }

// Literal returns the secret with this text; the zero Secret if it is blank.
func Literal(text string) Secret {
	text = strings.TrimSpace(text)
	if text == "" {
		return Secret{}
	}
	return Secret{func() (string, error) { return text, checkSecret(text) }}
}

// FromEnv returns the secret in an environment variable, read now. If it is unset or blank, the error names it.
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

// FromFile returns the secret in a file. The file is read at every use, so that a new file takes effect, and once
// now, so that errors are found early. Errors name the file.
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

// IsSet reports whether there is a credential.
func (s Secret) IsSet() bool { return s.read != nil }

// Reveal returns the text; empty if there is no credential. Call it only for the request that needs it.
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

// GoString returns String.
func (s Secret) GoString() string { return s.String() }

// Format writes String for every verb.
func (s Secret) Format(w fmt.State, _ rune) { _, _ = io.WriteString(w, s.String()) }

// LogValue returns String.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText returns String. Encoders of JSON and YAML use it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
