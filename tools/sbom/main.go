// Sbom lists the modules that are linked into a program, with their licences and the licences' texts, as
// CycloneDX. The same program and modules give the same bytes.
//
//	go run ./tools/sbom -version v1.2.3 bin/contextd > bin/contextd.cdx.json
package main

import (
	"debug/buildinfo"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/licenseclassifier/v2"
	"github.com/google/licenseclassifier/v2/assets"
)

func main() {
	version := flag.String("version", "dev", "version of the program")
	flag.Parse()
	if err := run(flag.Arg(0), *version, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(program, version string, out io.Writer) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	dirs, err := moduleDirs(info)
	if err != nil {
		return err
	}
	classifier, err := assets.DefaultClassifier()
	if err != nil {
		return err
	}
	describe := func(path, version string) (cyclonedx.Component, error) {
		licenses, err := licenses(classifier, dirs[path])
		if err != nil {
			return cyclonedx.Component{}, fmt.Errorf("%s %s: %w", path, version, err)
		}
		purl := "pkg:golang/" + path + "@" + version
		return cyclonedx.Component{
			BOMRef: purl, Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: purl, Licenses: &licenses,
		}, nil
	}

	main, err := describe(info.Main.Path, version)
	if err != nil {
		return err
	}
	main.Type = cyclonedx.ComponentTypeApplication
	standard, err := describe("std", strings.TrimPrefix(info.GoVersion, "go"))
	if err != nil {
		return err
	}
	components := []cyclonedx.Component{standard}
	for _, module := range info.Deps {
		component, err := describe(module.Path, module.Version)
		if err != nil {
			return err
		}
		components = append(components, component)
	}
	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{Component: &main}
	bom.Components = &components
	return cyclonedx.NewBOMEncoder(out, cyclonedx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom, cyclonedx.SpecVersion1_6)
}

// moduleDirs are the folders of the program's modules, and of the standard library.
func moduleDirs(info *buildinfo.BuildInfo) (map[string]string, error) {
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	args := []string{"list", "-m", "-f", "{{.Path}}\t{{.Dir}}", info.Main.Path}
	for _, module := range info.Deps {
		args = append(args, module.Path)
	}
	list, err := exec.Command("go", args...).Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	dirs := map[string]string{"std": strings.TrimSpace(string(goroot))}
	for line := range strings.Lines(string(list)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		dirs[path] = dir
	}
	return dirs, nil
}

var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice)([-.].*)?$`)

// licenses are the licences in the files at the root of a module, each with the file's text. A notice counts
// too: it is not a licence, but part of the terms.
func licenses(classifier *classifier.Classifier, dir string) (cyclonedx.Licenses, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var found cyclonedx.Licenses
	known := false
	for _, entry := range entries {
		if entry.IsDir() || !licenseFile.MatchString(entry.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, err
		}
		var ids []string
		for _, match := range classifier.Match(text).Matches {
			if match.MatchType == "License" && !slices.Contains(ids, match.Name) {
				ids = append(ids, match.Name)
				found = append(found, cyclonedx.LicenseChoice{License: &cyclonedx.License{ID: match.Name}})
			}
		}
		if len(ids) == 0 {
			found = append(found, cyclonedx.LicenseChoice{License: &cyclonedx.License{Name: entry.Name()}})
		}
		known = known || len(ids) > 0
		found[len(found)-1].License.Text = &cyclonedx.AttachedText{Content: string(text), ContentType: "text/plain"}
	}
	if !known {
		return nil, fmt.Errorf("no file of %s is a known licence", dir)
	}
	return found, nil
}
