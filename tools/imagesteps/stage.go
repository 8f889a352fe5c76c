package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// stage is a FROM and the instructions after it. Its file system is a directory, without the base image's
// files.
type stage struct {
	name       string
	base       string
	root       string
	workdir    string
	vars       map[string]string // of ARG and ENV; RUN gets both in its environment
	user       string
	exposed    []string
	labels     map[string]string
	entrypoint []string
	cmd        []string
}

// builder runs a Dockerfile's instructions.
type builder struct {
	context fileTree          // what COPY without --from copies from
	scratch string            // the directory for the stages' roots
	args    map[string]string // --build-arg
	cache   string            // of Go builds; empty for this machine's
	out     io.Writer
	stages  []*stage
}

func (b *builder) run(ctx context.Context, instructions []instruction) (*stage, error) {
	for _, in := range instructions {
		fmt.Fprintf(b.out, "%s %s\n", in.name, in.args)
		if in.name == "FROM" {
			if err := b.from(in); err != nil {
				return nil, err
			}
			continue
		}
		if len(b.stages) == 0 {
			return nil, in.errorf("comes before the first FROM, which is not supported here")
		}
		if err := b.apply(ctx, b.stages[len(b.stages)-1], in); err != nil {
			return nil, err
		}
	}
	if len(b.stages) == 0 {
		return nil, errors.New("the Dockerfile has no FROM")
	}
	return b.stages[len(b.stages)-1], nil
}

func (b *builder) from(in instruction) error {
	words := strings.Fields(in.args)
	s := &stage{base: words[0], workdir: "/", vars: map[string]string{}, labels: map[string]string{}}
	if len(words) == 3 && strings.EqualFold(words[1], "as") {
		s.name = words[2]
	} else if len(words) != 1 {
		return in.errorf("must be an image, or an image AS a name")
	}
	s.root = filepath.Join(b.scratch, fmt.Sprintf("stage%d", len(b.stages)))
	b.stages = append(b.stages, s)
	return os.Mkdir(s.root, 0o755)
}

func (b *builder) apply(ctx context.Context, s *stage, in instruction) (err error) {
	switch in.name {
	case "ARG":
		return b.arg(s, in)
	case "ENV":
		name, value, found := strings.Cut(in.args, "=")
		if !found || strings.ContainsAny(value, " \"'") {
			return in.errorf("must be one NAME=value without quotes")
		}
		s.vars[name] = s.expand(value)
	case "WORKDIR":
		s.workdir = s.resolve(s.expand(in.args))
		return os.MkdirAll(filepath.Join(s.root, s.workdir), 0o755)
	case "COPY":
		return b.copy(s, in)
	case "RUN":
		return b.shell(ctx, s, in)
	case "USER":
		s.user = s.expand(in.args)
	case "VOLUME":
		if _, err := os.Stat(filepath.Join(s.root, s.resolve(in.args))); err != nil {
			return in.errorf("the directory does not exist, so the engine would make it root's: %w", err)
		}
	case "LABEL":
		return s.label(in)
	case "EXPOSE":
		s.exposed = append(s.exposed, strings.Fields(in.args)...)
	case "ENTRYPOINT":
		s.entrypoint, err = in.execForm()
	case "CMD":
		s.cmd, err = in.execForm()
	default:
		return in.errorf("not known here")
	}
	return err
}

func (b *builder) arg(s *stage, in instruction) error {
	name, value, _ := strings.Cut(in.args, "=")
	if strings.ContainsAny(in.args, " \"'") {
		return in.errorf("must be one NAME or NAME=value without quotes")
	}
	if given, ok := b.args[name]; ok {
		value = given
	}
	s.vars[name] = value
	return nil
}

var pair = regexp.MustCompile(`^([a-z.]+)="([^"]*)" *`)

func (s *stage) label(in instruction) error {
	for rest := in.args; rest != ""; {
		found := pair.FindStringSubmatch(rest)
		if found == nil {
			return in.errorf("must be name=\"value\" pairs, not %s", rest)
		}
		s.labels[found[1]] = s.expand(found[2])
		rest = rest[len(found[0]):]
	}
	return nil
}

func (b *builder) copy(s *stage, in instruction) error {
	words := strings.Fields(s.expand(in.args))
	if len(words) < 2 {
		return in.errorf("must have a source and a destination")
	}
	sources, dest := words[:len(words)-1], words[len(words)-1]
	from := b.context
	if name, ok := in.flags["from"]; ok {
		at := slices.IndexFunc(b.stages, func(other *stage) bool { return other.name == name && other != s })
		if at < 0 {
			return in.errorf("there is no stage %q", name)
		}
		from = fileTree{root: b.stages[at].root}
	}
	intoDir := len(sources) > 1 || strings.HasSuffix(dest, "/")
	dest = filepath.Join(s.root, s.resolve(dest))
	for _, source := range sources {
		if err := from.copyTo(filepath.Clean("/"+source), dest, intoDir); err != nil {
			return in.errorf("%w", err)
		}
	}
	return nil
}

// shell runs a RUN line with the tools of this machine in the stage's working directory. It is not confined,
// so the line must use relative paths.
func (b *builder) shell(ctx context.Context, s *stage, in instruction) error {
	image, tag, _ := strings.Cut(s.base, ":")
	if image != "golang" {
		return in.errorf("cannot be run on %s: only golang images have their tools here", s.base)
	}
	for _, word := range strings.FieldsFunc(in.args, func(r rune) bool { return strings.ContainsRune(" =\"';&|<>", r) }) {
		if strings.HasPrefix(word, "/") || strings.Contains(word, "..") {
			return in.errorf("%s: only paths below the working directory can be run without a container", word)
		}
	}
	if err := hasGo(ctx, tag); err != nil {
		return in.errorf("%w", err)
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", in.args)
	cmd.Dir = filepath.Join(s.root, s.workdir)
	// A make that runs this program must not pass its variables on.
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "MAKE") })
	if b.cache != "" {
		cmd.Env = append(cmd.Env, "GOCACHE="+b.cache)
	}
	for name, value := range s.vars {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	cmd.Stdout, cmd.Stderr = b.out, b.out
	if err := cmd.Run(); err != nil {
		return in.errorf("%w", err)
	}
	return nil
}

// hasGo checks that this machine's Go has the version of the golang image.
func hasGo(ctx context.Context, tag string) error {
	version, err := exec.CommandContext(ctx, "go", "env", "GOVERSION").Output()
	if err != nil {
		return fmt.Errorf("go env GOVERSION: %w", err)
	}
	have := strings.TrimPrefix(strings.TrimSpace(string(version)), "go")
	if have != tag && !strings.HasPrefix(have, tag+".") {
		return fmt.Errorf("the image has Go %s, this machine %s", tag, have)
	}
	return nil
}

func (s *stage) expand(text string) string {
	return os.Expand(text, func(name string) string { return s.vars[name] })
}

func (s *stage) resolve(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(s.workdir, path)
}
