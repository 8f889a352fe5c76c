package keyring

import (
	"bytes"
	"errors"
	"io"

	"filippo.io/age"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// masterFile holds the keyring's id and its own key, encrypted to the operator's key.
const masterFile = "master.age"

// maxMaster is more than it has.
const maxMaster = 64 << 10

func (k *Keyring) readMaster(identities []age.Identity) ([]byte, error) {
	f, err := k.fs.Open(k.fs.PathJoin(k.dir, masterFile))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxMaster))
	if err != nil {
		return nil, err
	}
	opened, err := age.Decrypt(bytes.NewReader(text), identities...)
	var none *age.NoIdentityMatchError
	if errors.As(err, &none) {
		return nil, &KeyError{Dir: k.dir, Reason: "they were encrypted with another key than the ones given"}
	}
	var secret []byte
	if err == nil {
		secret, err = io.ReadAll(opened)
	}
	if err != nil || len(secret) != idSize+keySize {
		return nil, &KeyError{Dir: k.dir, Reason: masterFile + " is damaged: restore it from a copy, for nothing can be read without it"}
	}
	return secret, nil
}

// writeMaster replaces the file such that a crash leaves the old one or the new.
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
	path := k.fs.PathJoin(k.dir, masterFile)
	f, err := k.fs.Create(path+".tmp", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(sealed.Bytes())
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	if err := k.fs.Rename(path+".tmp", path); err != nil {
		return err
	}
	return k.syncDir()
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

func (k *Keyring) syncDir() error {
	d, err := k.fs.OpenDir(k.dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if closeErr := d.Close(); err == nil {
		err = closeErr
	}
	return err
}
