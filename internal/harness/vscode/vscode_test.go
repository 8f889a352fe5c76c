package vscode_test

import (
	"testing"

	"github.com/contextd/contextd/internal/harness/harnesstest"
	"github.com/contextd/contextd/internal/harness/vscode"
)

func TestConformance(t *testing.T) {
	harnesstest.Run(t, harnesstest.Subject{Harness: vscode.Harness, Fixtures: harnesstest.Files(t, "testdata/*.in.json*")})
}
