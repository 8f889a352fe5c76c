package disklog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"filippo.io/age"
	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog/durable"
	"github.com/contextd/contextd/internal/log/disklog/keyring"
)

// Encryption has the keys with which values are encrypted before the database gets them.
type Encryption struct {
	// Identities are the operator's keys: the current one, then earlier ones.
	Identities []age.Identity
	// Dir is the directory of the segments' keys; empty means the directory keys in the store's own. Do not copy it
	// with the store: whoever has both copies can read sessions that were deleted since.
	Dir string
}

const (
	// encryptionFile holds the id of the keyring with the store's keys.
	encryptionFile  = "ENCRYPTION"
	encryptionName  = "contextd-encryption "
	encryptionMagic = encryptionName + "1"

	keysDir = "keys"
)

// readEncryption returns the id of the keyring of a store's keys; empty if the store is not encrypted.
func readEncryption(fs vfs.FS, dir string) (keyringID string, err error) {
	text, err := durable.Read(fs, fs.PathJoin(dir, encryptionFile), smallFile)
	if oserror.IsNotExist(err) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("read %s: %w", encryptionFile, err)
	}
	first, rest, _ := strings.Cut(text, "\n")
	number, _ := strings.CutPrefix(first, encryptionName)
	if version, err := strconv.Atoi(number); err == nil && version != sealedVersion {
		return "", &FormatError{Dir: dir, Version: version, Reason: fmt.Sprintf("its %s is of version %d, and this program knows version %d: use the program that wrote it, or a newer one", encryptionFile, version, sealedVersion)}
	}
	keyringID, found := strings.CutPrefix(strings.TrimSpace(rest), "keyring ")
	if first != encryptionMagic || !found || !keyring.IsID(keyringID) {
		return "", &FormatError{Dir: dir, Reason: encryptionFile + " is damaged"}
	}
	return keyringID, nil
}

// openKeys opens the store's keyring, or makes it if the store becomes encrypted now. It refuses a store whose keys
// are missing.
func (s *Store) openKeys(dir string) error {
	known, err := readEncryption(s.opts.FS, dir)
	switch {
	case err != nil:
		return err
	case known != "" && s.opts.Encryption == nil:
		return errNoKeyGiven(dir)
	case s.opts.Encryption == nil, s.opts.ReadOnly && known == "":
		return nil
	}
	at := keysAt(s.opts.FS, dir, s.opts.Encryption.Dir)
	if known != "" {
		master := s.opts.FS.PathJoin(at, keyring.MasterFile)
		if _, err := s.opts.FS.Stat(master); oserror.IsNotExist(err) {
			return &FormatError{Dir: dir, Reason: fmt.Sprintf("it is encrypted, and %s, without which its keys cannot be read, does not exist", master)}
		}
	} else if err := refuseUsedKeys(s.opts, dir, encryptionFile+" of this one is lost", "repair"); err != nil {
		return err
	}
	if s.keys, err = s.openKeyring(at); err != nil {
		return err
	}
	switch {
	case known == "":
		return durable.Replace(s.opts.FS, dir, encryptionFile, fmt.Sprintf("%s\nkeyring %s\n", encryptionMagic, s.keys.ID()))
	case known != s.keys.ID():
		return errOtherKeys(dir, at)
	}
	return nil
}

// refuseUsedKeys returns an error for keys that cannot be those of a store that is not encrypted yet. lost says what
// must have happened if they are, and remedy is the command that helps.
func refuseUsedKeys(opts Options, dir, lost, remedy string) error {
	if opts.Encryption == nil || opts.takeKeys {
		return nil
	}
	at := keysAt(opts.FS, dir, opts.Encryption.Dir)
	used, err := keyring.Used(opts.FS, at)
	if err == nil && used {
		err = &FormatError{Dir: dir, Reason: fmt.Sprintf("the keys in %s are of another store, or %s: give it a directory of keys of its own, or try contextd %s", at, lost, remedy)}
	}
	return err
}

func errNoKeyGiven(dir string) error {
	return &FormatError{Dir: dir, Reason: "it is encrypted, and no key was given"}
}

func errOtherKeys(dir, keys string) error {
	return &FormatError{Dir: dir, Reason: fmt.Sprintf("the keys in %s are of another store, or %s is damaged", keys, encryptionFile)}
}

// keysAt returns the directory of a store's keys; set is Encryption.Dir.
func keysAt(fs vfs.FS, dir, set string) string {
	if set != "" {
		return set
	}
	return fs.PathJoin(dir, keysDir)
}

