// Package kubernetes_test holds the manifests to what the README promises of
// them, with the API types of Kubernetes.
package kubernetes_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
)

const (
	manifest   = "sidecar.yaml"
	socketDir  = "/run/contextd"
	socketPath = socketDir + "/contextd.sock"
)

// decode reads a manifest strictly: an unknown or doubled field is an error.
func decode(t *testing.T, manifest []byte) []runtime.Object {
	t.Helper()
	objects, err := decodeStrict(manifest)
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func decodeStrict(manifest []byte) ([]runtime.Object, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, networkingv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	documents := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
	var objects []runtime.Object
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
}

func readManifest(t *testing.T) []byte {
	t.Helper()
	content, err := os.ReadFile(manifest)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// find returns the only object of its type.
func find[T runtime.Object](t *testing.T, objects []runtime.Object) T {
	t.Helper()
	var found []T
	for _, object := range objects {
		if o, ok := object.(T); ok {
			found = append(found, o)
		}
	}
	if len(found) != 1 {
		t.Fatalf("%s holds %d objects of type %T, want 1", manifest, len(found), *new(T))
	}
	return found[0]
}

func pod(t *testing.T) corev1.PodSpec {
	t.Helper()
	return find[*appsv1.Deployment](t, decode(t, readManifest(t))).Spec.Template.Spec
}

func sidecar(t *testing.T) corev1.Container {
	t.Helper()
	spec := pod(t)
	if len(spec.InitContainers) != 1 {
		t.Fatalf("%d init containers, want the sidecar alone", len(spec.InitContainers))
	}
	return spec.InitContainers[0]
}

// TestDecodingIsStrict shows that the decoder would notice.
func TestDecodingIsStrict(t *testing.T) {
	good := string(readManifest(t))
	for from, to := range map[string]string{
		"restartPolicy: Always": "restartPolitics: Always",
		"periodSeconds: 1":      "periodSeconds: soon",
		"kind: Deployment":      "kind: Deployments",
		"readOnly: true":        "readOnly: true\n              readOnly: true",
	} {
		bad := strings.Replace(good, from, to, 1)
		if bad == good {
			t.Errorf("%s does not hold %q", manifest, from)
		}
		if _, err := decodeStrict([]byte(bad)); err == nil {
			t.Errorf("%q instead of %q is accepted", to, from)
		}
	}
}

func TestSidecarIsNative(t *testing.T) {
	c := sidecar(t)
	if c.RestartPolicy == nil || *c.RestartPolicy != corev1.ContainerRestartPolicyAlways {
		t.Errorf("restartPolicy is %v, want Always", c.RestartPolicy)
	}
	if len(pod(t).Containers) == 0 {
		t.Error("there is no agent next to the sidecar")
	}
}

// TestProbesHaveAPortOfTheirOwn: the API is at the socket alone, and the probes ask where the
// metrics are.
func TestProbesHaveAPortOfTheirOwn(t *testing.T) {
	c := sidecar(t)
	if slices.ContainsFunc(c.Args, func(arg string) bool { return strings.HasPrefix(arg, "--listen") }) {
		t.Error("the API has an address of the pod")
	}
	_, port, _ := strings.Cut(flagValue(t, c, "--metrics-listen"), ":")
	for name, of := range map[string]struct {
		probe *corev1.Probe
		path  string
	}{
		"startup": {c.StartupProbe, "/readyz"}, "readiness": {c.ReadinessProbe, "/readyz"}, "liveness": {c.LivenessProbe, "/livez"},
	} {
		if of.probe == nil || of.probe.HTTPGet == nil || of.probe.HTTPGet.Path != of.path {
			t.Errorf("the %s probe does not ask for %s", name, of.path)
			continue
		}
		if !slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool {
			return p.Name == of.probe.HTTPGet.Port.String() && strconv.Itoa(int(p.ContainerPort)) == port
		}) {
			t.Errorf("the %s probe asks port %s, which is not that of the metrics", name, of.probe.HTTPGet.Port.String())
		}
	}
}

func TestContainersAreConfined(t *testing.T) {
	spec := pod(t)
	security := spec.SecurityContext
	if security == nil || security.RunAsNonRoot == nil || !*security.RunAsNonRoot {
		t.Error("runAsNonRoot is not set")
	}
	if security.RunAsUser == nil || *security.RunAsUser == 0 {
		t.Error("runAsUser is not a user other than root")
	}
	if security.SeccompProfile == nil || security.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Error("seccompProfile is not RuntimeDefault")
	}
	if spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
		t.Error("a service account token is mounted that nothing needs")
	}
	for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
		s := c.SecurityContext
		if s == nil {
			t.Errorf("%s has no security context", c.Name)
			continue
		}
		if s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
			t.Errorf("%s may write to its root file system", c.Name)
		}
		if s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation {
			t.Errorf("%s may gain privileges", c.Name)
		}
		if s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 {
			t.Errorf("%s keeps capabilities", c.Name)
		}
		if s.RunAsUser != nil || s.RunAsNonRoot != nil || s.SeccompProfile != nil || s.Privileged != nil {
			t.Errorf("%s sets aside what the pod says", c.Name)
		}
		if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
			t.Errorf("%s has no requests of CPU and memory, or no limit of memory", c.Name)
		}
	}
}

