// Command size prints what contributes to the program's size: how much larger a program becomes with each
// library that contextd links, one after another, and at last with contextd itself.
//
//	go run ./bench/size
//
// Code that two libraries share counts for the first of them. Run it in the root of the repository.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

// parts has a file for each row of the table. Each program links the files up to its own.
const parts = "bench/size/testdata/parts/*.go"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "size:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	files, err := filepath.Glob(parts)
	if err != nil || len(files) == 0 {
		return errors.Join(fmt.Errorf("there are no files %s", parts), err)
	}
	dir, err := os.MkdirTemp("", "size")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	fmt.Println("| | MiB | with those above |")
	fmt.Println("| --- | --- | --- |")
	var before int64
	for i := range append(slices.Clone(files), "") {
		name, packages := "contextd itself", []string{"./cmd/contextd"}
		if i < len(files) {
			if name, err = title(files[i]); err != nil {
				return err
			}
			packages = files[:i+1]
		}
		size, err := program(ctx, filepath.Join(dir, "program"), packages...)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		fmt.Printf("| %s | %.1f | %.1f |\n", name, mib(size-before), mib(size))
		before = size
	}
	return nil
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// title is the comment at the beginning of a file.
func title(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Scan()
	return strings.TrimSuffix(strings.TrimPrefix(lines.Text(), "// "), "."), lines.Err()
}

// program links packages, or files of one package, as in a release, and returns the size in bytes.
func program(ctx context.Context, path string, packages ...string) (int64, error) {
	build := exec.CommandContext(ctx, "make", "build", "PROGRAM="+path, "MAIN="+strings.Join(packages, " "))
	if out, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("make build: %w\n%s", err, out)
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