// openKeyring opens the keyring. If the store is opened only to be read, it does not encrypt the keyring to the
// operator's newest key.
func (s *Store) openKeyring(at string) (keys *keyring.Keyring, err error) {
	all := s.opts.Encryption.Identities
	if !s.opts.ReadOnly {
		// The process that made the directory, or a file in it, may have been killed before that was durable.
		if err := errors.Join(durable.MakeDir(s.opts.FS, at), durable.SyncDir(s.opts.FS, at)); err != nil {
			return nil, err
		}
		return keyring.Open(s.disk, at, all)
	}
	for i := range all {
		if keys, err = keyring.Open(s.opts.FS, at, all[i:i+1]); err == nil {
			break
		}
	}
	return keys, err
}

// newSegment returns the number of a new segment. In an encrypted store it skips numbers that have a key: after a
// restore from a backup, the life of the store after that backup may have used them, and to destroy one segment's key
// must not destroy another's.
func (s *Store) newSegment() segmentID {
	for {
		segment := s.lastSegment.Add(1)
		if s.keys == nil || !s.keys.Has(segment) {
			return segmentID(segment)
		}
	}
}

// A sealed value is: magic, version, segment, and the framed value as sealed by the keyring. The value's key in the
// database is its associated data.
const (
	sealedMagic   = 'E'
	sealedVersion = 1
	sealedHead    = 2 + 8
)

// set adds a value to a batch, sealed if the store is encrypted. With the first value of a segment it makes the
// segment's key, which is durable before the value can be.
func (s *Store) set(batch *pebble.Batch, key []byte, segment segmentID, value []byte) error {
	if s.keys == nil {
		return batch.Set(key, value, nil)
	}
	sealed := make([]byte, 0, sealedHead+keyring.SealedSize(len(value)))
	sealed = binary.BigEndian.AppendUint64(append(sealed, sealedMagic, sealedVersion), uint64(segment))
	out, err := s.keys.Seal(sealed, uint64(segment), key, value)
	if errors.Is(err, keyring.ErrNoKey) {
		if err = s.keys.Create(uint64(segment)); err == nil {
			out, err = s.keys.Seal(sealed, uint64(segment), key, value)
		}
	}
	if err != nil {
		return s.keyError(key, err)
	}
	return batch.Set(key, out, nil)
}

// isSealed reports whether a value is encrypted.
func isSealed(value []byte) bool { return len(value) > 0 && value[0] == sealedMagic }

// unsealed returns the framed value, decrypted if it is sealed: values that are older than the encryption are plain.
func (s *Store) unsealed(key, value []byte) ([]byte, error) {
	if !isSealed(value) {
		return value, nil
	}
	corrupt := func(reason string) error { return &eventlog.CorruptError{What: describeKey(key), Reason: reason} }
	switch {
	case len(value) < sealedHead:
		return nil, corrupt("it is shorter than an encrypted value")
	case value[1] != sealedVersion:
		return nil, corrupt(fmt.Sprintf("it is encrypted in version %d, this program knows %d", value[1], sealedVersion))
	case s.keys == nil:
		return nil, corrupt("it is encrypted, and the store is not")
	}
	plain, err := s.keys.Unseal(binary.BigEndian.Uint64(value[2:]), key, value[sealedHead:])
	if err != nil {
		return nil, s.keyError(key, err)
	}
	return plain, nil
}

func (s *Store) keyError(key []byte, err error) error {
	if errors.Is(err, keyring.ErrNoKey) || errors.Is(err, keyring.ErrForged) {
		return &eventlog.CorruptError{What: describeKey(key), Reason: err.Error()}
	}
	return s.fail("keys", err)
}

// valueOf returns the framed value at an iterator's position. It is valid until the iterator moves.
func (s *Store) valueOf(it *pebble.Iterator) ([]byte, error) {
	value, err := it.ValueAndErr()
	if err != nil {
		return nil, s.fail(describeKey(it.Key()), err)
	}
	return s.unsealed(it.Key(), value)
}

// destroyKeys destroys the keys of those of the segments that no session shows any more. After that nobody can
// decrypt them, in any copy of the store.
func (s *Store) destroyKeys(segments []segmentID) error {
	if s.keys == nil {
		return nil
	}
	for _, segment := range segments {
		shares, err := s.shares(segment, "", func(link) bool { return true })
		if _, corrupt := errors.AsType[*eventlog.CorruptError](err); corrupt || len(shares) > 0 {
			continue // a session shows it, or damage hides whether one does
		}
		if err != nil {
			return err
		}
		if err := s.keys.Destroy(uint64(segment)); err != nil {
			return s.fail("keys", err)
		}
	}
	return nil
}