func TestSocketAndDataAreOnVolumes(t *testing.T) {
	spec, c := pod(t), sidecar(t)
	if got := flagValue(t, c, "--unix-socket"); got != socketPath {
		t.Errorf("the socket is %q, want %q", got, socketPath)
	}
	if got := flagValue(t, c, "--store"); got != "disk" {
		t.Errorf("the store is %q, want disk", got)
	}
	socket := mountedVolume(t, spec, c, socketDir)
	if socket.EmptyDir == nil {
		t.Error("the socket is not on an emptyDir")
	}
	for _, agent := range spec.Containers {
		if mountedVolume(t, spec, agent, socketDir).Name != socket.Name {
			t.Errorf("%s does not share the socket's directory", agent.Name)
		}
	}
	data := mountedVolume(t, spec, c, flagValue(t, c, "--data-dir"))
	claim := find[*corev1.PersistentVolumeClaim](t, decode(t, readManifest(t)))
	if data.PersistentVolumeClaim == nil || data.PersistentVolumeClaim.ClaimName != claim.Name {
		t.Errorf("the data is not on the claim %s", claim.Name)
	}
}

func TestOnlyMetricsAreReachable(t *testing.T) {
	objects := decode(t, readManifest(t))
	policy := find[*networkingv1.NetworkPolicy](t, objects)
	deployment := find[*appsv1.Deployment](t, objects)
	for key, value := range policy.Spec.PodSelector.MatchLabels {
		if deployment.Spec.Template.Labels[key] != value {
			t.Errorf("the NetworkPolicy selects %s=%s, which the pod does not carry", key, value)
		}
	}
	if !slices.Equal(policy.Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) {
		t.Errorf("policyTypes are %v, want Ingress", policy.Spec.PolicyTypes)
	}
	_, metrics, _ := strings.Cut(flagValue(t, sidecar(t), "--metrics-listen"), ":")
	for _, rule := range policy.Spec.Ingress {
		if len(rule.Ports) == 0 {
			t.Error("a rule of the NetworkPolicy opens every port")
		}
		for _, port := range rule.Ports {
			if port.Port == nil || port.Port.String() != metrics || port.EndPort != nil {
				t.Errorf("the NetworkPolicy opens port %v, want %s alone", port.Port, metrics)
			}
		}
	}
}

// TestArgumentsAreAccepted gives the sidecar's arguments to the real program.
// With --help it parses them all and starts nothing.
func TestArgumentsAreAccepted(t *testing.T) {
	const source = "../../cmd/contextd"
	program := filepath.Join(t.TempDir(), "contextd")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, source).CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	args := append(slices.Clone(sidecar(t).Args), "--help")
	if out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput(); err != nil {
		t.Errorf("contextd %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	args[1] = "--no-such-flag"
	if err := exec.CommandContext(t.Context(), program, args...).Run(); err == nil {
		t.Errorf("contextd %s is accepted: this test shows nothing", strings.Join(args, " "))
	}
}

func mountedVolume(t *testing.T, spec corev1.PodSpec, c corev1.Container, path string) corev1.Volume {
	t.Helper()
	mount := slices.IndexFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == path })
	if mount < 0 {
		t.Fatalf("%s has nothing mounted at %q", c.Name, path)
	}
	name := c.VolumeMounts[mount].Name
	volume := slices.IndexFunc(spec.Volumes, func(v corev1.Volume) bool { return v.Name == name })
	if volume < 0 {
		t.Fatalf("the pod has no volume %q", name)
	}
	return spec.Volumes[volume]
}

func flagValue(t *testing.T, c corev1.Container, flag string) string {
	t.Helper()
	for _, arg := range c.Args {
		if value, found := strings.CutPrefix(arg, flag+"="); found {
			return value
		}
	}
	t.Fatalf("%s is not given %s", c.Name, flag)
	return ""
}
