package opencode2_test

import (
	"testing"

	"github.com/contextd/contextd/internal/harness/harnesstest"
	"github.com/contextd/contextd/internal/harness/opencode2"
)

func TestConformance(t *testing.T) {
	harnesstest.Run(t, harnesstest.Subject{Harness: opencode2.Harness, Fixtures: harnesstest.Files(t, "testdata/*.in.json")})
}
