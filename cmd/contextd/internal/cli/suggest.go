package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/contextd/contextd/cmd/contextd/internal/apierr"
	"github.com/contextd/contextd/cmd/contextd/internal/config"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// mistypedError is an error about a name that does not exist, with the existing name that may be meant.
type mistypedError struct {
	error
	meant string
}

func (e *mistypedError) Unwrap() error { return e.error }

// mistyped adds the most similar existing name to an error about a name, if one is similar enough.
func mistyped(err error, name string, exist []string) error {
	if meant := config.Nearest(name, exist); meant != "" {
		return &mistypedError{err, meant}
	}
	return err
}

// onlySubcommands refuses arguments of a command that only has subcommands.
func onlySubcommands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(append(names, sub.Name()), sub.Aliases...)
		}
	}
	return mistyped(fmt.Errorf("unknown command %q for %q", args[0], cmd.CommandPath()), args[0], names)
}

// wrongFlag adds to a flag's error what values the flag takes, or which flag may be meant.
func wrongFlag(cmd *cobra.Command, err error) error {
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		flag := invalid.GetFlag()
		return fmt.Errorf("--%s=%s: %w", flag.Name, invalid.GetValue(), config.WrongValue(flag.Value, invalid.Unwrap()))
	}
	unknown, ok := errors.AsType[*pflag.NotExistError](err)
	if !ok || unknown.GetSpecifiedShortnames() != "" {
		return err
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, "--"+f.Name)
		}
	})
	return mistyped(err, "--"+unknown.GetSpecifiedName(), names)
}

// settingNames are the keys of a configuration file.
func settingNames() (names []string) {
	settings := config.Default()
	settings.Settings().VisitAll(func(f *pflag.Flag) { names = append(names, config.FileKey(f.Name)) })
	return names
}

// unknownName adds to a daemon's error about an unknown name which known one may be meant.
func unknownName(err error) error {
	st, ok := statusOf(err)
	if !ok {
		return err
	}
	if of := metadata(st); of["unknown"] != "" {
		return mistyped(err, of["unknown"], strings.Split(of["known"], ","))
	}
	return err
}

// mostListed is how many sessions are searched for a similar id at most.
const mostListed = 1000

// unknownSession adds to an error about a session that does not exist which one may be meant.
func unknownSession(ctx context.Context, api api, err error) error {
	st, ok := statusOf(err)
	if !ok || reason(st) != apierr.ReasonSessionNotFound {
		return err
	}
	for _, detail := range st.Details() {
		if missing, ok := detail.(*errdetails.ResourceInfo); ok {
			page, listErr := api.ListSessions(ctx, &contextdv1.ListSessionsRequest{PageSize: mostListed})
			if listErr != nil {
				return err // it suggests one already
			}
			return mistyped(err, missing.GetResourceName(), sessionIDs(page))
		}
	}
	return err
}

func sessionIDs(page *contextdv1.ListSessionsResponse) []string {
	ids := make([]string, len(page.GetSessions()))
	for i, s := range page.GetSessions() {
		ids[i] = s.GetSessionId()
	}
	return ids
}
