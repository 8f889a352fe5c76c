package kubernetes_test

import (
	"bytes"
	"errors"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// container is the daemon's container on this machine, with folders for volumes.
type container struct {
	root string
	args []string
	env  []string
}

// mount creates the volumes of the daemon's container, with the content of the page's secrets.
func mount(t *testing.T, c *commands, v variant) container {
	t.Helper()
	dir, err := os.MkdirTemp("", "pod") //nolint:usetesting // A socket's path must be short.
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	daemon, _ := v.daemon(t)
	out := container{root: dir, args: slices.Clone(daemon.Args), env: os.Environ()}
	for _, m := range daemon.VolumeMounts {
		path := filepath.Join(dir, m.MountPath)
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
		for name, content := range volume(t, c, v, m.Name) {
			write(t, filepath.Join(path, name), content)
		}
		for i, arg := range out.args {
			out.args[i] = strings.Replace(arg, "="+m.MountPath+"/", "="+path+"/", 1)
		}
	}
	for _, variable := range daemon.Env {
		// The values of secrets that the page leaves to the reader do not matter.
		out.env = append(out.env, variable.Name+"="+variable.Value)
		if variable.ValueFrom != nil {
			out.env[len(out.env)-1] += "secret"
		}
	}
	return out
}

// volume is the content of a volume before the daemon starts.
func volume(t *testing.T, c *commands, v variant, name string) map[string][]byte {
	t.Helper()
	onDisk := map[string][]byte{"lost+found/none": nil}
	pod, claims := v.template(t)
	if slices.ContainsFunc(claims, func(claim corev1.PersistentVolumeClaim) bool { return claim.Name == name }) {
		return onDisk
	}
	at := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
	if at < 0 {
		t.Fatalf("the pod has no volume %q", name)
	}
	switch source := pod.Spec.Volumes[at]; {
	case source.Secret != nil:
		secret, ok := c.secrets[source.Secret.SecretName]
		if !ok {
			t.Errorf("no command of the page makes the secret %s", source.Secret.SecretName)
		}
		return secret
	case source.ConfigMap != nil:
		files := map[string][]byte{}
		for _, config := range all[*corev1.ConfigMap](v.objects) {
			if config.Name == source.ConfigMap.Name {
				for file, content := range config.Data {
					files[file] = []byte(content)
				}
			}
		}
		return files
	case source.PersistentVolumeClaim != nil:
		if !slices.ContainsFunc(all[*corev1.PersistentVolumeClaim](v.objects), func(claim *corev1.PersistentVolumeClaim) bool {
			return claim.Name == source.PersistentVolumeClaim.ClaimName
		}) {
			t.Errorf("there is no claim %s", source.PersistentVolumeClaim.ClaimName)
		}
		return onDisk
	case source.EmptyDir == nil:
		t.Errorf("volume %s is of a kind that this test does not know", name)
	}
	return nil
}

// onLoopback replaces a flag's address by a free port of this machine.
func (c container) onLoopback(t *testing.T, flag string) (address string) {
	t.Helper()
	for i, arg := range c.args {
		if strings.HasPrefix(arg, flag+"=:") {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			address = listener.Addr().String()
			listener.Close()
			c.args[i] = flag + "=" + address
		}
	}
	return address
}

// daemonStarts starts the real program as in each variant's container. It requests the paths of the probes,
// calls the API as a client of that variant, and stops the program as the kubelet would.
func (c *commands) daemonStarts(t *testing.T, v variant) {
	of, sidecar := v.daemon(t)
	if flagValue(of, "--store") == "postgres" && c.database == "" {
		t.Log("SKIPPED: no PostgreSQL is installed (Debian's package postgresql)")
		return
	}
	pod := mount(t, c, v)
	api, metrics := pod.onLoopback(t, "--listen"), pod.onLoopback(t, "--metrics-listen")
	client := []string{"CONTEXTD_ADDR=" + api, "CONTEXTD_CA=" + filepath.Join(c.dir, "tls.crt"), "CONTEXTD_TOKEN_FILE=" + filepath.Join(c.dir, "agent.token")}
	if sidecar {
		client = []string{"CONTEXTD_ADDR=" + pod.agentAddress(t, v)}
	}
	var log bytes.Buffer
	daemon := exec.CommandContext(t.Context(), c.program(), pod.args...)
	daemon.Env, daemon.Stderr = pod.env, &log
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	call := func(args ...string) {
		cmd := exec.CommandContext(t.Context(), c.program(), args...)
		cmd.Env = append(os.Environ(), client...)
		cmd.Stdin = strings.NewReader(`{"message":{"role":"ROLE_USER","blocks":[{"text":{"text":"Hello"}}]}}`)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("contextd %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	call("health", "--wait", "30s")
	call("append", "s")
	for _, probe := range []*corev1.Probe{of.StartupProbe, of.ReadinessProbe, of.LivenessProbe} {
		response, err := http.Get("http://" + metrics + probe.HTTPGet.Path)
		if err != nil {
			t.Error(err)
			continue
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s answers %s", probe.HTTPGet.Path, response.Status)
		}
	}
	if err := daemon.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	if err := daemon.Wait(); err != nil {
		t.Errorf("the daemon ends with %v", err)
	}
	if t.Failed() {
		t.Logf("contextd %s\n%s", strings.Join(pod.args, " "), &log)
	}
}

// agentAddress is the socket's address in the environment of the agent's container. The socket must be in a
// directory that it shares with the daemon.
func (c container) agentAddress(t *testing.T, v variant) string {
	t.Helper()
	pod, _ := v.template(t)
	agent := pod.Spec.Containers[0]
	at := slices.IndexFunc(agent.Env, func(e corev1.EnvVar) bool { return e.Name == "CONTEXTD_ADDR" })
	if at < 0 {
		t.Fatal("the agent has no CONTEXTD_ADDR")
	}
	path := strings.TrimPrefix(agent.Env[at].Value, "unix://")
	daemon, _ := v.daemon(t)
	shared := func(m corev1.VolumeMount) bool { return m.Name == "socket" && m.MountPath == filepath.Dir(path) }
	if !slices.ContainsFunc(agent.VolumeMounts, shared) || !slices.ContainsFunc(daemon.VolumeMounts, shared) {
		t.Errorf("the agent and the daemon do not share the directory of %s", path)
	}
	return "unix://" + filepath.Join(c.root, path)
}

// reachedWithProofOnly: the program accepts the addresses of the pod with the variant's secrets, and refuses
// them without. It does not listen on them: the store cannot be opened.
func (c *commands) reachedWithProofOnly(t *testing.T, v variant) {
	away := *c // with a database that does not exist
	away.secrets = maps.Clone(c.secrets)
	for name, files := range away.secrets {
		if _, ok := files["dsn"]; ok {
			away.secrets[name] = map[string][]byte{"dsn": []byte("host=/nowhere")}
		}
	}
	pod := mount(t, &away, v)
	exit := func(args []string) int {
		out, err := exec.CommandContext(t.Context(), c.program(), append(args, "--data-dir=/dev/null/none")...).CombinedOutput()
		var ended *exec.ExitError
		if !errors.As(err, &ended) {
			t.Fatalf("contextd %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return ended.ExitCode()
	}
	const invalid = 2
	if code := exit(slices.Clone(pod.args)); code == invalid {
		t.Errorf("the arguments are refused: %q", pod.args)
	}
	without := slices.DeleteFunc(slices.Clone(pod.args), func(arg string) bool { return strings.HasPrefix(arg, "--auth-tokens=") })
	if code := exit(slices.Clone(without)); len(without) < len(pod.args) && code != invalid {
		t.Errorf("without tokens the daemon ends with %d, want %d", code, invalid)
	}
}
