package daemon

// MemoryInUse is what calls hold of each budget of memory, in bytes; those of which nothing
// is held are omitted.
func (d *Daemon) MemoryInUse() map[string]int64 {
	held := map[string]int64{}
	for name, b := range d.budgets() {
		if n := b.Used(); n != 0 {
			held[name] = n
		}
	}
	return held
}
