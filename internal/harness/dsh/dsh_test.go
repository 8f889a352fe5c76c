package dsh_test

import (
	"testing"

	"github.com/contextd/contextd/internal/harness/dsh"
	"github.com/contextd/contextd/internal/harness/harnesstest"
)

func TestConformance(t *testing.T) {
	harnesstest.Run(t, harnesstest.Subject{Harness: dsh.Harness, Fixtures: harnesstest.Files(t, "testdata/*.in.jsonl"), Lined: true})
}
