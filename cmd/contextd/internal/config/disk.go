package config

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"
)

// Disk says how the file system of StoreDisk is watched.
type Disk struct {
	// Reserve is how many bytes are reserved for when it is full. Without a reserve (0), a full disk stops
	// the store.
	Reserve uint64
	// Low is the number of free bytes below which the daemon warns.
	Low uint64
	// SlowSync is how long a sync may take before the daemon warns.
	SlowSync time.Duration
}

func defaultDisk() Disk {
	return Disk{Reserve: 128 << 20, Low: 256 << 20, SlowSync: time.Second}
}

func (d *Disk) bind(f *pflag.FlagSet) {
	f.Var(sizeValue(&d.Reserve), "disk-reserve", "disk that is set aside for when it is full, an eighth of it at most; 0 for none")
	f.Var(sizeValue(&d.Low), "disk-low", "free bytes below which the daemon warns")
	f.DurationVar(&d.SlowSync, "slow-sync", d.SlowSync, "how long a sync of the disk may take without a warning")
}

func (d *Disk) validate() error {
	if d.SlowSync <= 0 {
		return fmt.Errorf("slow_sync must be greater than 0")
	}
	return nil
}
