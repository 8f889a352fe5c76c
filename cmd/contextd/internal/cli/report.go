package cli

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	contextdclient "github.com/contextd/contextd/client"
	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/internal/log/disklog"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// report writes an error and what to do about it, and returns the exit code.
func (p Program) report(cmd *cobra.Command, err error) int {
	text, hint := explainError(cmd, err)
	if cmd.Context().Err() != nil {
		text = strings.ReplaceAll(text, context.Canceled.Error(), "interrupted")
	}
	stderr := inertOn(p.Stderr)
	fmt.Fprintf(stderr, "contextd: %s\n", text)
	if unknown, ok := errors.AsType[*config.UnknownSettingError](err); ok {
		err = mistyped(err, unknown.Key, settingNames())
	}
	if near, ok := errors.AsType[*mistypedError](err); ok {
		fmt.Fprintf(stderr, "hint: did you mean %q?\n", near.meant)
	}
	if hint != "" {
		fmt.Fprintf(stderr, "hint: %s\n", hint)
	}
	return exitCode(err)
}

func explainError(cmd *cobra.Command, err error) (text, hint string) {
	if _, ok := errors.AsType[usageError](err); ok {
		return wrongUsage(cmd, err), fmt.Sprintf("see %q", cmd.CommandPath()+" --help")
	}
	st, ok := statusOf(err)
	if !ok {
		return err.Error(), localHint(cmd, err)
	}
	if st.Code() == codes.Unavailable && reason(st) == "" && !errors.Is(err, errNotServing) {
		address, _ := cmd.Flags().GetString("addr")
		if e, ok := errors.AsType[*contextdclient.Error](contextdclient.AsError(st.Err(), address)); ok {
			return e.Message, "--embedded DIR does without a daemon"
		}
	}
	text = statusText(st)
	if input, ok := errors.AsType[*inputError](err); ok {
		text = input.where + ": " + fieldOfInput.ReplaceAllString(text, "")
	}
	if _, ok := errors.AsType[*noStoreError](err); ok {
		return text, `name the data_dir of a daemon; "contextd append", "contextd import" and "contextd sessions create" make a new one`
	}
	return text, statusHint(st)
}

// localHint is advice for an error that did not come from a daemon.
func localHint(cmd *cobra.Command, err error) string {
	_, locked := errors.AsType[*disklog.LockedError](err)
	_, embedded := cmd.Flags().GetString("embedded")
	switch {
	case locked && embedded == nil:
		return "stop that process, or leave --embedded out where it is a daemon"
	case locked:
		return "stop that process, or name another directory"
	case errors.Is(err, syscall.EADDRINUSE):
		return `stop what listens there ("contextd health" says whether it is a daemon), or name another address`
	}
	return ""
}

// inputError is a daemon's error about a part of the input; where names that part, such as a file.
type inputError struct {
	error
	where string
}

func (e *inputError) Unwrap() error { return e.error }

// fieldOfInput is how the daemon names the event of a request with one event.
var fieldOfInput = regexp.MustCompile(`(append\.)?events\[0\](\.|: )`)

// wrongUsage rephrases cobra's errors about a command line.
func wrongUsage(cmd *cobra.Command, err error) string {
	text := err.Error()
	switch {
	case strings.Contains(text, " arg(s), "):
		return fmt.Sprintf("%s for %q", counted(cmd.Flags().NArg(), "argument"), strings.TrimSuffix(cmd.UseLine(), " [flags]"))
	case strings.HasPrefix(text, "unknown command ") && strings.HasSuffix(text, fmt.Sprintf(" for %q", cmd.CommandPath())) && !cmd.HasSubCommands():
		return fmt.Sprintf("%q takes no arguments", cmd.CommandPath())
	}
	for _, rule := range flagRules {
		if m := rule.cobra.FindStringSubmatch(text); m != nil {
			return fmt.Sprintf(rule.words, "--"+flagSeparator.ReplaceAllString(strings.Trim(m[1], `"`), rule.and+"--"))
		}
	}
	return text
}

// flagRules rephrase cobra's errors about flags that are missing or exclude each other.
var flagRules = []struct {
	cobra      *regexp.Regexp
	words, and string
}{
	{regexp.MustCompile(`^required flag\(s\) (.+) not set$`), "%s must be set", " and "},
	{regexp.MustCompile(`^at least one of the flags in the group \[(.+)\] is required$`), "%s must be set", " or "},
	{regexp.MustCompile(`^if any flags in the group .+ none of the others can be; \[(.+)\] were all set$`), "%s cannot be set together", " and "},
}

// flagSeparator separates the names of flags in cobra's errors.
var flagSeparator = regexp.MustCompile(`", "| `)

func statusText(st *status.Status) string {
	lines := []string{st.Message()}
	for _, detail := range st.Details() {
		if over, ok := detail.(*contextdv1.BudgetExceeded); ok {
			lines[0] = fmt.Sprintf("the context needs at least %d tokens; the target is %d", over.GetNeededTokens(), over.GetTargetTokens())
			for _, part := range over.GetParts() {
				lines = append(lines, fmt.Sprintf("  %8d tokens  %s%s", part.GetTokens(), part.GetWhat(), atEvent(part.GetSeq())))
			}
		}
	}
	return strings.Join(lines, "\n")
}

func atEvent(seq uint64) string {
	if seq == 0 {
		return ""
	}
	return fmt.Sprintf(" (event %d)", seq)
}

// statusHint is advice for a status, unless its message has it already.
func statusHint(st *status.Status) string {
	switch reason(st) {
	case apierr.ReasonSessionNotFound:
		return `"contextd sessions list" shows the sessions there are`
	case apierr.ReasonHeadMismatch:
		return "somebody else appended; read the log, then use its head"
	case apierr.ReasonBudgetExceeded:
		return "raise --max-tokens, or pin less"
	case apierr.ReasonUnauthenticated:
		return "name the file of your token by --token-file or CONTEXTD_TOKEN_FILE, or that of a certificate by --cert"
	case apierr.ReasonNotFound:
		for _, detail := range st.Details() {
			if missing, ok := detail.(*errdetails.ResourceInfo); ok {
				return whereListed[missing.GetResourceType()]
			}
		}
	}
	return ""
}

// whereListed says which command lists the things of a kind, for errors that one does not exist.
var whereListed = map[string]string{
	"call":       `"contextd calls SESSION" shows the calls there are`,
	"projection": `"contextd projections list SESSION" shows the projections there are`,
}

// reason is the stable reason of a status; empty if a daemon did not make it.
func reason(st *status.Status) string { return errorInfo(st).GetReason() }

// metadata is the status's metadata for programs; nil if a daemon did not make it.
func metadata(st *status.Status) map[string]string { return errorInfo(st).GetMetadata() }

func errorInfo(st *status.Status) *errdetails.ErrorInfo {
	for _, detail := range st.Details() {
		if info, ok := detail.(*errdetails.ErrorInfo); ok && info.GetDomain() == apierr.Domain {
			return info
		}
	}
	return nil
}
