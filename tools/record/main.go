package main

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stderr)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, progress io.Writer) (err error) {
	flags := flag.NewFlagSet("record", flag.ContinueOnError)
	repository := flags.String("repo", ".", "git repository that is worked on; it is only read")
	revision := flags.String("rev", "", "revision of it that is worked on, in place of the script's base")
	script := flags.String("script", "tools/record/session.yaml", "what the agent says and does")
	out := flags.String("o", "", "file to write; it is replaced only by a whole session")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *out == "" {
		return fmt.Errorf("-o must name the file to write")
	}
	text, err := os.ReadFile(*script)
	if err != nil {
		return err
	}
	s, err := parseScript(text)
	if err != nil {
		return fmt.Errorf("%s: %w", *script, err)
	}
	place, err := checkOut(ctx, *repository, cmp.Or(*revision, s.Base, "HEAD"))
	if err != nil {
		return err
	}
	defer func() {
		if removeErr := place.remove(); err == nil {
			err = removeErr
		}
	}()
	var session bytes.Buffer
	if err := record(ctx, s, place, &session, progress); err != nil {
		return err
	}
	return os.WriteFile(*out, session.Bytes(), 0o644)
}
