package crashdisk

import (
	"maps"
	"math/rand/v2"
	"path"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// How much of the unsynced changes a power failure keeps. Each value is also a seed.
const (
	None = iota
	Half
	All
	Newest // of the changes of directories: only the last one
	kinds
)

// Crash returns the disk after a power failure. The seed decides which unsynced changes are kept: of 4 seeds in a
// row, one keeps none and one all.
func (d *Disk) Crash(seed uint64) *Disk {
	r := rand.New(rand.NewPCG(seed, 0))
	kind := int(seed % kinds)
	left := d.Kill()
	for i, c := range left.changes {
		if len(c.unsynced) == 0 || kind == All || kind == Half && r.IntN(2) == 0 || kind == Newest && i == len(left.changes)-1 {
			for _, e := range c.edits {
				e.apply(e.dir.kept)
			}
		}
	}
	left.changes, left.MemFS = nil, vfs.NewMem()
	left.fill(left.root, "/", func(n *node) {
		if n.now != nil {
			n.now = maps.Clone(n.kept)
			return
		}
		n.data = n.left(kind, r)
		n.synced, n.cut = slices.Clone(n.data), false
	})
	return left
}

// Kill returns the disk as the next process finds it if this one is killed: everything is there, but unsynced changes
// may still be lost later.
func (d *Disk) Kill() *Disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	copies := map[*node]*node{}
	var copyOf func(n *node) *node
	entries := func(of map[string]*node) map[string]*node {
		if of == nil {
			return nil
		}
		all := map[string]*node{}
		for name, n := range of {
			all[name] = copyOf(n)
		}
		return all
	}
	copyOf = func(n *node) *node {
		if n == nil || copies[n] != nil {
			return copies[n]
		}
		c := &node{data: slices.Clone(n.data), synced: slices.Clone(n.synced), cut: n.cut}
		copies[n] = c
		c.now, c.kept = entries(n.now), entries(n.kept)
		return c
	}
	killed := &Disk{MemFS: vfs.NewMem(), root: copyOf(d.root)}
	for _, c := range d.changes {
		copied := &change{}
		for _, e := range c.edits {
			copied.edits = append(copied.edits, edit{copyOf(e.dir), e.name, copyOf(e.node)})
		}
		for _, dir := range c.unsynced {
			copied.unsynced = append(copied.unsynced, copyOf(dir))
		}
		killed.changes = append(killed.changes, copied)
	}
	killed.fill(killed.root, "/", func(*node) {})
	return killed
}

// fill writes a file or a directory, after a change of it, to the file system that programs see.
func (d *Disk) fill(n *node, at string, change func(*node)) {
	change(n)
	if n.now == nil {
		f, err := d.MemFS.Create(at, vfs.WriteCategoryUnspecified)
		if err == nil {
			_, err = f.Write(slices.Clone(n.data))
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			panic(err) // memory does not fail
		}
		return
	}
	if err := d.MemFS.MkdirAll(at, 0o700); err != nil {
		panic(err)
	}
	for _, name := range slices.Sorted(maps.Keys(n.now)) {
		d.fill(n.now[name], path.Join(at, name), change)
	}
}

// left returns what remains of a file.
func (n *node) left(kind int, r *rand.Rand) []byte {
	const block = 4096
	if kind == Newest {
		kind = r.IntN(Newest)
	}
	switch kind {
	case None:
		return slices.Clone(n.synced)
	case All:
		return slices.Clone(n.data)
	}
	var left []byte
	if !n.cut || r.IntN(2) == 0 {
		left = slices.Clone(n.synced)
	}
	for at := 0; at < len(n.data); at += block {
		if r.IntN(2) == 0 {
			end := min(at+block, len(n.data))
			left = append(left, make([]byte, max(0, end-len(left)))...)
			copy(left[at:end], n.data[at:end])
		}
	}
	return left
}
