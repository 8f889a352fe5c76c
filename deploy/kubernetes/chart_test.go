package kubernetes_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// TestBadValues: an invalid value is refused, and the error names it.
func TestBadValues(t *testing.T) {
	for values, want := range map[string][]string{
		`mode: daemonset`:                                          {"/mode", "sidecar", "standalone"},
		`storage: {enabled: false}`:                                {"storage", "not allowed"},
		`persistence: {size: plenty}`:                              {"/persistence/size", "pattern"},
		`persistence: {enabled: "no"}`:                             {"/persistence/enabled", "want boolean"},
		`image: {digest: v1}`:                                      {"/image/digest", "pattern"},
		`agent: {image: ""}`:                                       {"/agent/image", "minLength"},
		`env: [{value: x}]`:                                        {"/env/0", "name"},
		`resources: {limits: {memory: 512MiB}}`:                    {"/resources/limits/memory", "pattern"},
		`networkPolicy: {clients: []}`:                             {"/networkPolicy/clients", "minItems"},
		`pod: {hostNetwork: true}`:                                 {"/pod", "hostNetwork"},
		`config: {listen: ":1"}`:                                   {"config.listen", "the chart sets this itself"},
		`replicas: 2`:                                              {"replicas", "persistence.enabled"},
		`{postgres: {enabled: true}, encryption: {enabled: true}}`: {"encryption.enabled", "postgres.enabled"},
		`postgres: {dsn: x}`:                                       {"/postgres", "dsn"},
		`config: {postgres_dsn: x}`:                                {"config.postgres_dsn", "the chart sets this itself"},
		`shutdownTimeoutSeconds: 56`:                               {"terminationGracePeriodSeconds", "at least 61"},
		`{mode: standalone, auth: {tokens: false}}`:                {"auth", "clientCertificates"},
		`{mode: standalone, auth: {tls: secret}}`:                  {"/auth", "tls"},
		`{encryption: {enabled: true, key: secret}}`:               {"/encryption", "key"},
	} {
		_, err := helm(t.Context(), "a", parsed(t, values))
		for _, part := range want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: error %v does not say %q", values, err, part)
			}
		}
	}
}

func parsed(t *testing.T, text string) map[string]any {
	t.Helper()
	var values map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// TestValues sets each value that the page's variants do not set, and looks for it in the manifest.
func TestValues(t *testing.T) {
	for values, want := range map[string][]string{
		`image: {repository: r.example/c, tag: v9, pullPolicy: Always}`:                                                               {"image: r.example/c:v9", "imagePullPolicy: Always"},
		`image: {digest: "sha256:` + strings.Repeat("ab", 32) + `"}`:                                                                  {"image: ghcr.io/contextd/contextd@sha256:abab"},
		`resources: {limits: {cpu: 1, memory: 1Gi}}`:                                                                                  {"memory: 1Gi", "cpu: 1"},
		`{persistence: {enabled: false}, replicas: 3}`:                                                                                {"replicas: 3", "emptyDir"},
		`{persistence: {enabled: false}, encryption: {enabled: true, secretName: k}}`:                                                 {"secretName: k", "sizeLimit: 1Gi"},
		`persistence: {size: 1Ti, storageClassName: fast}`:                                                                            {"storage: 1Ti", "storageClassName: fast"},
		`{shutdownTimeoutSeconds: 40, terminationGracePeriodSeconds: 90}`:                                                             {"--shutdown-timeout=40s", "terminationGracePeriodSeconds: 90"},
		`agent: {command: [run], args: [-x], env: [{name: A, value: b}]}`:                                                             {"- run", "- -x", "name: A", "CONTEXTD_ADDR"},
		`{mode: standalone, persistence: {enabled: false}}`:                                                                           {"kind: StatefulSet", "emptyDir"},
		`{mode: standalone, auth: {tokens: false, clientCertificates: true, tlsSecretName: s}}`:                                       {"--tls-client-ca=/etc/contextd/tls/ca.crt", "secretName: s"},
		`{mode: standalone, auth: {tokensSecretName: s}}`:                                                                             {"secretName: s", "secretName: a-tls"},
		`{mode: standalone, networkPolicy: {clients: [{namespaceSelector: {}}], egress: [{ports: [{port: 443}]}]}}`:                   {"namespaceSelector: {}", "port: 443"},
		`{monitor: {enabled: true, labels: {release: p}}}`:                                                                            {"release: p", "kind: PodMonitor"},
		`{pod: {nodeSelector: {disk: fast}, priorityClassName: high}, podLabels: {team: t}, podAnnotations: {x: z}}`:                  {"disk: fast", "priorityClassName: high", "team: t", "x: z"},
		`{mode: standalone, postgres: {enabled: true, secretName: s, port: 6432}, networkPolicy: {egress: [{ports: [{port: 443}]}]}}`: {"kind: Deployment", "secretName: s", "port: 6432", "port: 443"},
		`config: {import_memory: 1GiB, log_format: text}`:                                                                             {"import_memory: 1GiB", "--config="},
	} {
		manifest, err := helm(t.Context(), "a", parsed(t, values))
		if err != nil {
			t.Errorf("%s: %v", values, err)
			continue
		}
		if _, err := decode(manifest); err != nil {
			t.Errorf("%s: %v", values, err)
		}
		sorted := normalise(t, manifest)
		for _, part := range want {
			if !strings.Contains(sorted, part) {
				t.Errorf("%s does not give %q:\n%s", values, part, sorted)
			}
		}
	}
}

// TestConfigWins: the chart must not set flags for settings that config has, since a flag would override them
// silently.
func TestConfigWins(t *testing.T) {
	manifest, err := helm(t.Context(), "a", parsed(t, `config: {import_memory: 1GiB, log_format: text, max_session_events: 1000}`))
	if err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"--import-memory", "--log-format", "--max-session-events"} {
		if strings.Contains(string(manifest), flag) {
			t.Errorf("%s has the priority over config", flag)
		}
	}
}

// TestConfigReplacesPods: running pods do not notice a changed ConfigMap, so a changed one gets another name.
func TestConfigReplacesPods(t *testing.T) {
	names := map[string]bool{}
	for _, values := range []string{`config: {max_sessions: 1}`, `config: {max_sessions: 2}`} {
		manifest, err := helm(t.Context(), "a", parsed(t, values))
		if err != nil {
			t.Fatal(err)
		}
		objects, err := decode(manifest)
		if err != nil {
			t.Fatal(err)
		}
		names[find[*corev1.ConfigMap](t, objects).Name] = true
	}
	if len(names) != 2 {
		t.Errorf("two configurations have the names %v", names)
	}
}
