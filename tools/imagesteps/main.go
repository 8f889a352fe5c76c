// Imagesteps runs the steps of the Dockerfile with the tools of this machine, without a container engine, and
// checks the resulting image. It tests what the project controls (sources, ignored files, build commands,
// paths, user, command line), but not the base images.
//
//	go run ./tools/imagesteps -arg VERSION=v1.2.3
//
// With -twice it runs them a second time in another folder with an empty build cache, and compares the files.
package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"io/fs"
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
	twice := flag.Bool("twice", false, "build a second time from nothing and compare")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	digest, err := run(ctx, args, *twice)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "imagesteps: Dockerfile: %v\n", err)
		os.Exit(1)
	}
	fmt.Printf("imagesteps: every step ran; the image is static, not root's, and starts with its command line; its files are sha256:%s\n", digest)
}

func run(ctx context.Context, args map[string]string, twice bool) (digest string, err error) {
	if !twice {
		return build(ctx, ".", args, "", os.Stdout)
	}
	cache, err := os.MkdirTemp("", "imagesteps-cache-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(cache)
	return buildTwice(ctx, ".", args, cache, os.Stdout)
}

// build returns the digest of the image's files.
func build(ctx context.Context, dir string, args map[string]string, cache string, out io.Writer) (digest string, err error) {
	dockerfile, err := os.ReadFile(filepath.Join(dir, "Dockerfile"))
	if err != nil {
		return "", err
	}
	instructions, err := parse(string(dockerfile))
	if err != nil {
		return "", err
	}
	source, err := buildContext(dir)
	if err != nil {
		return "", err
	}
	scratch, err := os.MkdirTemp("", "imagesteps-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	b := &builder{context: source, scratch: scratch, args: args, cache: cache, out: out}
	image, err := b.run(ctx, instructions)
	if err != nil {
		return "", err
	}
	if err := check(ctx, image, args); err != nil {
		return "", err
	}
	return digestOf(image.root)
}

// buildTwice fails unless a second build with an empty cache gives the same files.
func buildTwice(ctx context.Context, dir string, args map[string]string, cache string, out io.Writer) (digest string, err error) {
	digest, err = build(ctx, dir, args, "", out)
	if err != nil {
		return "", err
	}
	second, err := build(ctx, dir, args, cache, out)
	if err == nil && second != digest {
		err = fmt.Errorf("two builds differ: sha256:%s and sha256:%s", digest, second)
	}
	return digest, err
}

// digestOf is a digest of the paths, modes and contents of a folder's files.
func digestOf(root string) (string, error) {
	hash := sha256.New()
	// WalkDir visits files in the order of their names.
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		fmt.Fprintf(hash, "%q %v %d\n", strings.TrimPrefix(path, root), info.Mode(), info.Size())
		if !info.Mode().IsRegular() {
			return nil
		}
		content, err := os.ReadFile(path)
		hash.Write(content)
		return err
	})
	return hex.EncodeToString(hash.Sum(nil)), err
}
