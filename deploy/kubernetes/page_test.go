package kubernetes_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/strvals"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"
)

const page = "../../docs/kubernetes.md"

// variant is what a block of commands on the page creates in the cluster.
type variant struct {
	name    string // its first command
	objects []runtime.Object
}

// commands are the results of the page's commands.
type commands struct {
	variants []variant
	secrets  map[string]map[string][]byte // the files of secrets that kubectl create secret makes
	dir      string                       // where the commands ran
	database string                       // address of a PostgreSQL; empty if none is installed
}

// program is the real daemon.
func (c *commands) program() string { return filepath.Join(c.dir, "bin", "contextd") }

func blocks(t *testing.T, language string) []string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, block := range regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		all = append(all, block[1])
	}
	return all
}

// follow runs the page's commands. What they would send to a cluster is rendered. Within a block, kubectl and
// helm must give the same.
func follow(t *testing.T) *commands {
	t.Helper()
	c := &commands{secrets: map[string]map[string][]byte{}, dir: t.TempDir()}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-C", "../..", "-o", c.program(), "./cmd/contextd").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	deploy, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(deploy, filepath.Join(c.dir, "deploy")); err != nil {
		t.Fatal(err)
	}
	writeCertificate(t, c.dir)
	c.database = database(t, c.dir)
	write(t, filepath.Join(c.dir, "dsn"), []byte(c.database))
	for _, block := range blocks(t, "yaml") {
		name, _, _ := strings.Cut(strings.TrimPrefix(block, "# "), "\n")
		write(t, filepath.Join(c.dir, name), []byte(block))
	}
	for _, block := range blocks(t, "sh") {
		first, manifest := "", []byte(nil)
		for line := range strings.Lines(block) {
			line = strings.TrimSpace(line)
			rendered := c.run(t, line)
			if rendered == nil {
				continue
			}
			if manifest == nil {
				first, manifest = line, rendered
			} else if got, want := normalise(t, rendered), normalise(t, manifest); got != want {
				t.Errorf("%s gives other objects than %s:\n%s\nwant:\n%s", line, first, got, want)
			}
		}
		objects, err := decode(manifest)
		if err != nil {
			t.Fatalf("%s: %v", first, err)
		}
		c.variants = append(c.variants, variant{first, objects})
	}
	return c
}

// database starts a PostgreSQL that ends with the test.
func database(t *testing.T, dir string) (address string) {
	t.Helper()
	program := filepath.Join(dir, "pgserver")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-C", "../..", "-o", program, "./internal/log/pglog/pgtest/pgserver").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	server := exec.Command(program)
	var log bytes.Buffer
	server.Stderr = &log
	end, err := server.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	said, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := io.ReadAll(said)
	t.Cleanup(func() {
		_ = end.Close() // it may have ended already
		if err := server.Wait(); err != nil {
			t.Errorf("%v\n%s", err, &log)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(line))
}

// run runs a command of the page, and returns what it would send to the cluster. Secrets are recorded
// instead.
func (c *commands) run(t *testing.T, line string) []byte {
	t.Helper()
	words := strings.Fields(line)
	switch {
	case words[0] == "contextd":
		cmd := exec.CommandContext(t.Context(), "sh", "-euc", line)
		cmd.Dir = c.dir
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(c.program())+":"+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		return nil
	case strings.HasPrefix(line, "kubectl create secret "):
		c.createSecret(t, words[3:])
		return nil
	case strings.HasPrefix(line, "kubectl apply -k "):
		return kustomize(t, filepath.Join(c.dir, words[3]))
	case words[0] == "helm":
		rendered, err := c.helm(t.Context(), words[1:])
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		return rendered
	}
	t.Fatalf("%s: this test does not know the command", line)
	return nil
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// createSecret records a secret; words are the arguments after "kubectl create secret".
func (c *commands) createSecret(t *testing.T, words []string) {
	t.Helper()
	kind, name := words[0], words[1]
	files := map[string][]byte{}
	for _, flag := range words[2:] {
		option, path, _ := strings.Cut(flag, "=")
		content, err := os.ReadFile(filepath.Join(c.dir, path))
		if err != nil {
			t.Fatal(err)
		}
		switch kind + " " + option {
		case "generic --from-file":
			files[path] = content
		case "tls --cert":
			files["tls.crt"] = content
		case "tls --key":
			files["tls.key"] = content
		default:
			t.Fatalf("kubectl create secret %s: this test does not know %s", kind, option)
		}
	}
	c.secrets[name] = files
}

// helm renders what helm install, or helm upgrade --install, would send.
func (c *commands) helm(ctx context.Context, words []string) ([]byte, error) {
	values := map[string]any{}
	var names []string
	for i := 0; i < len(words); i++ {
		var err error
		switch words[i] {
		case "--set":
			i++
			err = strvals.ParseInto(words[i], values)
		case "-f":
			i++
			var content []byte
			if content, err = os.ReadFile(filepath.Join(c.dir, words[i])); err == nil {
				err = yaml.UnmarshalStrict(content, &values)
			}
		case "install", "upgrade", "--install":
		default:
			names = append(names, words[i])
		}
		if err != nil {
			return nil, err
		}
	}
	if len(names) != 2 || names[1] != "deploy/kubernetes/chart" {
		return nil, fmt.Errorf("not a release and the chart: %q", names)
	}
	return helm(ctx, names[0], values)
}

// writeCertificate writes tls.crt and tls.key, which the page presupposes.
func writeCertificate(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"contextd.default.svc"},
		IsCA: true, BasicConstraintsValid: true,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "tls.crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate}))
	write(t, filepath.Join(dir, "tls.key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}))
}
