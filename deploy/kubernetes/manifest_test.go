package kubernetes_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// TestPage compares the chart with the overlays, and their result with what the page promises.
func TestPage(t *testing.T) {
	c := follow(t)
	for _, v := range c.variants {
		t.Run(v.name, func(t *testing.T) {
			v.sidecarIsNative(t)
			v.probesHaveAPortOfTheirOwn(t)
			v.podsAreRestricted(t)
			v.stopFitsThePod(t)
			v.oneDaemonOpensAStore(t)
			v.selectorsFit(t)
			v.onlyWhoMayReachesThePod(t)
			c.daemonStarts(t, v)
			c.reachedWithProofOnly(t, v)
		})
	}
}

// template is the pod of a variant. claims are the volumes that a StatefulSet adds to it.
func (v variant) template(t *testing.T) (pod corev1.PodTemplateSpec, claims []corev1.PersistentVolumeClaim) {
	t.Helper()
	if sets := all[*appsv1.StatefulSet](v.objects); len(sets) > 0 {
		return sets[0].Spec.Template, sets[0].Spec.VolumeClaimTemplates
	}
	return find[*appsv1.Deployment](t, v.objects).Spec.Template, nil
}

// daemon is the daemon's container, and whether it is a sidecar.
func (v variant) daemon(t *testing.T) (c corev1.Container, sidecar bool) {
	t.Helper()
	pod, _ := v.template(t)
	spec := pod.Spec
	if len(spec.InitContainers) > 0 {
		return spec.InitContainers[0], true
	}
	return spec.Containers[0], false
}

func flagValue(c corev1.Container, flag string) string {
	for _, arg := range c.Args {
		if value, ok := strings.CutPrefix(arg, flag+"="); ok {
			return value
		}
	}
	return ""
}

func (v variant) sidecarIsNative(t *testing.T) {
	c, sidecar := v.daemon(t)
	if native := c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways; native != sidecar {
		t.Errorf("restartPolicy is %v", c.RestartPolicy)
	}
	if reached := flagValue(c, "--listen") != ""; reached == sidecar {
		t.Errorf("a sidecar listens at its socket alone: %q", c.Args)
	}
}

// probesHaveAPortOfTheirOwn: the probes use the port of metrics. The one for the start does not end a daemon that takes
// long to open its store.
func (v variant) probesHaveAPortOfTheirOwn(t *testing.T) {
	c, _ := v.daemon(t)
	for probe, path := range map[*corev1.Probe]string{c.StartupProbe: "/readyz", c.ReadinessProbe: "/readyz", c.LivenessProbe: "/livez"} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Path != path || probe.HTTPGet.Port.String() != "metrics" {
			t.Errorf("a probe does not ask for %s: %v", path, probe)
		}
	}
	if p := c.StartupProbe; p != nil && p.FailureThreshold*p.PeriodSeconds < 86400 {
		t.Errorf("a start may take %d times %d seconds", p.FailureThreshold, p.PeriodSeconds)
	}
	for _, port := range c.Ports {
		flag := map[string]string{"metrics": "--metrics-listen", "grpc": "--listen"}[port.Name]
		if flagValue(c, flag) != ":"+strconv.Itoa(int(port.ContainerPort)) {
			t.Errorf("the daemon does not listen at port %s", port.Name)
		}
	}
}

// podsAreRestricted checks the pods by the strictest pod security standard that a namespace can enforce.
func (v variant) podsAreRestricted(t *testing.T) {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	pod, _ := v.template(t)
	result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec))
	if !result.Allowed {
		t.Errorf("not allowed: %s", result.ForbiddenDetail())
	}
	if token := pod.Spec.AutomountServiceAccountToken; token == nil || *token {
		t.Error("a service account token is mounted that nothing needs")
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if s := c.SecurityContext; s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
			t.Errorf("%s may write to its root file system", c.Name)
		}
		if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
			t.Errorf("%s has no requests of CPU and memory, or no limit of memory", c.Name)
		}
		// GOMEMLIMIT would override the limit that the daemon derives from the container's.
		if slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "GOMEMLIMIT" }) {
			t.Errorf("%s has GOMEMLIMIT", c.Name)
		}
	}
}

// stopFitsThePod: the kubelet kills a pod that has not stopped within the grace period.
func (v variant) stopFitsThePod(t *testing.T) {
	pod, _ := v.template(t)
	c, _ := v.daemon(t)
	timeout, err := time.ParseDuration(flagValue(c, "--shutdown-timeout"))
	if err != nil {
		t.Fatal(err)
	}
	if grace := time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second; grace < timeout+5*time.Second {
		t.Errorf("the pod has %v to stop, the daemon takes %v", grace, timeout)
	}
}

