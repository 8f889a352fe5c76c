package disklog

import (
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/contextd/contextd/internal/log/disklog/durable"
)

// The inventory's file has two slots, of which the newest valid one counts.
const (
	inventoryFile  = "INVENTORY"
	inventoryMagic = "contextd-inventory 1"
	slotBytes      = 4096
	slots          = 2
	// maxCounted is the most log files in a slot. A store has about five.
	maxCounted = 64
)

// extent describes a file that only grows: its first length bytes are durable, and sum is their checksum.
type extent struct {
	number uint64
	length int64
	sum    uint32
}

// counted has what the next opening of the store must find.
type counted struct {
	generation uint64
	// manifest is the manifest in force. Its number is 0 until there is a database.
	manifest extent
	logs     map[uint64]extent
}

// inventory records, outside the database, what a later opening must find. Pebble itself mistakes a truncated
// manifest for a shorter one, and a missing or truncated log file for one that was never written.
//
// It never claims what a crash could take back, whatever part of the record reached the disk. A length is claimed
// after it was synced. A log file's claim is withdrawn, durably and in both slots, before the file is removed. If the
// manifest in force is not the claimed one, a program that keeps no inventory may have used the store since. Then
// claims hold only for log files that the manifest would still replay.
type inventory struct {
	disk vfs.FS // below the halting
	dir  string // of the database

	mu   sync.Mutex
	file vfs.File
	now  counted
	// synced are the durable extents of this process's manifests. next is the manifest that a new marker names, until
	// the marker is durable.
	synced map[uint64]extent
	next   uint64
}

// kindOf recognises a log file or a manifest, and its number, by the name.
func kindOf(name string) (isLog, isManifest bool, number uint64) {
	if digits, found := strings.CutSuffix(name, ".log"); found {
		n, err := strconv.ParseUint(digits, 10, 64)
		return err == nil, false, n
	}
	n, ok := manifestNumber(name)
	return false, ok, n
}

func manifestNumber(name string) (uint64, bool) {
	digits, found := strings.CutPrefix(name, "MANIFEST-")
	if !found {
		return 0, false
	}
	n, err := strconv.ParseUint(digits, 10, 64)
	return n, err == nil
}

// markedManifest returns the manifest that a marker file's name names, and the marker's iteration; ok is false for
// other names.
func markedManifest(name string) (iteration, number uint64, ok bool) {
	rest, found := strings.CutPrefix(name, manifestMarker)
	if !found {
		return 0, 0, false
	}
	turn, target, found := strings.Cut(rest, ".")
	iteration, err := strconv.ParseUint(turn, 10, 64)
	number, ok = manifestNumber(target)
	return iteration, number, found && err == nil && ok
}

const (
	markerPrefix   = "marker."
	manifestMarker = markerPrefix + "manifest."
	formatMarker   = markerPrefix + "format-version."
)

// exists reports whether there is a database.
func (v *inventory) exists() bool {
	if v == nil {
		return true // a store that is opened only to be read
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now.manifest.number > 0
}

// own returns the base name of a file of the database; false for any other.
func (v *inventory) own(path string) (string, bool) {
	return v.disk.PathBase(path), v.disk.PathDir(path) == v.dir
}

// made is called for each new file. It records the manifest that a new marker names.
func (v *inventory) made(path string) {
	name, own := v.own(path)
	if _, number, ok := markedManifest(name); own && ok {
		v.mu.Lock()
		defer v.mu.Unlock()
		v.next = number
	}
}

// wrote claims the first length bytes of a file, which are durable, if it is a log or a manifest.
func (v *inventory) wrote(path string, length int64, sum uint32) error {
	name, own := v.own(path)
	isLog, isManifest, number := kindOf(name)
	if !own || !isLog && !isManifest {
		return nil
	}
	at := extent{number: number, length: length, sum: sum}
	v.mu.Lock()
	defer v.mu.Unlock()
	if isLog {
		// This write is not synced, because a crash may lose the claim, but no event.
		v.now.logs[number] = at
		return v.write(false)
	}
	v.synced[number] = at
	if number != v.now.manifest.number {
		return nil
	}
	v.now.manifest = at
	return v.write(true)
}

// dirSynced is called when the names of all files in a directory, including markers, are durable.
func (v *inventory) dirSynced(path string) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if path != v.dir || v.next == 0 {
		return nil
	}
	at, ok := v.synced[v.next]
	if !ok {
		at.number = v.next
	}
	v.now.manifest, v.next = at, 0
	clear(v.synced)
	v.synced[at.number] = at
	return v.write(true)
}

// forget withdraws the claim for a file that is about to be removed, renamed or overwritten.
func (v *inventory) forget(path string) error {
	name, own := v.own(path)
	isLog, _, number := kindOf(name)
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, claimed := v.now.logs[number]; !own || !isLog || !claimed {
		return nil
	}
	delete(v.now.logs, number)
	return v.write(true)
}

// write writes the inventory into one slot, or, with durably, into both and syncs it: then a torn slot cannot bring
// an older claim back. mu is held.
func (v *inventory) write(durably bool) error {
	if v.file == nil {
		return nil
	}
	times := 1
	if durably {
		times = slots
	}
	for range times {
		v.now.generation++
		if _, err := v.file.WriteAt(v.now.encode(), int64(v.now.generation%slots)*slotBytes); err != nil {
			return err
		}
	}
	if durably {
		return v.file.Sync()
	}
	return nil
}

