package keyring

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"filippo.io/age"

	"github.com/contextd/contextd/internal/log/disklog/durable"
)

// MasterFile is the file with the keyring's id and its own key, encrypted to the operator's key.
const MasterFile = "master.age"

// maxMaster exceeds the size of the file.
const maxMaster = 64 << 10

func (k *Keyring) readMaster(identities []age.Identity) ([]byte, error) {
	text, err := durable.Read(k.fs, k.fs.PathJoin(k.dir, MasterFile), maxMaster)
	if err != nil {
		return nil, err
	}
	opened, err := age.Decrypt(strings.NewReader(text), identities...)
	if _, ok := errors.AsType[*age.NoIdentityMatchError](err); ok {
		return nil, &KeyError{Dir: k.dir, Reason: MasterFile + " is damaged, or they were encrypted with another key than the ones given"}
	}
	var secret []byte
	if err == nil {
		secret, err = io.ReadAll(opened)
	}
	if err != nil || len(secret) != idSize+keySize {
		return nil, &KeyError{Dir: k.dir, Reason: MasterFile + " is damaged: restore it from a copy, for nothing can be read without it"}
	}
	return secret, nil
}

// writeMaster replaces the file. After a crash it is the old one or the new one.
func (k *Keyring) writeMaster(secret []byte, to age.Identity) error {
	recipient, err := recipientOf(to)
	if err != nil {
		return &KeyError{Dir: k.dir, Reason: err.Error()}
	}
	var sealed bytes.Buffer
	out, err := age.Encrypt(&sealed, recipient)
	if err != nil {
		return err
	}
	if _, err := out.Write(secret); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	return durable.Replace(k.fs, k.dir, MasterFile, sealed.String())
}

func recipientOf(identity age.Identity) (age.Recipient, error) {
	switch i := identity.(type) {
	case *age.X25519Identity:
		return i.Recipient(), nil
	case *age.HybridIdentity:
		return i.Recipient(), nil
	default:
		return nil, errors.New("the first key must be one of age's own, which begin with AGE-SECRET-KEY-")
	}
}
