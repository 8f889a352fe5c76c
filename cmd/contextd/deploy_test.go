package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// composeFile has the fields of the Compose specification that the file may use. Any other field is an error.
type composeFile struct {
	Name     string
	Services map[string]struct {
		Image string
		Build struct {
			Context string
			Args    map[string]string
		}
		Command, Ports, Volumes []string
		Healthcheck             struct {
			Test              []string
			Interval, Timeout string
			StartPeriod       string `yaml:"start_period"`
		}
		Restart         string
		StopGracePeriod string   `yaml:"stop_grace_period"`
		MemLimit        string   `yaml:"mem_limit"`
		ReadOnly        bool     `yaml:"read_only"`
		CapDrop         []string `yaml:"cap_drop"`
		SecurityOpt     []string `yaml:"security_opt"`
	}
	Volumes map[string]*struct{}
}

func TestComposeFile(t *testing.T) {
	text, err := os.ReadFile("../../deploy/compose/compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file composeFile
	strict := yaml.NewDecoder(bytes.NewReader(text))
	strict.KnownFields(true)
	if err := strict.Decode(&file); err != nil {
		t.Fatal(err)
	}
	service := file.Services["contextd"]
	acceptsSettings(t, service.Command)
	if _, err := os.Stat(filepath.Join("..", "..", "deploy", "compose", service.Build.Context, "Dockerfile")); err != nil {
		t.Errorf("build.context: %v", err)
	}
	for _, port := range service.Ports {
		if !strings.HasPrefix(port, "127.0.0.1:") {
			t.Errorf("port %s can be reached from other machines", port)
		}
	}
	for _, volume := range service.Volumes {
		name, _, _ := strings.Cut(volume, ":")
		if _, ok := file.Volumes[name]; !ok {
			t.Errorf("there is no volume %s", name)
		}
	}
	if err := exec.Command(build(t), append(service.Healthcheck.Test[2:], "--help")...).Run(); err != nil {
		t.Errorf("healthcheck %q: %v", service.Healthcheck.Test, err)
	}
}

// acceptsSettings checks that serve accepts the flags of a command.
func acceptsSettings(t *testing.T, command []string) {
	t.Helper()
	if command[0] != "serve" {
		t.Fatalf("%q does not serve", command)
	}
	cmd := exec.Command(build(t), append([]string{"config", "show"}, command[1:]...)...)
	cmd.Env = []string{}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%q: %v\n%s", command, err, out)
	}
}

// mostExposed is the highest allowed exposure of a unit as systemd rates it, in percent. Up to 20 systemd
// calls a unit "safe".
const mostExposed = "20"

func TestSystemdUnits(t *testing.T) {
	unit, err := os.ReadFile("../../deploy/systemd/contextd.service")
	if err != nil {
		t.Fatal(err)
	}
	if head, _, _ := strings.Cut(string(unit), "[Service]"); !strings.Contains(head, "\nStartLimitIntervalSec=0\n") {
		t.Error("systemd gives the daemon up after a few attempts to start it")
	}
	exe := regexp.MustCompile(`(?m)^ExecStart=(\S+) (.*)$`).FindStringSubmatch(string(unit))
	acceptsSettings(t, strings.Fields(exe[2]))
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("SKIPPED: there is no systemd-analyze")
	}
	dir := t.TempDir()
	socket, err := os.ReadFile("../../deploy/systemd/contextd.socket")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"contextd.socket": string(socket), "contextd.service": strings.Replace(string(unit), exe[1], build(t), 1),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"verify", "--man=no", filepath.Join(dir, "contextd.socket"), filepath.Join(dir, "contextd.service")},
		{"security", "--offline=yes", "--no-pager", "--threshold=" + mostExposed, filepath.Join(dir, "contextd.service")},
	} {
		if out, err := exec.Command(analyze, args...).CombinedOutput(); err != nil || args[0] == "verify" && bytes.Contains(out, []byte(dir)) {
			t.Errorf("%s: %v\n%s", args[0], err, out)
		}
	}
}