// oneDaemonOpensAStore: at any time at most one pod may use a claim.
func (v variant) oneDaemonOpensAStore(t *testing.T) {
	pod, _ := v.template(t)
	for _, deployment := range all[*appsv1.Deployment](v.objects) {
		shared := slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.PersistentVolumeClaim != nil })
		recreated := deployment.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType
		if shared && (!recreated || *deployment.Spec.Replicas != 1) {
			t.Error("two pods may share a claim")
		}
	}
}

// selectorsFit: selectors of pods and services by labels, and of ports by names, must match.
func (v variant) selectorsFit(t *testing.T) {
	pod, _ := v.template(t)
	c, sidecar := v.daemon(t)
	selects := func(what string, selector map[string]string, of map[string]string) {
		if len(selector) == 0 || !labels.SelectorFromSet(selector).Matches(labels.Set(of)) {
			t.Errorf("the %s selects %v, not %v", what, selector, of)
		}
	}
	port := func(what, name string) {
		if !slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool { return p.Name == name }) {
			t.Errorf("the %s names port %q, which the container has not", what, name)
		}
	}
	selects("NetworkPolicy", find[*networkingv1.NetworkPolicy](t, v.objects).Spec.PodSelector.MatchLabels, pod.Labels)
	for _, budget := range all[*policyv1.PodDisruptionBudget](v.objects) {
		selects("PodDisruptionBudget", budget.Spec.Selector.MatchLabels, pod.Labels)
	}
	services := all[*corev1.Service](v.objects)
	for _, service := range services {
		selects("Service", service.Spec.Selector, pod.Labels)
		for _, p := range service.Spec.Ports {
			port("Service", p.TargetPort.String())
		}
	}
	for _, monitor := range all[*monitoringv1.PodMonitor](v.objects) {
		selects("PodMonitor", monitor.Spec.Selector.MatchLabels, pod.Labels)
		port("PodMonitor", *monitor.Spec.PodMetricsEndpoints[0].Port)
		alerted(t, monitor.Spec.PodMetricsEndpoints[0].RelabelConfigs)
	}
	for _, monitor := range all[*monitoringv1.ServiceMonitor](v.objects) {
		selects("ServiceMonitor", monitor.Spec.Selector.MatchLabels, services[0].Labels)
		port("ServiceMonitor", monitor.Spec.Endpoints[0].Port)
		alerted(t, monitor.Spec.Endpoints[0].RelabelConfigs)
	}
	if sidecar != (len(services) == 0) || sidecar != (len(all[*policyv1.PodDisruptionBudget](v.objects)) == 0) {
		t.Error("a standalone daemon has a Service and a PodDisruptionBudget, a sidecar has neither")
	}
}

// alerted checks that scraped metrics have the job name that the alerts use.
func alerted(t *testing.T, relabelings []monitoringv1.RelabelConfig) {
	t.Helper()
	rules, err := os.ReadFile("../prometheus/contextd.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if len(relabelings) != 1 || relabelings[0].TargetLabel != "job" || !strings.Contains(string(rules), `job="`+*relabelings[0].Replacement+`"`) {
		t.Errorf("no alert is about what is scraped: %v", relabelings)
	}
}

// onlyWhoMayReachesThePod: everybody may reach metrics, only pods with a label the API.
func (v variant) onlyWhoMayReachesThePod(t *testing.T) {
	c, sidecar := v.daemon(t)
	spec := find[*networkingv1.NetworkPolicy](t, v.objects).Spec
	if isolated := slices.Contains(spec.PolicyTypes, networkingv1.PolicyTypeEgress); isolated == sidecar {
		t.Error("a standalone daemon must call nobody, an agent whom it wants to")
	}
	var called []string
	for _, rule := range spec.Egress {
		for _, port := range rule.Ports {
			called = append(called, fmt.Sprint(port.Port))
		}
	}
	if database := flagValue(c, "--store") == "postgres" && !sidecar; database != slices.Equal(called, []string{"5432", "53", "53"}) || !database && len(called) > 0 {
		t.Errorf("a standalone daemon must call its database, if it has one, and nobody else: %v", called)
	}
	for _, rule := range spec.Ingress {
		if len(rule.Ports) != 1 || rule.Ports[0].Port == nil || rule.Ports[0].EndPort != nil {
			t.Fatalf("a rule opens not one port but %v", rule.Ports)
		}
		switch ":" + rule.Ports[0].Port.String() {
		case flagValue(c, "--metrics-listen"):
		case flagValue(c, "--listen"):
			if len(rule.From) != 1 || rule.From[0].PodSelector == nil || len(rule.From[0].PodSelector.MatchLabels) != 1 {
				t.Errorf("the API is open to %v", rule.From)
			}
		default:
			t.Errorf("the NetworkPolicy opens port %v, where nobody listens", rule.Ports[0].Port)
		}
	}
}
