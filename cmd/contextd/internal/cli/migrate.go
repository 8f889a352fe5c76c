package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/contextd/contextd/internal/log/pglog"
)

func (p Program) newMigrate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "migrate",
		Short: "Bring the schema of the postgres store's database up to date",
		Long: `Bring the schema of the postgres store's database up to date, by the settings postgres_dsn or
postgres_dsn_file of the environment and of --config. serve does so by itself unless postgres_migrate
is false: a daemon whose role may not create tables needs this once for each version of the schema.`,
		Args: onlySubcommands,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(p.newMigrateUp(), p.newMigrateStatus())
	return cmd
}

func (p Program) newMigrateUp() *cobra.Command {
	var file string
	var dry bool
	cmd := &cobra.Command{
		Use:     "up",
		Short:   "Apply the steps that are missing",
		Example: "  contextd migrate up --config /etc/contextd.yaml --dry-run",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			dsn, all, err := p.migrations(cmd, file)
			if err != nil {
				return err
			}
			t := newTable(cmd, "VERSION", "NAME", "STATE")
			for _, m := range all {
				switch {
				case m.Applied:
				case dry:
					t.row(m.Version, m.Name, "would be applied")
				default:
					t.row(m.Version, m.Name, "applied")
				}
			}
			if !dry {
				if err := pglog.Migrate(cmd.Context(), dsn); err != nil {
					return err
				}
			}
			return t.flush()
		},
	}
	bindConfig(cmd, &file)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say what would be done")
	return cmd
}

func (p Program) newMigrateStatus() *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Say which steps have been applied",
		Example: "  contextd migrate status",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, all, err := p.migrations(cmd, file)
			if err != nil {
				return err
			}
			t := newTable(cmd, "VERSION", "NAME", "STATE")
			for _, m := range all {
				state := "missing"
				if m.Applied {
					state = "applied"
				}
				t.row(m.Version, m.Name, state)
			}
			return t.flush()
		},
	}
	bindConfig(cmd, &file)
	return cmd
}

// migrations lists the migrations of the database that the settings name.
func (p Program) migrations(cmd *cobra.Command, file string) (dsn string, all []pglog.Migration, err error) {
	settings, err := p.loadConfig(file)
	if err != nil {
		return "", nil, err
	}
	if dsn, err = settings.Postgres.Address(); err != nil {
		return "", nil, usageError{err}
	}
	if dsn == "" {
		return "", nil, usageError{errors.New("postgres_dsn or postgres_dsn_file must be set")}
	}
	all, err = pglog.Migrations(cmd.Context(), dsn)
	return dsn, all, err
}
