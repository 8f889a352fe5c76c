package modelhttp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

const secretText = "sk-xyzzy-plugh-0042"

// A secret shows in no print, log or encoding, also where it is a field that no
// method is called on.
func TestSecretDoesNotShow(t *testing.T) {
	secret := Literal(secretText)
	hidden := struct{ key Secret }{secret}
	shownField := struct{ Key Secret }{secret}
	var log bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&log, nil), slog.NewJSONHandler(&log, nil)} {
		slog.New(h).Info("test", "secret", secret, "pointer", &secret, "hidden", hidden, "shown", shownField)
	}
	said := []string{log.String(), secret.String()}
	for _, v := range []any{secret, &secret, hidden, &hidden, shownField, Options{APIKey: secret}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			said = append(said, fmt.Sprintf(verb, v))
		}
	}
	for _, encode := range []func(any) ([]byte, error){json.Marshal, yaml.Marshal} {
		raw, err := encode(shownField)
		if err != nil || !strings.Contains(string(raw), "[secret]") {
			t.Errorf("%s, %v", raw, err)
		}
		said = append(said, string(raw))
	}
	hex := fmt.Sprintf("%x", secretText)
	for _, s := range said {
		if strings.Contains(s, "xyzzy") || strings.Contains(s, hex) {
			t.Errorf("%s shows the secret", s)
		}
	}
	if got, err := secret.Reveal(); got != secretText || err != nil {
		t.Errorf("revealed %q, %v", got, err)
	}
	if (Secret{}).String() != "" || (Secret{}).IsSet() || Literal(" \n").IsSet() {
		t.Error("no secret looks like one")
	}
}

func TestFromEnv(t *testing.T) {
	t.Setenv("MODELHTTP_KEY", " "+secretText+"\n")
	s, err := FromEnv("MODELHTTP_KEY")
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := s.Reveal(); got != secretText {
		t.Errorf("got %q", got)
	}
	for name, value := range map[string]string{"MODELHTTP_EMPTY": "", "MODELHTTP_LINES": "sk-xyzzy\r\nX-Evil: 1"} {
		t.Setenv(name, value)
		_, err := FromEnv(name)
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "xyzzy") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A file that is replaced takes effect at the next use.
func TestFromFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := FromFile(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a missing file: %v", err)
	}
	write(secretText + "\n")
	s, err := FromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	write("another")
	if got, err := s.Reveal(); got != "another" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	for name, text := range map[string]string{"empty": "\n", "large": strings.Repeat("x", maxSecretBytes+1), "binary": "xyzzy\x00"} {
		write(text)
		if got, err := s.Reveal(); err == nil || strings.Contains(err.Error(), "xyzzy") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
