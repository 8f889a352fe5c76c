package cli

import (
	"testing"

	"github.com/contextd/contextd/internal/log/disklog/durable"
	"github.com/contextd/contextd/internal/log/logtest/crashdisk"
)

// TestSecretOutlivesAPowerFailure: what a store is encrypted to is durable before the command says that it is there.
func TestSecretOutlivesAPowerFailure(t *testing.T) {
	disk := crashdisk.New()
	if err := durable.MakeDir(disk, "etc"); err != nil {
		t.Fatal(err)
	}
	if err := fillSecret(disk, "etc/key", "secret\n"); err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(16) {
		if got, err := durable.Read(disk.Crash(seed), "etc/key", 100); got != "secret\n" || err != nil {
			t.Errorf("seed %d: %q, %v", seed, got, err)
		}
	}
}
