package daemon

import (
	"bytes"
	"context"
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
	add := func(setting string, text []byte, err error) error {
		if err != nil {
			return fmt.Errorf("%s: %w", setting, err)
		}
		keys, err := age.ParseIdentities(bytes.NewReader(text))
		if err != nil {
			// The error may quote a line of the keys.
			return fmt.Errorf("%s: it does not hold keys as contextd keygen writes them, one a line", setting)
		}
		identities = append(identities, keys...)
		return nil
	}
	if c.EncryptionKeyFile != "" {
		text, err := memory.ReadFile(c.EncryptionKeyFile)
		if err := add("encryption_key_file", text, err); err != nil {
			return nil, err
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

// keyCommandTime bounds the command that fetches the operator's keys.
const keyCommandTime = 30 * time.Second

// runForKeys returns what a command writes. Of what it says when it fails, the last line is
// in the error.
func runForKeys(ctx context.Context, words []string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, keyCommandTime)
	defer cancel()
	var said bytes.Buffer
	command := exec.CommandContext(ctx, words[0], words[1:]...)
	command.Stderr = &said
	out, err := command.Output()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%s did not end within %s", words[0], keyCommandTime)
	}
	if err != nil {
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		return nil, fmt.Errorf("%s: %w: %s", words[0], err, lines[len(lines)-1])
	}
	return out, nil
}
