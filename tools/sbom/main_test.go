package main

import (
	"bytes"
	"debug/buildinfo"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/licenseclassifier/v2/assets"
)

// accepted are licences that are compatible with the daemon's.
var accepted = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT"}

// TestDaemon lists the modules of the real daemon twice.
func TestDaemon(t *testing.T) {
	program := filepath.Join(t.TempDir(), "contextd")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, "../../cmd/contextd").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	var first, second bytes.Buffer
	for _, out := range []*bytes.Buffer{&first, &second} {
		if err := run(program, "v1.2.3", out); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two lists of one program differ")
	}
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(&first, cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if main := bom.Metadata.Component; main.Version != "v1.2.3" || (*main.Licenses)[0].License.ID != "Apache-2.0" {
		t.Errorf("the program is %s %s", main.Name, main.Version)
	}
	var listed []string
	for _, component := range *bom.Components {
		listed = append(listed, component.Name)
		for _, choice := range *component.Licenses {
			// A file whose name is not a licence's may be a notice.
			if id := choice.License.ID; id != "" && !slices.Contains(accepted, id) {
				t.Errorf("%s has the licence %s", component.Name, id)
			}
		}
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	linked := []string{"std"}
	for _, module := range info.Deps {
		linked = append(linked, module.Path)
	}
	if !slices.Equal(listed, linked) {
		t.Errorf("listed are %q, linked %q", listed, linked)
	}
}

func TestUnknownLicence(t *testing.T) {
	classifier, err := assets.DefaultClassifier()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "LICENSE"), []byte("Ask me first."), 0o600); err != nil {
		t.Fatal(err)
	}
	if found, err := licenses(classifier, dir); err == nil {
		t.Errorf("found %v", found)
	}
}
