package cli

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/spf13/cobra"
)

// TestReportOfAnInterrupt: an interrupt is reported as one, but a call that was cancelled by others is not.
func TestReportOfAnInterrupt(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	cmd := &cobra.Command{}
	cmd.SetContext(ctx)
	report := func() string {
		var stderr bytes.Buffer
		Program{Stderr: &stderr}.report(cmd, fmt.Errorf("%w: import again to go on", context.Canceled))
		return stderr.String()
	}
	if got := report(); got != "contextd: context canceled: import again to go on\n" {
		t.Errorf("before an interrupt: %q", got)
	}
	interrupt()
	if got := report(); got != "contextd: interrupted: import again to go on\n" {
		t.Errorf("after an interrupt: %q", got)
	}
}

// TestReportOfADaemonThatTakesNoWork: a running daemon that refuses work is not reported as unreachable.
func TestReportOfADaemonThatTakesNoWork(t *testing.T) {
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	var stderr bytes.Buffer
	code := Program{Stderr: &stderr}.report(cmd, errNotServing)
	if want := "contextd: the daemon is there and takes no work; its log says why\n"; stderr.String() != want || code != ExitUnavailable {
		t.Errorf("exit %d, %q; want %q", code, stderr.String(), want)
	}
}
