package disklog

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cockroachdb/errors/oserror"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/log/disklog/durable"
	"github.com/contextd/contextd/internal/log/disklog/salvage"
)

// examine finds out what is wrong.
func (r *repairer) examine(ctx context.Context) error {
	before := len(r.out.Faults)
	trusted, err := r.examineTop()
	if err != nil {
		return err
	}
	s := &Store{opts: r.opts, dir: r.path(dataDir), disk: newHaltFS(r.disk), logger: r.opts.Logger}
	_, err = s.recall(r.dir)
	var lostLogs []string
	if missing, ok := errors.AsType[*MissingError](err); ok {
		r.out.Faults = append(r.out.Faults, missing.Missing...)
		lostLogs = missing.logs
		trusted = trusted && len(lostLogs) > 0
	} else if err != nil {
		return err
	}
	if trusted {
		if r.inForce, r.unflushed, err = s.filesInForce(lostLogs); err != nil {
			r.fault("the database cannot be opened: %s", reasonOf(err))
		}
	}
	for i, log := range lostLogs {
		if r.needed(log) {
			r.logLost = true
			continue
		}
		r.out.Faults[len(r.out.Faults)-len(lostLogs)+i] += "; all of it is in tables as well"
	}
	if r.inForce == nil {
		r.fault("no manifest can be trusted: tables that are missing are not known, and may have had the newest of any session")
	}
	if err := r.examineSizes(s); err != nil {
		return err
	}
	if err := r.eachFile(nil, nil); err != nil {
		return err
	}
	r.out.Unnamed = r.logLost || slices.ContainsFunc(r.gaps, func(g salvage.Gap) bool {
		return bytes.Compare(g.After, []byte{keySession + 1}) < 0 && (g.Before == nil || bytes.Compare(g.Before, []byte{keySession}) > 0)
	})
	if len(r.out.Faults) > before {
		return nil
	}
	err = r.examineSessions(ctx)
	r.sound = len(r.out.Faults) == before
	return err
}

// needed reports whether a log file may hold content that is in no table.
func (r *repairer) needed(log string) bool { return r.inForce == nil || r.unflushed[log] }

// examineSizes looks for files in force that are missing or have another size.
func (r *repairer) examineSizes(s *Store) error {
	for _, name := range slices.Sorted(maps.Keys(r.inForce)) {
		file := r.inForce[name]
		wrong, err := s.wrongSize(name, file.size)
		if err != nil {
			return err
		}
		if wrong == "" {
			continue
		}
		r.fault("%s/%s %s", dataDir, name, wrong)
		if file.last != nil {
			r.gaps = append(r.gaps, salvage.Gap{After: file.first, Before: append(file.last, 0)})
		}
	}
	return nil
}

// examineTop checks the files next to the database. It reports whether the inventory, with which the manifest is
// compared, can be trusted.
func (r *repairer) examineTop() (trusted bool, err error) {
	text, err := durable.Read(r.disk, r.path(formatFile), smallFile)
	switch {
	case oserror.IsNotExist(err):
		r.fault("%s is missing", formatFile)
	case err != nil:
		return false, err
	default:
		err := parseFormat(r.dir, text)
		if bad, ok := errors.AsType[*FormatError](err); ok && bad.Version != 0 {
			return false, err
		}
		if err != nil {
			r.fault("%s is damaged", formatFile)
		}
	}
	_, _, trusted, err = readInventory(r.disk, r.dir)
	if err == nil && !trusted {
		r.fault("%s is missing or damaged", inventoryFile)
	}
	return trusted, err
}

// examineSessions verifies all sessions, including artifacts, with the store's own code.
func (r *repairer) examineSessions(ctx context.Context) error {
	opts := r.opts
	opts.ReadOnly = true
	s, err := open(r.dir, opts)
	if bad, ok := errors.AsType[*FormatError](err); ok {
		r.fault("%s", bad.Reason)
		return nil
	}
	if err != nil {
		return err
	}
	s.lock = unlocked{}
	before := len(r.out.Faults)
	ids, err := s.SessionIDs(ctx)
	if err != nil {
		return errors.Join(err, s.Close())
	}
	for _, id := range ids {
		err := s.Verify(ctx, id)
		if err == nil {
			err = s.VerifyArtifacts(ctx, id)
		}
		if _, corrupt := errors.AsType[*eventlog.CorruptError](err); corrupt {
			r.fault("%s", err)
		} else if err != nil {
			return errors.Join(err, s.Close())
		}
	}
	if len(r.out.Faults) == before {
		r.out.Whole = len(ids)
	}
	return s.Close()
}

// eachFile reads every file of the database on its own, calls visit for its entries and adds its values to values. If
// visit is nil, it only records what is damaged.
func (r *repairer) eachFile(visit func(salvage.Entry) error, values *salvage.Values) error {
	examining := visit == nil
	if examining {
		visit, values = func(e salvage.Entry) error { r.sealed = r.sealed || isSealed(e.Value); return nil }, salvage.NewValues(r.disk)
	}
	db := r.path(dataDir)
	names, err := r.disk.List(db)
	if oserror.IsNotExist(err) {
		return &NothingLeftError{r.dir, "the directory " + dataDir + " is missing"}
	}
	if err != nil {
		return err
	}
	slices.Sort(names)
	found := 0
	for _, name := range names {
		name = r.disk.PathBase(name)
		path := r.disk.PathJoin(db, name)
		isLog, _, _ := kindOf(name)
		_, named := r.inForce[name]
		inUse := named || r.inForce == nil
		var lost []salvage.Span
		switch {
		case isLog:
			lost, err = r.logFile(path, visit)
		case strings.HasSuffix(name, tableSuffix) && inUse:
			lost, err = r.table(path, visit, examining)
		case isBlob(name) && inUse:
			lost, err = values.Add(path)
		default:
			continue
		}
		if err != nil {
			return fmt.Errorf("%s/%s: %w", dataDir, name, err)
		}
		found++
		for _, span := range lost {
			if examining {
				r.fault("%s/%s: %s are not what was written", dataDir, name, span)
			}
		}
	}
	if found == 0 && len(r.out.Faults) > 0 {
		return &NothingLeftError{r.dir, "no table and no log file is left"}
	}
	return nil
}

// logFile visits the entries of a log file, and returns its damaged parts.
func (r *repairer) logFile(path string, visit func(salvage.Entry) error) ([]salvage.Span, error) {
	content, err := salvage.ReadFile(r.disk, path)
	if err != nil {
		return nil, err
	}
	name := r.disk.PathBase(path)
	_, _, number := kindOf(name)
	lost, err := salvage.Log(content, number, visit)
	r.logLost = r.logLost || len(lost) > 0 && r.needed(name)
	return lost, err
}

// table visits the entries of a table, and returns its damaged parts.
func (r *repairer) table(path string, visit func(salvage.Entry) error, examining bool) ([]salvage.Span, error) {
	content, err := salvage.ReadFile(r.disk, path)
	if err != nil {
		return nil, err
	}
	lost, gaps, err := salvage.Table(content, visit)
	if examining {
		r.gaps = append(r.gaps, gaps...)
	}
	return lost, err
}
