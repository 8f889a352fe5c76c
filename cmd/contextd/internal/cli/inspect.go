package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"runtime"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/cmd/contextd/internal/inspect"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// inspectFlags are the flags of inspect.
type inspectFlags struct {
	listen   string
	harness  string
	settings requestSettings
}

func newInspect(c *client) *cobra.Command {
	flags := inspectFlags{listen: "127.0.0.1:0"}
	cmd := &cobra.Command{
		Use:   "inspect [PATH...]",
		Short: "Show in the browser what models saw: of a daemon, of a data directory, or of transcripts",
		Long: `Serve a page that shows sessions: each model call against its budget, what the model saw
beside what happened, and what was dropped and why. Nothing is changed. The address that
is printed holds a token without which nothing is shown; the page is served until the command is
interrupted.

Without PATH it shows the sessions of the running daemon, or those of --embedded DIR, which
must not be in use. PATH are transcripts of other harnesses, or folders of them, as "contextd
import" takes them: they are kept in memory, and the context of each of their model calls is
assembled under the policy and the budget of the flags, so the page shows what contextd
would have sent. Without a budget, it is that of the model that the transcript names.`,
		Example: `  contextd inspect
  contextd inspect --embedded ./data
  contextd inspect ~/.claude/projects/x/1234.jsonl --max-tokens 64k --policy frugal`,
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return c.inspect(cmd, flags, args)
	}
	f := cmd.Flags()
	f.StringVar(&flags.listen, "listen", flags.listen, "loopback `address` of the page; port 0 is any that is free")
	f.StringVar(&flags.harness, "harness", "", "`name` of the harness that wrote PATH; detected from the content if not given")
	flags.settings.bind(f)
	return cmd
}

func (c *client) inspect(cmd *cobra.Command, flags inspectFlags, paths []string) (err error) {
	if config.Reachable(flags.listen) {
		return usageError{fmt.Errorf("--listen %s can be reached from other machines: listen on 127.0.0.1, or have a daemon serve the page with --inspect-listen and tokens", flags.listen)}
	}
	if len(paths) > 0 && c.embedded != "" {
		return usageError{errors.New("--embedded must not be set with PATH: transcripts are kept in memory")}
	}
	budget, policy, err := flags.settings.resolve()
	if err != nil {
		return err
	}
	if len(paths) == 0 && (budget != nil || policy != nil) {
		return usageError{errors.New("a budget and a policy are for the transcripts of PATH: contexts that are recorded have theirs")}
	}
	if len(paths) == 0 {
		return c.inspectRecorded(cmd, flags.listen)
	}
	return c.inspectTranscripts(cmd, flags, paths, &contextdv1.AssembleContextRequest{Budget: budget, Policy: policy, Brief: true})
}

// inspectRecorded shows the sessions of a daemon or a data directory.
func (c *client) inspectRecorded(cmd *cobra.Command, listen string) (err error) {
	c.reads = true
	conn, closeConn, err := c.connect(cmd.Context())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeConn()) }()
	// Fail before anybody opens the page.
	if _, err := newAPI(conn).ListSessions(cmd.Context(), &contextdv1.ListSessionsRequest{PageSize: 1}); err != nil {
		return err
	}
	return servePage(cmd.Context(), cmd, conn, listen)
}

// inspectTranscripts shows what contextd would have sent in place of other harnesses. The transcripts are
// imported into one store in memory, and played back call by call into another, which the page shows.
func (c *client) inspectTranscripts(cmd *cobra.Command, flags inspectFlags, paths []string, each *contextdv1.AssembleContextRequest) (err error) {
	imported, closeImported, err := c.embedStore(cmd.Context(), config.StoreMemory, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeImported()) }()
	from := newAPI(imported)
	c.noteBudget(cmd, from, each.GetBudget())
	out := cmd.OutOrStdout()
	cmd.SetOut(cmd.ErrOrStderr()) // stdout is for the address alone
	err = c.importPaths(cmd, from, importFlags{harness: flags.harness, jobs: runtime.NumCPU()}, paths)
	cmd.SetOut(out)
	if err != nil {
		return err
	}
	shown, closeShown, err := c.embedStore(cmd.Context(), config.StoreMemory, "")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeShown()) }()
	played := &playback{from: from, to: newAPI(shown), cmd: cmd}
	if err := played.begin(cmd.Context()); err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(cmd.Context())
	group.Go(func() error { return servePage(ctx, cmd, shown, flags.listen) })
	group.Go(func() error { return played.run(ctx, each) })
	return group.Wait()
}

// servePage serves the page until ctx ends.
func servePage(ctx context.Context, cmd *cobra.Command, conn *grpc.ClientConn, address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	token := rand.Text()
	server := inspect.NewServer(inspect.Options{API: conn, Token: token, Loopback: true})
	defer context.AfterFunc(ctx, func() { _ = server.Close() })() // Serve returns the error
	// A URL's fragment is not sent to servers, so it is in no log.
	at := url.URL{Scheme: "http", Host: listener.Addr().String(), Path: "/", Fragment: "token=" + token}
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), at.String()); err != nil {
		return errors.Join(err, listener.Close())
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "open this address in a browser; interrupt to end")
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
