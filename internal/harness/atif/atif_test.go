package atif_test

import (
	"testing"

	"github.com/contextd/contextd/internal/harness/atif"
	"github.com/contextd/contextd/internal/harness/harnesstest"
)

func TestConformance(t *testing.T) {
	harnesstest.Run(t, harnesstest.Subject{Harness: atif.Harness, Fixtures: harnesstest.Files(t, "testdata/*.in.json")})
}
