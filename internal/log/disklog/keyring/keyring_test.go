package keyring_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"filippo.io/age"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/contextd/contextd/internal/log/disklog/keyring"
	"github.com/contextd/contextd/internal/log/logtest/crashdisk"
)

func identity(t testing.TB) age.Identity {
	t.Helper()
	i, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func open(t testing.TB, fs vfs.FS, identities ...age.Identity) *keyring.Keyring {
	t.Helper()
	k, err := keyring.Open(fs, "keys", identities)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func seal(t testing.TB, k *keyring.Keyring, segment uint64, value string) []byte {
	t.Helper()
	sealed, err := k.Seal([]byte("head"), segment, []byte("name"), []byte(value))
	if err != nil {
		t.Fatal(err)
	}
	rest, found := bytes.CutPrefix(sealed, []byte("head"))
	if !found || len(rest) != keyring.SealedSize(len(value)) {
		t.Fatalf("%d bytes became %q", len(value), sealed)
	}
	return rest
}

func TestValuesComeBack(t *testing.T) {
	fs, operator := vfs.NewMem(), identity(t)
	k := open(t, fs, operator)
	segments := []uint64{1, 2, 4095, 4096, 1 << 40}
	sealed := map[uint64][]byte{}
	for _, segment := range segments {
		if err := k.Create(segment); err != nil {
			t.Fatal(err)
		}
		sealed[segment] = seal(t, k, segment, fmt.Sprint("value of ", segment))
	}
	for _, again := range []*keyring.Keyring{k, open(t, fs, operator)} {
		for _, segment := range segments {
			got, err := again.Unseal(segment, []byte("name"), sealed[segment])
			if want := fmt.Sprint("value of ", segment); err != nil || string(got) != want {
				t.Errorf("segment %d: %q, %v", segment, got, err)
			}
		}
		if again.ID() != k.ID() {
			t.Errorf("the id became %s", again.ID())
		}
	}
}

func TestNothingElseOpensAValue(t *testing.T) {
	k := open(t, vfs.NewMem(), identity(t))
	for _, segment := range []uint64{1, 2} {
		if err := k.Create(segment); err != nil {
			t.Fatal(err)
		}
	}
	sealed := seal(t, k, 1, "value")
	flipped := bytes.Clone(sealed)
	flipped[len(flipped)/2] ^= 1
	for name, open := range map[string]func() ([]byte, error){
		"another name":    func() ([]byte, error) { return k.Unseal(1, []byte("other"), sealed) },
		"another segment": func() ([]byte, error) { return k.Unseal(2, []byte("name"), sealed) },
		"a flipped bit":   func() ([]byte, error) { return k.Unseal(1, []byte("name"), flipped) },
		"a short value":   func() ([]byte, error) { return k.Unseal(1, []byte("name"), sealed[:5]) },
	} {
		if got, err := open(); !errors.Is(err, keyring.ErrForged) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if _, err := k.Unseal(3, []byte("name"), sealed); !errors.Is(err, keyring.ErrNoKey) {
		t.Errorf("a segment without a key: %v", err)
	}
}

func TestDestroyedKeysAreGone(t *testing.T) {
	fs, operator := vfs.NewMem(), identity(t)
	k := open(t, fs, operator)
	for _, segment := range []uint64{7, 8} {
		if err := k.Create(segment); err != nil {
			t.Fatal(err)
		}
	}
	gone, kept := seal(t, k, 7, "gone"), seal(t, k, 8, "kept")
	slots := contents(t, fs, "keys/000000000000.keys")
	if err := k.Destroy(7); err != nil {
		t.Fatal(err)
	}
	if now := contents(t, fs, "keys/000000000000.keys"); bytes.Contains(now, slots[7*64:8*64]) || !bytes.Contains(now, slots[8*64:9*64]) {
		t.Error("the file holds the key still, or another is gone")
	}
	for _, again := range []*keyring.Keyring{k, open(t, fs, operator)} {
		if _, err := again.Unseal(7, []byte("name"), gone); !errors.Is(err, keyring.ErrNoKey) {
			t.Errorf("destroyed: %v", err)
		}
		if got, err := again.Unseal(8, []byte("name"), kept); err != nil || string(got) != "kept" {
			t.Errorf("its neighbour: %q, %v", got, err)
		}
	}
	// A number that is given again gets another key.
	if err := k.Create(7); err != nil {
		t.Fatal(err)
	}
	if _, err := k.Unseal(7, []byte("name"), gone); !errors.Is(err, keyring.ErrForged) {
		t.Errorf("under a new key: %v", err)
	}
}

// A key that is lost with its file is not said to be destroyed, also after another file was made.
func TestLostKeysAreNotDestroyedOnes(t *testing.T) {
	const file = "keys/000000000000.keys"
	for name, lose := range map[string]func(*testing.T, vfs.FS, *keyring.Keyring){
		"missing": func(*testing.T, vfs.FS, *keyring.Keyring) {},
		"made a second time": func(t *testing.T, _ vfs.FS, k *keyring.Keyring) {
			if err := k.Create(9); err != nil {
				t.Fatal(err)
			}
		},
		"a key destroyed that was in it": func(t *testing.T, _ vfs.FS, k *keyring.Keyring) {
			if err := k.Destroy(8); err != nil {
				t.Fatal(err)
			}
		},
		"cut": func(t *testing.T, fs vfs.FS, _ *keyring.Keyring) {
			f, err := fs.Create(file, vfs.WriteCategoryUnspecified)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write(make([]byte, 64*7+10)); err != nil {
				t.Fatal(err)
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			fs, operator := vfs.NewMem(), identity(t)
			k := open(t, fs, operator)
			for _, segment := range []uint64{7, 8} {
				if err := k.Create(segment); err != nil {
					t.Fatal(err)
				}
			}
			value := seal(t, k, 7, "value")
			if err := fs.Remove(file); err != nil {
				t.Fatal(err)
			}
			again := open(t, fs, operator)
			lose(t, fs, again)
			_, err := again.Unseal(7, []byte("name"), value)
			if lost, ok := errors.AsType[*keyring.LostError](err); !ok || lost.File != file || !errors.Is(err, keyring.ErrNoKey) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func contents(t testing.TB, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestTheOperatorsKeyIsReplaced(t *testing.T) {
	fs := vfs.NewMem()
	first, second := identity(t), identity(t)
	hybrid, err := age.GenerateHybridIdentity()
	if err != nil {
		t.Fatal(err)
	}
	k := open(t, fs, first)
	if err := k.Create(1); err != nil {
		t.Fatal(err)
	}
	sealed := seal(t, k, 1, "value")
	for _, keys := range [][]age.Identity{{second, first}, {second}, {hybrid, first, second}, {hybrid}} {
		if got, err := open(t, fs, keys...).Unseal(1, []byte("name"), sealed); err != nil || string(got) != "value" {
			t.Errorf("%q, %v", got, err)
		}
	}
	var wrong *keyring.KeyError
	for _, keys := range [][]age.Identity{{first}, {second, first}, nil} {
		if _, err := keyring.Open(fs, "keys", keys); !errors.As(err, &wrong) {
			t.Errorf("with %d keys that were replaced: %v", len(keys), err)
		}
	}
}

func TestADamagedMasterIsSaid(t *testing.T) {
	fs, operator := vfs.NewMem(), identity(t)
	open(t, fs, operator)
	f, err := fs.OpenReadWrite("keys/master.age", vfs.WriteCategoryUnspecified)
	if err != nil {
		t.Fatal(err)
	}
	whole := contents(t, fs, "keys/master.age")
	if _, err := f.WriteAt([]byte{whole[len(whole)-1] ^ 1}, int64(len(whole)-1)); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	var damaged *keyring.KeyError
	if _, err := keyring.Open(fs, "keys", []age.Identity{operator}); !errors.As(err, &damaged) {
		t.Error(err)
	}
}

func TestManyKeysAreHeldWithinBounds(t *testing.T) {
	k := open(t, vfs.NewMem(), identity(t))
	if err := k.Create(0); err != nil {
		t.Fatal(err)
	}
	sealed := seal(t, k, 0, "value")
	for segment := range uint64(5000) {
		if err := k.Create(segment + 1); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := k.Unseal(0, []byte("name"), sealed); err != nil || string(got) != "value" {
		t.Errorf("%q, %v", got, err)
	}
}

func BenchmarkSeal(b *testing.B) {
	k := open(b, vfs.NewMem(), identity(b))
	if err := k.Create(1); err != nil {
		b.Fatal(err)
	}
	value, out := make([]byte, 1<<10), make([]byte, 0, 2<<10)
	b.SetBytes(int64(len(value)))
	for b.Loop() {
		if _, err := k.Seal(out, 1, []byte("name"), value); err != nil {
			b.Fatal(err)
		}
	}
}

// crowdFS lets those who look for a missing file of keys wait a little for others who do.
type crowdFS struct {
	vfs.FS
	missing atomic.Int32
}

// Stat describes a file.
func (fs *crowdFS) Stat(name string) (vfs.FileInfo, error) {
	info, err := fs.FS.Stat(name)
	if err != nil && strings.HasSuffix(name, ".keys") {
		fs.missing.Add(1)
		for i := 0; i < 10_000 && fs.missing.Load() < firstKeys; i++ {
			runtime.Gosched()
		}
	}
	return info, err
}

const firstKeys = 8

// TestFirstKeysAtOnce makes the first keys of a file at the same time, as sessions that begin together do.
func TestFirstKeysAtOnce(t *testing.T) {
	operator := identity(t)
	for range 10 {
		fs := &crowdFS{FS: vfs.NewMem()}
		k := open(t, fs, operator)
		var all sync.WaitGroup
		for segment := range uint64(firstKeys) {
			all.Go(func() {
				if err := k.Create(segment); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		again := open(t, fs, operator)
		for segment := range uint64(firstKeys) {
			if err := again.Check(segment); err != nil {
				t.Fatalf("segment %d: %v", segment, err)
			}
		}
	}
}

// TestPowerFailure has the power fail after any change of the disk: keys that were made stay, also while the operator's
// key is replaced, and one that was destroyed stays destroyed.
func TestPowerFailure(t *testing.T) {
	disk, operator, next := crashdisk.New(), identity(t), identity(t)
	had, destroyed := []uint64{}, false
	check := func(string) {
		for seed := range uint64(8) {
			left := open(t, disk.Crash(seed), next, operator)
			for _, segment := range had {
				if err := left.Check(segment); err != nil {
					t.Errorf("with %d keys, seed %d: segment %d: %v", len(had), seed, segment, err)
				}
			}
			if destroyed && left.Has(1) {
				t.Errorf("seed %d: a destroyed key is back", seed)
			}
		}
	}
	disk.OnChange(check)
	k := open(t, disk, operator)
	for _, segment := range []uint64{1, 2, 4096, 8195} {
		if err := k.Create(segment); err != nil {
			t.Fatal(err)
		}
		had = append(had, segment)
		check("")
	}
	had = had[1:]
	if err := k.Destroy(1); err != nil {
		t.Fatal(err)
	}
	destroyed = true
	check("")
	open(t, disk, next, operator)
	check("")
}
