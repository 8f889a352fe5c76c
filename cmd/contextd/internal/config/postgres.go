package config

import (
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/contextd/contextd/internal/memory"
)

// Postgres configures the database of StorePostgres.
type Postgres struct {
	// DSN is the address, in any form that libpq accepts; DSNFile names a file that holds it.
	DSN, DSNFile string
	// MaxConnections bounds the daemon's connections, without the one that listens for notifications.
	MaxConnections uint64
	// StatementTimeout bounds each statement.
	StatementTimeout time.Duration
	// Migrate allows the daemon to migrate the schema when it starts.
	Migrate bool
}

func defaultPostgres() Postgres {
	return Postgres{MaxConnections: 16, StatementTimeout: 30 * time.Second, Migrate: true}
}

func (p *Postgres) bind(f *pflag.FlagSet) {
	f.StringVar(&p.DSN, dsnFlag, p.DSN, "`address` of the database of the postgres store, as libpq takes it; as a flag without a password, which others could see")
	f.StringVar(&p.DSNFile, "postgres-dsn-file", p.DSNFile, "`file` that holds postgres_dsn")
	f.Uint64Var(&p.MaxConnections, "postgres-max-connections", p.MaxConnections, "`connections` to the database; one more listens")
	f.DurationVar(&p.StatementTimeout, "postgres-statement-timeout", p.StatementTimeout, "how long a statement may take")
	f.BoolVar(&p.Migrate, "postgres-migrate", p.Migrate, "bring the database's schema up to date when the daemon starts")
}

const dsnFlag = "postgres-dsn"

// Address is the database's address, from the file if one is set.
func (p *Postgres) Address() (string, error) {
	if p.DSNFile == "" {
		return p.DSN, nil
	}
	text, err := memory.ReadFile(p.DSNFile)
	if err != nil {
		return "", fmt.Errorf("postgres_dsn_file: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

func (c *Config) validatePostgres() error {
	p := c.Postgres
	switch {
	case p.MaxConnections == 0 || p.MaxConnections > 1<<16:
		return fmt.Errorf("postgres_max_connections must be between 1 and %d", 1<<16)
	case p.StatementTimeout < time.Millisecond:
		return fmt.Errorf("postgres_statement_timeout must be at least 1ms")
	case c.Store != StorePostgres:
		return nil
	case (p.DSN == "") == (p.DSNFile == ""):
		return fmt.Errorf("for the postgres store one of postgres_dsn and postgres_dsn_file must be set")
	case c.Encrypted():
		return fmt.Errorf("encryption_key_file and encryption_key_command are for the disk store: they would not encrypt the database")
	}
	return nil
}

// HoldsPassword reports whether an address may contain a password.
func HoldsPassword(dsn string) bool {
	if u, err := url.Parse(dsn); err == nil && u.User != nil {
		if _, has := u.User.Password(); has {
			return true
		}
	}
	return strings.Contains(dsn, "password")
}
