package kimi_test

import (
	"testing"

	"github.com/contextd/contextd/internal/harness/harnesstest"
	"github.com/contextd/contextd/internal/harness/kimi"
)

func TestConformance(t *testing.T) {
	harnesstest.Run(t, harnesstest.Subject{Harness: kimi.Harness, Fixtures: harnesstest.Files(t, "testdata/*.in.jsonl"), Lined: true})
}
