// Package keyring has the keys with which a store's values are sealed, one for each segment of a log. Without its key
// nothing of a segment can be read, neither in database files nor in backups.
//
// Keys are in files of slots, which are overwritten in place. They are sealed with the keyring's own key, which is
// encrypted with age to the operator's key.
package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"filippo.io/age"
	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/contextd/contextd/internal/log/disklog/durable"
)

const (
	idSize, keySize  = 8, 32
	nonceSize, extra = 12, 16 // of AES-GCM

	// A slot is the key of a segment: a magic byte, a version, two zeros, and the sealed key.
	slotSize    = 4 + nonceSize + keySize + extra // 64: no slot spans two sectors
	slotMagic   = 'K'
	slotVersion = 1
	// lostMagic begins the slots before the first key in a new file. If their segments have values, the keys were in
	// an earlier file with the same name, which is lost.
	lostMagic   = 'L'
	slotsInFile = 4096
	keysSuffix  = ".keys"

	// maxOpen bounds the cache of decrypted keys; each takes about 1 KiB.
	maxOpen = 4096
)

// ErrNoKey says that a segment has no key: it was destroyed.
var ErrNoKey = errors.New("its key was destroyed")

// LostError is an ErrNoKey for a key that was in a lost file: this keyring did not destroy it.
type LostError struct{ File string }

func (e *LostError) Error() string {
	return fmt.Sprintf("%s, which had its key, is lost, cut or made a second time: put it back from a copy", e.File)
}

// Unwrap returns ErrNoKey.
func (*LostError) Unwrap() error { return ErrNoKey }

// ErrForged says that a value or a key fails its authentication: it is not what was sealed.
var ErrForged = errors.New("it cannot be decrypted: it is damaged, or not of this store")

// Keyring is open for one process at a time. Its methods may be called from any goroutine.
type Keyring struct {
	fs  vfs.FS
	dir string
	id  [idSize]byte
	own cipher.AEAD

	mu    sync.Mutex
	ready map[uint64]cipher.AEAD
	// making is held while a file of slots is made, so that no other call makes it too, or uses it before it is
	// durable.
	making sync.Mutex
}

// Open opens the keyring of a directory, or makes one. identities[0] is the operator's current key, the others are
// earlier ones. If only an earlier one decrypts the keyring, Open encrypts it to the current one. The error is a
// *KeyError if none decrypts it.
func Open(fs vfs.FS, dir string, identities []age.Identity) (*Keyring, error) {
	if len(identities) == 0 {
		return nil, &KeyError{Dir: dir, Reason: "there is no key to open it with"}
	}
	k := &Keyring{fs: fs, dir: dir, ready: map[uint64]cipher.AEAD{}}
	secret, err := k.readMaster(identities)
	switch {
	case oserror.IsNotExist(err):
		secret = make([]byte, idSize+keySize)
		if _, err := rand.Read(secret); err != nil {
			return nil, err
		}
		if err := durable.MakeDir(fs, dir); err != nil {
			return nil, err
		}
		err = k.writeMaster(secret, identities[0])
	case err == nil:
		// Try the first key alone, to see whether the keyring is encrypted to it.
		if _, first := k.readMaster(identities[:1]); first != nil {
			err = k.writeMaster(secret, identities[0])
		}
	}
	if err != nil {
		return nil, err
	}
	copy(k.id[:], secret)
	k.own, err = newAEAD(secret[idSize:])
	return k, err
}

// KeyError says why a keyring cannot be opened with the keys that were given.
type KeyError struct {
	Dir, Reason string
}

func (e *KeyError) Error() string { return fmt.Sprintf("the keys in %s: %s", e.Dir, e.Reason) }

// ID identifies the keyring.
func (k *Keyring) ID() string { return hex.EncodeToString(k.id[:]) }

// IsID reports whether a text may be what ID returns.
func IsID(text string) bool {
	id, err := hex.DecodeString(text)
	return err == nil && len(id) == idSize
}

// Used reports whether the keyring of a directory has, or had, the key of any segment.
func Used(fs vfs.FS, dir string) (bool, error) {
	names, err := fs.List(dir)
	if oserror.IsNotExist(err) {
		return false, nil
	}
	return slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(name, keysSuffix) }), err
}

// Create makes the key of a segment without one, durable on return.
func (k *Keyring) Create(segment uint64) error {
	key := make([]byte, keySize)
	if _, err := rand.Read(key); err != nil {
		return err
	}
	slot, err := seal([]byte{slotMagic, slotVersion, 0, 0}, k.own, key, slotName(segment))
	if err != nil {
		return err
	}
	aead, err := newAEAD(key)
	if err != nil {
		return err
	}
	if err := k.write(segment, slot); err != nil {
		return err
	}
	k.keep(segment, aead)
	return nil
}

