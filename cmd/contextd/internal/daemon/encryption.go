package daemon

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"filippo.io/age"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/memory"
)

// Encryption reads the operator's keys; it is nil if the store is not to be encrypted.
func Encryption(ctx context.Context, c config.Config) (*disklog.Encryption, error) {
	if !c.Encrypted() {
		return nil, nil
	}
	var identities []age.Identity
	add := func(from string, text []byte, err error) error {
		if err == nil {
			var keys []age.Identity
			keys, err = parseKeys(text)
			identities = append(identities, keys...)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
		return nil
	}
	if c.EncryptionKeyFile != "" {
		text, err := memory.ReadFile(c.EncryptionKeyFile)
		from := "encryption_key_file"
		if err == nil {
			from += ": " + c.EncryptionKeyFile
		}
		if err := add(from, text, err); err != nil {
			return nil, &ConfigurationError{err}
		}
	}
	if len(c.EncryptionKeyCommand) > 0 {
		text, err := runForKeys(ctx, c.EncryptionKeyCommand)
		if err := add("encryption_key_command", text, err); err != nil {
			return nil, err
		}
	}
	return &disklog.Encryption{Identities: identities, Dir: c.EncryptionKeysDir}, nil
}

// parseKeys parses the operator's keys, one on each line; comments are allowed. Errors do not quote keys.
func parseKeys(text []byte) (keys []age.Identity, err error) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) // which editors put before text
	if bytes.IndexByte(text, 0) >= 0 {
		return nil, errors.New("it is not plain text, as keys are: save it as UTF-8")
	}
	number := 0
	for line := range strings.Lines(string(text)) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parsed, err := age.ParseIdentities(strings.NewReader(line))
		if err != nil {
			return nil, fmt.Errorf("line %d is %s", number, notAKey(line))
		}
		keys = append(keys, parsed...)
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no key in it, which is a line that begins with AGE-SECRET-KEY-")
	}
	return keys, nil
}

// notAKey guesses, for an error, what a line is that is not a key.
func notAKey(line string) string {
	switch {
	case strings.HasPrefix(line, "AGE-SECRET-KEY-"):
		return "a key that was cut or mistyped"
	case strings.HasPrefix(line, "age1"):
		return "a public key: the key to give begins with AGE-SECRET-KEY-"
	case strings.HasPrefix(line, "-----BEGIN AGE ENCRYPTED FILE"), strings.HasPrefix(line, "age-encryption.org/"):
		return "of an encrypted file: have encryption_key_command decrypt it"
	default:
		return "no key as contextd keygen writes them, which begins with AGE-SECRET-KEY-"
	}
}

// keyCommandTime bounds the command that fetches the operator's keys.
const keyCommandTime = 30 * time.Second

// runForKeys returns the output of a command. If it fails, the error has the last line of its standard error.
func runForKeys(ctx context.Context, words []string) ([]byte, error) {
	limited, cancel := context.WithTimeout(ctx, keyCommandTime)
	defer cancel()
	var said bytes.Buffer
	command := exec.CommandContext(limited, words[0], words[1:]...)
	command.Stderr, command.WaitDelay = &said, time.Second // what it started may keep its output open
	out, err := command.Output()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if limited.Err() != nil {
		return nil, fmt.Errorf("%s did not end within %s", words[0], keyCommandTime)
	}
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		return nil, fmt.Errorf("%s: %w: %s", words[0], err, lines[len(lines)-1])
	}
	return out, nil
}
