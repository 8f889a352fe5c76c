// Imagesteps runs the steps of the Dockerfile without a container engine, with
// the tools of this machine, and checks the image that they give. It covers what
// changes with the project (sources, ignored files, build commands, paths, user,
// command line), not the base images.
//
//	go run ./tools/imagesteps -arg VERSION=v1.2.3
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	args := map[string]string{}
	flag.Func("arg", "build argument as `NAME=value`; may be given again", func(arg string) error {
		name, value, found := strings.Cut(arg, "=")
		if !found {
			return fmt.Errorf("%q has no =", arg)
		}
		args[name] = value
		return nil
	})
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := build(ctx, ".", args, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "imagesteps: Dockerfile: %v\n", err)
		os.Exit(1)
	}
	fmt.Println("imagesteps: every step ran; the image is static, not root's, and starts with its command line")
}

func build(ctx context.Context, dir string, args map[string]string, out io.Writer) (err error) {
	dockerfile, err := os.ReadFile(filepath.Join(dir, "Dockerfile"))
	if err != nil {
		return err
	}
	instructions, err := parse(string(dockerfile))
	if err != nil {
		return err
	}
	source, err := buildContext(dir)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "imagesteps-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	b := &builder{context: source, scratch: scratch, args: args, out: out}
	image, err := b.run(ctx, instructions)
	if err != nil {
		return err
	}
	return check(ctx, image, args["VERSION"])
}