// Destroy overwrites the keys of segments. On return they are not in their file any more.
func (k *Keyring) Destroy(segments ...uint64) error {
	for _, segment := range segments {
		k.mu.Lock()
		delete(k.ready, segment)
		k.mu.Unlock()
		path, _ := k.fileOf(segment)
		if _, err := k.fs.Stat(path); oserror.IsNotExist(err) {
			continue
		}
		if err := k.write(segment, make([]byte, slotSize)); err != nil {
			return err
		}
	}
	return nil
}

// Has reports whether there is a key of a segment that can be read.
func (k *Keyring) Has(segment uint64) bool { return k.Check(segment) == nil }

// Check returns why the key of a segment cannot be read; nil if it can.
func (k *Keyring) Check(segment uint64) error {
	_, err := k.key(segment)
	return err
}

// Seal encrypts a value and appends it to out. name is the key under which the database stores it, as associated
// data: under another name it cannot be decrypted.
func (k *Keyring) Seal(out []byte, segment uint64, name, value []byte) ([]byte, error) {
	key, err := k.key(segment)
	if err != nil {
		return nil, err
	}
	return seal(out, key, value, name)
}

// Unseal decrypts a value that Seal encrypted.
func (k *Keyring) Unseal(segment uint64, name, sealed []byte) ([]byte, error) {
	key, err := k.key(segment)
	if err != nil {
		return nil, err
	}
	return unseal(key, sealed, name)
}

// SealedSize returns how many bytes Seal appends for a value of a size.
func SealedSize(size int) int { return nonceSize + size + extra }

// key returns a segment's key, or ErrNoKey.
func (k *Keyring) key(segment uint64) (cipher.AEAD, error) {
	k.mu.Lock()
	aead := k.ready[segment]
	k.mu.Unlock()
	if aead != nil {
		return aead, nil
	}
	slot, err := k.read(segment)
	switch {
	case err != nil:
		return nil, err
	case slot[0] == 0:
		return nil, ErrNoKey
	case slot[0] == lostMagic:
		path, _ := k.fileOf(segment)
		return nil, &LostError{path}
	case slot[0] != slotMagic || slot[1] != slotVersion:
		return nil, ErrForged
	}
	key, err := unseal(k.own, slot[4:], slotName(segment))
	if err != nil {
		return nil, err
	}
	if aead, err = newAEAD(key); err != nil {
		return nil, err
	}
	k.keep(segment, aead)
	return aead, nil
}

func (k *Keyring) keep(segment uint64, aead cipher.AEAD) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for other := range k.ready {
		if len(k.ready) < maxOpen {
			break
		}
		delete(k.ready, other)
	}
	k.ready[segment] = aead
}

func newAEAD(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// seal appends nonce, ciphertext and tag. The nonces are random, which is safe for 2^32 values with one key: 4,000
// times the number that a session may have by default.
func seal(out []byte, key cipher.AEAD, value, name []byte) ([]byte, error) {
	if len(value) > 1<<36-32 {
		return nil, fmt.Errorf("a value of %d bytes is too large to be encrypted", len(value))
	}
	return key.Seal(out, nil, value, name), nil
}

func unseal(key cipher.AEAD, sealed, name []byte) ([]byte, error) {
	value, err := key.Open(nil, nil, sealed, name)
	if err != nil {
		return nil, ErrForged
	}
	return value, nil
}

func slotName(segment uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte("segment"), segment)
}

// fileOf returns the file with a segment's slot, and the slot's offset.
func (k *Keyring) fileOf(segment uint64) (path string, offset int64) {
	return k.fs.PathJoin(k.dir, fmt.Sprintf("%012d"+keysSuffix, segment/slotsInFile)), int64(segment%slotsInFile) * slotSize
}

// read returns a segment's slot, or a *LostError if the file ends before it.
func (k *Keyring) read(segment uint64) ([]byte, error) {
	slot := make([]byte, slotSize)
	path, offset := k.fileOf(segment)
	f, err := k.fs.Open(path)
	if oserror.IsNotExist(err) {
		return nil, &LostError{path}
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if n, err := f.ReadAt(slot, offset); errors.Is(err, io.EOF) && n < slotSize {
		return nil, &LostError{path}
	} else if err != nil && n < slotSize {
		return nil, err
	}
	return slot, nil
}

// write overwrites a segment's slot.
func (k *Keyring) write(segment uint64, slot []byte) error {
	if made, err := k.make(segment, slot); made || err != nil {
		return err
	}
	path, offset := k.fileOf(segment)
	f, err := k.fs.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(slot, offset)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// make makes the file of a segment's slot, with the slot in it, if there is no such file.
func (k *Keyring) make(segment uint64, slot []byte) (made bool, err error) {
	k.making.Lock()
	defer k.making.Unlock()
	path, offset := k.fileOf(segment)
	if _, err := k.fs.Stat(path); !oserror.IsNotExist(err) {
		return false, err
	}
	content := make([]byte, offset, offset+slotSize)
	for at := 0; at < len(content); at += slotSize {
		content[at] = lostMagic
	}
	return true, durable.Replace(k.fs, k.dir, k.fs.PathBase(path), string(append(content, slot...)))
}
