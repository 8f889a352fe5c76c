package gemini_test

import (
	"testing"

	"github.com/contextd/contextd/internal/harness/gemini"
	"github.com/contextd/contextd/internal/harness/harnesstest"
)

func TestConformance(t *testing.T) {
	harnesstest.Run(t, harnesstest.Harness{Name: gemini.Name, Read: gemini.Read, Fixtures: harnesstest.Files(t, "testdata/*.in.json*")})
}

func TestCorpus(t *testing.T) {
	harnesstest.Run(t, harnesstest.Harness{Name: gemini.Name, Read: gemini.Read, Fixtures: harnesstest.Corpus(t, "../../..", "gemini-cli")})
}
