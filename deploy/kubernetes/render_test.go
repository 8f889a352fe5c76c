// Package kubernetes_test renders the Kustomize overlays and the Helm chart, compares them with each other
// and with Kubernetes' own types, and starts the real daemon with their settings.
package kubernetes_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

func kustomize(t *testing.T, dir string) []byte {
	t.Helper()
	resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := resources.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	return manifest
}

// helm validates values by the chart's schema and renders the chart.
func helm(ctx context.Context, release string, values map[string]any) ([]byte, error) {
	chart, err := loader.Load("chart")
	if err != nil {
		return nil, err
	}
	all, err := util.ToRenderValues(chart, values, common.ReleaseOptions{Name: release, Namespace: "default", IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	files, err := engine.Engine{Strict: true}.RenderWithContext(ctx, chart, all)
	if err != nil {
		return nil, err
	}
	var manifest strings.Builder
	for _, content := range files {
		manifest.WriteString("---\n" + content + "\n")
	}
	return []byte(manifest.String()), nil
}

// documents splits a manifest, and drops documents that only have comments.
func documents(manifest []byte) ([][]byte, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifest)))
	var all [][]byte
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		var content map[string]any
		if err := yaml.UnmarshalStrict(document, &content); err != nil {
			return nil, err
		}
		if len(content) > 0 {
			all = append(all, document)
		}
	}
}

// normalise sorts a manifest's documents and their members, and drops comments.
func normalise(t *testing.T, manifest []byte) string {
	t.Helper()
	all, err := documents(manifest)
	if err != nil {
		t.Fatal(err)
	}
	var sorted []string
	for _, document := range all {
		var content map[string]any
		if err := yaml.Unmarshal(document, &content); err != nil {
			t.Fatal(err)
		}
		text, err := yaml.Marshal(content)
		if err != nil {
			t.Fatal(err)
		}
		sorted = append(sorted, string(text))
	}
	slices.Sort(sorted)
	return strings.Join(sorted, "---\n")
}

// decode decodes a manifest strictly: unknown kinds, and unknown or repeated fields, are errors.
func decode(manifest []byte) ([]runtime.Object, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme, monitoringv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
	all, err := documents(manifest)
	if err != nil {
		return nil, err
	}
	var objects []runtime.Object
	for _, document := range all {
		object, _, err := decoder.Decode(document, nil, nil)
		if err != nil {
			return nil, err
		}
		objects = append(objects, object)
	}
	return objects, nil
}

// find returns the only object of its type.
func find[T runtime.Object](t *testing.T, objects []runtime.Object) T {
	t.Helper()
	found := all[T](objects)
	if len(found) != 1 {
		t.Fatalf("%d objects of type %T, want 1", len(found), *new(T))
	}
	return found[0]
}

func all[T runtime.Object](objects []runtime.Object) []T {
	var found []T
	for _, object := range objects {
		if o, ok := object.(T); ok {
			found = append(found, o)
		}
	}
	return found
}

// TestDecodingIsStrict shows that decode detects errors.
func TestDecodingIsStrict(t *testing.T) {
	good := string(kustomize(t, "base/sidecar"))
	for from, to := range map[string]string{
		"restartPolicy: Always": "restartPolitics: Always",
		"periodSeconds: 1":      "periodSeconds: soon",
		"kind: Deployment":      "kind: Deployments",
		"readOnly: true":        "readOnly: true\n          readOnly: true",
	} {
		bad := strings.Replace(good, from, to, 1)
		if bad == good {
			t.Errorf("the manifest does not hold %q", from)
		}
		if _, err := decode([]byte(bad)); err == nil {
			t.Errorf("%q instead of %q is accepted", to, from)
		}
	}
}
