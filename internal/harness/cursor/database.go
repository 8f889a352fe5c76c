package cursor

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver, which needs no C

	"github.com/contextd/contextd/internal/harness/transcript"
)

// readDatabase copies the database into a file of its own and reads the rows of
// chats from there: a database is read where it is asked, and not in the order in
// which it comes. Damage is reported and ends the reading.
func (t *table) readDatabase(in io.Reader) (err error) {
	dir, err := os.MkdirTemp("", "contextd-cursor-")
	if err != nil {
		return fmt.Errorf("copy database: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	path := filepath.Join(dir, "state.vscdb")
	if err := copyTo(path, in); err != nil {
		return err
	}
	// immutable: nobody writes the copy, so that it needs no locks and no journal.
	address := url.URL{Scheme: "file", Path: path, RawQuery: "mode=ro&immutable=1"}
	db, err := sql.Open("sqlite", address.String())
	if err != nil {
		return fmt.Errorf("open database: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := t.query(db); err != nil {
		t.out.Warn(0, "the database is damaged or not one of Cursor's, and was not read to its end")
	}
	return nil
}

func copyTo(path string, in io.Reader) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("copy database: %w", err)
	}
	_, err = io.Copy(f, in)
	if err != nil {
		err = &readError{err}
	}
	return errors.Join(err, f.Close())
}

// query reads the rows of chats. What else the table holds is not looked at.
func (t *table) query(db *sql.DB) (err error) {
	rows, err := db.Query(`SELECT key, value FROM cursorDiskKV
		WHERE (key >= 'composerData:' AND key < 'composerData;') OR (key >= 'bubbleId:' AND key < 'bubbleId;') ORDER BY rowid`)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var key string
		var value []byte
		if err := rows.Scan(&key, &value); err != nil {
			return err
		}
		t.row(transcript.Clean(key), []byte(transcript.Clean(string(value))), 0)
	}
	return rows.Err()
}
