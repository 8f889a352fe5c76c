package cli

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/go-json-experiment/json/jsontext"
)

// followPoll is how often a file is checked where the system does not report changes, as on some network
// drives.
const followPoll = 2 * time.Second

// watchFile signals when a file may have changed, until stop is called.
func watchFile(path string) (changes <-chan struct{}, stop func(), err error) {
	whole, err := filepath.Abs(path)
	if err != nil {
		return nil, nil, err
	}
	signals := make(chan struct{}, 1)
	done, ended := make(chan struct{}), make(chan struct{})
	var events chan fsnotify.Event
	var faults chan error
	watcher, err := fsnotify.NewWatcher()
	if err == nil {
		// Watch the folder, since the file may be replaced by another of its name.
		if err := watcher.Add(filepath.Dir(whole)); err == nil {
			events, faults = watcher.Events, watcher.Errors
		}
	}
	poll := time.NewTicker(followPoll)
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			case _, open := <-faults: // events were lost; the next poll finds the changes
				if !open {
					faults = nil
				}
			case e := <-events:
				if e.Name != whole || e.Op == fsnotify.Chmod {
					continue
				}
			case <-poll.C:
			}
			select {
			case signals <- struct{}{}:
			default:
			}
		}
	}()
	return signals, func() {
		close(done)
		<-ended
		poll.Stop()
		if watcher != nil {
			_ = watcher.Close() // closing a watcher loses nothing
		}
	}, nil
}

// checkFollowed refuses a file of which nothing could be imported while it grows.
func checkFollowed(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // it was only read
	head := make([]byte, 512)
	n, err := io.ReadFull(file, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	if text := bytes.TrimSpace(head[:n]); len(text) > 0 && text[0] != '{' && text[0] != '[' {
		return usageError{errors.New("--follow takes a file of JSON that is not compressed")}
	}
	return nil
}

// wholeRecords is how many bytes of a file that may still be growing can be read: up to the end of the last
// complete record. A file of lines ends after its last newline, or after a complete value that only lacks its
// newline. Any other file is complete or not read at all.
func wholeRecords(file io.ReaderAt, size int64) (int64, error) {
	newline, err := lastNewline(file, size)
	if err != nil {
		return 0, err
	}
	tail, err := isValue(io.NewSectionReader(file, newline, size-newline))
	if err != nil {
		return 0, err
	}
	lined := newline > 0
	if lined {
		lined, err = firstIsLine(file, size)
	}
	switch {
	case err != nil:
		return 0, err
	case lined && tail, newline == 0 && tail:
		return size, nil
	case lined:
		return newline, nil
	case newline == 0:
		return 0, nil
	}
	all, err := isValue(io.NewSectionReader(file, 0, size))
	if all {
		return size, err
	}
	return 0, err
}

// lastNewline is the offset after the last newline; 0 if there is none.
func lastNewline(file io.ReaderAt, size int64) (int64, error) {
	piece := make([]byte, 64<<10)
	for end := size; end > 0; {
		start := max(0, end-int64(len(piece)))
		n, err := file.ReadAt(piece[:end-start], start)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if i := bytes.LastIndexByte(piece[:n], '\n'); i >= 0 {
			return start + int64(i) + 1, nil
		}
		end = start
	}
	return 0, nil
}

// firstIsLine reports whether the first value is on one line.
func firstIsLine(file io.ReaderAt, size int64) (bool, error) {
	dec := jsontext.NewDecoder(io.NewSectionReader(file, 0, size), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err := dec.SkipValue(); err != nil {
		return false, ignoreSyntax(err)
	}
	head := make([]byte, dec.InputOffset())
	if _, err := file.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	return !bytes.ContainsRune(bytes.TrimSpace(head), '\n'), nil
}

// isValue reports whether what is read is one whole value of JSON.
func isValue(r io.Reader) (bool, error) {
	dec := jsontext.NewDecoder(r, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err := dec.SkipValue(); err != nil {
		return false, ignoreSyntax(err)
	}
	_, err := dec.ReadToken()
	if errors.Is(err, io.EOF) {
		return true, nil
	}
	return false, ignoreSyntax(err)
}

// ignoreSyntax drops errors of the JSON in a file, and keeps errors of reading it.
func ignoreSyntax(err error) error {
	var syntax *jsontext.SyntacticError
	if err == nil || errors.As(err, &syntax) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}