// encode returns a slot's text. It is called for every sync for which an append waits, so it does not use fmt.
func (c *counted) encode() []byte {
	b := make([]byte, 0, 512)
	b = strconv.AppendUint(append(b, inventoryMagic+"\ngeneration "...), c.generation, 10)
	b = appendExtent(append(b, "\nmanifest "...), c.manifest)
	numbers := slices.AppendSeq(make([]uint64, 0, maxCounted), maps.Keys(c.logs))
	slices.Sort(numbers)
	for _, n := range numbers[max(0, len(numbers)-maxCounted):] {
		b = appendExtent(append(b, "log "...), c.logs[n])
	}
	return appendSum(append(b, "crc32c "...), crc32.Checksum(b, castagnoli))
}

// both returns the content of a whole file.
func (c *counted) both() string {
	both := make([]byte, slots*slotBytes)
	for range slots {
		c.generation++
		copy(both[c.generation%slots*slotBytes:], c.encode())
	}
	return string(both)
}

// MakeInventory makes an inventory of a store that was restored from a backup, so that later losses are noticed. If
// something is missing already, it makes none. No other process may have the store open.
func MakeInventory(disk vfs.FS, dir string) error {
	s := &Store{opts: Options{FS: disk}.withDefaults(), logger: slog.New(slog.DiscardHandler)}
	s.dir = disk.PathJoin(dir, dataDir)
	now, err := s.recall(dir)
	if _, missing := errors.AsType[*MissingError](err); missing {
		return nil
	}
	if err != nil {
		return err
	}
	return durable.Write(disk, disk.PathJoin(dir, inventoryFile), now.both(), true)
}

func appendExtent(b []byte, e extent) []byte {
	b = append(strconv.AppendUint(b, e.number, 10), ' ')
	b = append(strconv.AppendInt(b, e.length, 10), ' ')
	return appendSum(b, e.sum)
}

// appendSum ends a line with a checksum.
func appendSum(b []byte, sum uint32) []byte {
	return append(hex.AppendEncode(b, binary.BigEndian.AppendUint32(nil, sum)), '\n')
}

// parseCounted reads a slot. Bytes after the checksum are the rest of an older, longer text.
func parseCounted(slot []byte) (c counted, ok bool) {
	c.logs = map[uint64]extent{}
	var lines []string
	covered := 0
	for line := range strings.Lines(string(slot)) {
		if sum, found := strings.CutPrefix(line, "crc32c "); found {
			ok = sum == fmt.Sprintf("%08x\n", crc32.Checksum(slot[:covered], castagnoli))
			break
		}
		covered += len(line)
		lines = append(lines, line)
	}
	if !ok || len(lines) < 3 || lines[0] != inventoryMagic+"\n" {
		return c, false
	}
	if _, err := fmt.Sscanf(lines[1], "generation %d\n", &c.generation); err != nil {
		return c, false
	}
	m := &c.manifest
	if _, err := fmt.Sscanf(lines[2], "manifest %d %d %x\n", &m.number, &m.length, &m.sum); err != nil {
		return c, false
	}
	for _, line := range lines[3:] {
		var l extent
		if _, err := fmt.Sscanf(line, "log %d %d %x\n", &l.number, &l.length, &l.sum); err != nil {
			return c, false
		}
		c.logs[l.number] = l
	}
	return c, true
}

// readInventory returns the newest valid slot. found says whether there is a file, valid whether it has a valid slot.
func readInventory(disk vfs.FS, dir string) (c counted, found, valid bool, err error) {
	content, err := durable.Read(disk, disk.PathJoin(dir, inventoryFile), slots*slotBytes)
	switch {
	case oserror.IsNotExist(err):
		return counted{}, false, false, nil
	case err != nil:
		return counted{}, false, false, fmt.Errorf("read %s: %w", inventoryFile, err)
	}
	for at := 0; at < len(content); at += slotBytes {
		slot, ok := parseCounted([]byte(content[at:min(at+slotBytes, len(content))]))
		if ok && (!valid || slot.generation > c.generation) {
			c, valid = slot, true
		}
	}
	return c, true, valid, nil
}

// openInventory writes an inventory with what is known now and keeps it open.
func openInventory(disk vfs.FS, dir string, now counted) (*inventory, error) {
	v := &inventory{disk: disk, dir: disk.PathJoin(dir, dataDir), now: now, synced: map[uint64]extent{}}
	if v.now.logs == nil {
		v.now.logs = map[uint64]extent{}
	}
	v.synced[now.manifest.number] = now.manifest
	if err := durable.Replace(disk, dir, inventoryFile, v.now.both()); err != nil {
		return nil, err
	}
	file, err := disk.OpenReadWrite(disk.PathJoin(dir, inventoryFile), vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	v.file = file
	return v, nil
}

// close makes the inventory durable, unless the disk may not be written to.
func (v *inventory) close(durably bool) error {
	if v == nil {
		return nil
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	var err error
	if durably {
		err = v.write(true)
	}
	err = errors.Join(err, v.file.Close())
	v.file = nil
	return err
}
