package pi_test

import (
	"testing"

	"github.com/contextd/contextd/internal/harness/harnesstest"
	"github.com/contextd/contextd/internal/harness/pi"
)

func suite(fixtures map[string][]byte) harnesstest.Harness {
	return harnesstest.Harness{
		Name: pi.Name, Read: pi.Read, Write: pi.Write, Fixtures: fixtures, Lined: true, Exempt: pi.NotKept,
	}
}

func TestConformance(t *testing.T) {
	harnesstest.Run(t, suite(harnesstest.Files(t, "testdata/*.in.jsonl")))
}

func TestCorpus(t *testing.T) {
	harnesstest.Run(t, suite(harnesstest.Corpus(t, "../../..", "pi")))
}
