package main

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// check checks that the final image keeps the project's promises: a static binary of the requested version,
// which a user other than root can run, with a valid command line and the API's port exposed.
func check(ctx context.Context, s *stage, args map[string]string) error {
	version := args["VERSION"]
	if err := checkUser(s.user); err != nil {
		return err
	}
	if !slices.Contains(s.exposed, "7171") {
		return fmt.Errorf("EXPOSE: port 7171 is not exposed, only %q", s.exposed)
	}
	for _, name := range []string{"title", "description", "source", "licenses", "version", "revision"} {
		if s.labels["org.opencontainers.image."+name] == "" {
			return fmt.Errorf("LABEL: org.opencontainers.image.%s is not set", name)
		}
	}
	if got := s.labels["org.opencontainers.image.version"]; version != "" && got != version {
		return fmt.Errorf("LABEL: the version is %q, want %q", got, version)
	}
	if len(s.entrypoint) == 0 {
		return errors.New("ENTRYPOINT: there is none")
	}
	binary := filepath.Join(s.root, s.entrypoint[0])
	if err := checkStatic(binary); err != nil {
		return fmt.Errorf("%s: %w", s.entrypoint[0], err)
	}
	out, err := exec.CommandContext(ctx, binary, "version").CombinedOutput()
	if err != nil {
		return fmt.Errorf("contextd version: %w\n%s", err, out)
	}
	for _, name := range []string{"VERSION", "REVISION", "REVISION_DATE"} {
		if !strings.Contains(string(out), args[name]) {
			return fmt.Errorf("contextd version does not say %q but:\n%s", args[name], out)
		}
	}
	for _, arg := range s.cmd {
		if strings.HasPrefix(arg, "-") {
			return fmt.Errorf("CMD: %s overrides the variable that sets it", arg)
		}
	}
	// With --help the whole command line is parsed, but nothing is started.
	argv := slices.Concat(s.entrypoint[1:], s.cmd, []string{"--help"})
	if out, err := exec.CommandContext(ctx, binary, argv...).CombinedOutput(); err != nil {
		return fmt.Errorf("CMD is not accepted: contextd %s: %w\n%s", strings.Join(argv, " "), err, out)
	}
	return nil
}

func checkUser(user string) error {
	uid, _, _ := strings.Cut(user, ":")
	if n, err := strconv.Atoi(uid); err != nil || n == 0 {
		return fmt.Errorf("USER %q: must be a number other than 0, so that runAsNonRoot can be checked", user)
	}
	return nil
}

func checkStatic(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o005 != 0o005 {
		return fmt.Errorf("mode %v: others may not run it", info.Mode())
	}
	binary, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer binary.Close()
	for _, segment := range binary.Progs {
		if segment.Type == elf.PT_INTERP {
			return errors.New("is linked dynamically; the image has no loader")
		}
	}
	return nil
}
