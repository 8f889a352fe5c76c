package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/contextd/contextd/cmd/contextd/internal/config"
	"github.com/contextd/contextd/cmd/contextd/internal/daemon"
	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog"
	"github.com/contextd/contextd/internal/log/logcopy"
	"github.com/contextd/contextd/internal/log/pglog"
)

func (p Program) newCopy() *cobra.Command {
	c := copying{program: p}
	cmd := &cobra.Command{
		Use:   "copy --from STORE --to STORE",
		Short: "Copy all sessions from one store, on disk or in a database, into another",
		Long: `Copy all sessions, of all tenants, with their events, artifacts, labels and forks, from one
store into another, and read both to see that they are equal.

A STORE is disk:DIR, a data directory that no daemon has open, or postgres:ADDRESS, a
database. An address on the command line must hold no password, which other processes
could see; "postgres:" alone is the one of postgres_dsn or postgres_dsn_file in the
environment or --config. Keys of encrypted directories are from there, too: where there
is one, a directory that is copied into is encrypted.

The same command goes on where an earlier one ended, and adds what came since. It changes
and removes nothing that the target has. A session that is there already with other content,
or that is damaged in the source, is named and left out, with its forks; the others are copied.
A target that was empty is not opened by anything else until all is copied. Of a source in
a database, stop the daemons that write to it first.

Clients that know a session's incarnation learn that it is another store's, and send
again what they have; nothing is stored twice.`,
		Example: `  contextd copy --from disk:/var/lib/contextd --to postgres:
  contextd copy --from "postgres:host=db dbname=contextd" --to disk:data --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return c.run(cmd) },
	}
	f := cmd.Flags()
	f.StringVar(&c.from, "from", "", "the `store` to copy from: disk:DIR or postgres:ADDRESS")
	f.StringVar(&c.to, "to", "", "the `store` to copy into, which is made if need be")
	bindConfig(cmd, &c.file)
	bindQuiet(f)
	c.output.bind(f)
	for _, name := range []string{"from", "to"} {
		_ = cmd.MarkFlagRequired(name) // it is defined above
	}
	return cmd
}

type copying struct {
	program        Program
	from, to, file string
	output         outputFormat
}

// copyReport is the result of a copy, for --json.
type copyReport struct {
	Sessions     uint64 `json:"sessions"`
	Forks        uint64 `json:"forks"`
	Events       uint64 `json:"events"`
	Artifacts    uint64 `json:"artifacts"`
	NewSessions  uint64 `json:"new_sessions"`
	NewEvents    uint64 `json:"new_events"`
	NewArtifacts uint64 `json:"new_artifacts"`
}

func (c *copying) run(cmd *cobra.Command) (err error) {
	settings, err := c.program.loadConfig(c.file)
	if err != nil {
		return err
	}
	from, err := c.place("--from", c.from, settings)
	if err != nil {
		return err
	}
	to, err := c.place("--to", c.to, settings)
	if err != nil {
		return err
	}
	if from.same(to) {
		return usageError{errors.New("--from and --to are the same store")}
	}
	if to.dir != "" {
		if err := refuseStorePath(to.dir); err != nil {
			return usageError{fmt.Errorf("--to: %w", err)}
		}
	}
	source, err := from.open(cmd.Context(), settings, nil)
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	target, err := to.open(cmd.Context(), settings, &from)
	if err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	defer func() {
		if closeErr := target.Close(); err == nil {
			err = closeErr // else what ended the copy may end the store, too
		}
	}()
	bar := newProgress(cmd)
	done, err := logcopy.Copy(cmd.Context(), source, target, logcopy.Options{
		Found: bar.expect,
		Done:  func(id string) { bar.at(id); bar.done() },
	})
	bar.close()
	if copied, ok := target.(interface{ Copied(context.Context) error }); ok && err == nil {
		err = copied.Copied(cmd.Context())
	}
	if part, ok := errors.AsType[*logcopy.PartError](err); ok {
		for _, failed := range part.Unwrap() {
			fmt.Fprintf(cmd.ErrOrStderr(), "failed: %v\n", failed)
		}
		return errors.Join(c.write(cmd, copyReport(done)), err)
	}
	if err != nil {
		return fmt.Errorf("%s copied; the same command goes on from there: %w", counted(done.Sessions, "session"), err)
	}
	return c.write(cmd, copyReport(done))
}

func (c *copying) write(cmd *cobra.Command, r copyReport) error {
	if c.output.structured() {
		return writeLines(cmd.OutOrStdout(), c.output, []copyReport{r})
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "verified: %s (of which forks: %d) with %s and %s are the same in both stores\ncopied now: %s, %s, %s\n",
		counted(r.Sessions, "session"), r.Forks, counted(r.Events, "event"), counted(r.Artifacts, "artifact"),
		counted(r.NewSessions, "session"), counted(r.NewEvents, "event"), counted(r.NewArtifacts, "artifact"))
	return err
}

// storePlace is a data directory, or the address (DSN) of a database.
type storePlace struct {
	program Program
	dir     string
	dsn     string
}

func (c *copying) place(flag, text string, settings config.Config) (storePlace, error) {
	invalid := func(format string, args ...any) (storePlace, error) {
		return storePlace{}, usageError{fmt.Errorf(flag+" "+format, args...)}
	}
	kind, where, _ := strings.Cut(text, ":")
	if strings.HasPrefix(where, "//") && (kind == config.StorePostgres || kind == "postgresql") {
		kind, where = config.StorePostgres, text // a whole URL is the address
	}
	switch {
	case kind == config.StoreDisk && where != "":
		return storePlace{program: c.program, dir: where}, nil
	case kind != config.StorePostgres:
		return invalid("must be disk:DIR or postgres:ADDRESS")
	case config.HoldsPassword(where):
		return invalid("must hold no password, which other processes could see: use %q with postgres_dsn_file or %s", "postgres:", config.EnvName("postgres-dsn"))
	case where != "":
		return storePlace{program: c.program, dsn: where}, nil
	}
	dsn, err := settings.Postgres.Address()
	if err != nil {
		return storePlace{}, usageError{err}
	}
	if dsn == "" {
		return invalid("names no address, and neither postgres_dsn nor postgres_dsn_file is set")
	}
	return storePlace{program: c.program, dsn: dsn}, nil
}

func (p storePlace) same(other storePlace) bool {
	if p.dir == "" || other.dir == "" {
		return p.dir == "" && p.dsn == other.dsn
	}
	a, err := os.Stat(p.dir)
	if err != nil {
		return false
	}
	b, err := os.Stat(other.dir)
	return err == nil && os.SameFile(a, b)
}

// name is the place without a password. The same place has the same name wherever the command is run.
func (p storePlace) name() string {
	if p.dir == "" {
		if config.HoldsPassword(p.dsn) {
			return config.StorePostgres + ":"
		}
		return config.StorePostgres + ":" + p.dsn
	}
	dir := p.dir
	for _, clearer := range []func(string) (string, error){filepath.EvalSymlinks, filepath.Abs} {
		if found, err := clearer(dir); err == nil {
			dir = found
		}
	}
	return config.StoreDisk + ":" + dir
}

// open opens a store to be copied, or to copy another one into it.
func (p storePlace) open(ctx context.Context, settings config.Config, copied *storePlace) (eventlog.Store, error) {
	source, name := copied == nil, ""
	if !source {
		name = copied.name()
	}
	logger := slog.New(slog.NewTextHandler(p.program.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if p.dir == "" {
		store, err := pglog.Open(ctx, p.dsn, pglog.Options{
			Logger: logger, MaxConnections: int32(settings.Postgres.MaxConnections),
			Timeout: settings.Postgres.StatementTimeout, Migrate: settings.Postgres.Migrate && !source, Copying: name,
		})
		if err != nil {
			return nil, err
		}
		return store, nil
	}
	if source && !disklog.Exists(p.dir) {
		return nil, noStore(p.dir)
	}
	encryption, err := daemon.Encryption(ctx, settings)
	if err != nil {
		return nil, err
	}
	store, err := disklog.Open(p.dir, disklog.Options{Logger: logger, Encryption: encryption, ReadOnly: source, Copying: name})
	if err != nil {
		return nil, err
	}
	return store, nil
}
