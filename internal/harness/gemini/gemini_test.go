package gemini_test

import (
	"testing"

	"github.com/contextd/contextd/internal/harness/gemini"
	"github.com/contextd/contextd/internal/harness/harnesstest"
)

func TestConformance(t *testing.T) {
	harnesstest.Run(t, harnesstest.Subject{Harness: gemini.Harness, Fixtures: harnesstest.Files(t, "testdata/*.in.json*")})
}

func TestCorpus(t *testing.T) {
	harnesstest.Run(t, harnesstest.Subject{Harness: gemini.Harness, Fixtures: harnesstest.Corpus(t, "../../..", "gemini-cli")})
}
