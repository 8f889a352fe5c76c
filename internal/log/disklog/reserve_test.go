package disklog

import (
	"testing"

	"github.com/contextd/contextd/internal/log/disklog/durable"
	"github.com/contextd/contextd/internal/log/logtest/crashdisk"
)

// TestReserveAfterPowerFailure: the reserve that a store says it has outlives a power failure, also where an earlier
// process made it and was killed before it was durable.
func TestReserveAfterPowerFailure(t *testing.T) {
	const piece = testReserve / reservePieces
	whole := string(make([]byte, piece))
	for name, found := range map[string]string{"none": "", "of a killed process": whole, "cut": whole[:piece/2], "too large": whole + whole} {
		t.Run(name, func(t *testing.T) {
			disk := crashdisk.New()
			s := openMem(t, disk)
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			of := room{disk: disk, dir: "log"}
			for i := range reservePieces {
				if found == "" {
					break
				}
				if err := durable.Write(disk, of.path(i), found, false); err != nil {
					t.Fatal(err)
				}
			}
			s, err := Open("log", Options{FS: disk, ReserveBytes: testReserve})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}()
			if got := s.Disk().Reserve; got != testReserve {
				t.Errorf("the reserve is %d bytes", got)
			}
			for seed := range uint64(8) {
				left := disk.Crash(seed)
				for i := range reservePieces {
					if info, err := left.Stat(of.path(i)); err != nil || info.Size() != piece {
						t.Fatalf("seed %d: piece %d is %v, %v", seed, i, info, err)
					}
				}
			}
		})
	}
}
