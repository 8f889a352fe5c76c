package pglog_test

import (
	"errors"
	"testing"

	"github.com/contextd/contextd/internal/log/logtest"
	"github.com/contextd/contextd/internal/log/pglog"
)

// TestCopyIsInterrupted: until all was copied into an empty database, only a copy opens it, and it can be migrated.
func TestCopyIsInterrupted(t *testing.T) {
	needServer(t)
	dsn := server.Schema(t)
	try := func(opts pglog.Options) error {
		s, err := pglog.Open(t.Context(), dsn, opts)
		if err == nil {
			err = s.Close()
		}
		return err
	}
	s := open(t, dsn, pglog.Options{Migrate: true, Copying: "disk:source"})
	if _, err := appendTo(t, s, "s", logtest.Say("a")); err != nil {
		t.Fatal(err)
	}
	if err := s.Healthy(); err != nil {
		t.Error(err)
	}
	closeStore(t, s)
	for _, opts := range []pglog.Options{{}, {Migrate: true}, {Copying: "disk:other"}} {
		if err := try(opts); !errors.As(err, new(*pglog.CopyingError)) {
			t.Errorf("it is opened: %v", err)
		}
	}
	if all, err := pglog.Migrations(t.Context(), dsn); err != nil || !all[len(all)-1].Applied {
		t.Errorf("%v, %v", all, err)
	}
	s = open(t, dsn, pglog.Options{Copying: "disk:source"})
	if err := s.Copied(t.Context()); err != nil {
		t.Fatal(err)
	}
	closeStore(t, s)
	for _, opts := range []pglog.Options{{}, {Copying: "disk:source"}, {}} { // it is not empty
		if err := try(opts); err != nil {
			t.Error(err)
		}
	}
}
