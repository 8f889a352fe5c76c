package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A project as small as the tool allows: a program that prints its version and has one flag.
const (
	program = `package main

import (
	"fmt"
	"os"
)

var version string

func main() {
	if len(os.Args) > 1 && os.Args[1] == "version" {
		fmt.Println("program", version)
		return
	}
	if os.Args[1] != "serve" {
		os.Exit(2)
	}
}
`
	dockerfile = `# A comment.
FROM --platform=$BUILDPLATFORM golang:GOVERSION AS build
WORKDIR /src
COPY go.mod ./
COPY . .
ARG VERSION=dev
RUN --mount=type=cache,target=/go/pkg/mod \
    CGO_ENABLED=0 go build -trimpath -ldflags "-X main.version=$VERSION" -o bin/program .
RUN mkdir -p bin/data

FROM gcr.io/distroless/static:nonroot
ARG VERSION=dev
LABEL org.opencontainers.image.title="program" org.opencontainers.image.description="A program." \
      org.opencontainers.image.source="https://example.com" org.opencontainers.image.licenses="MIT" \
      org.opencontainers.image.version="$VERSION" org.opencontainers.image.revision="abc"
COPY --from=build /src/bin/program /usr/local/bin/program
COPY --from=build --chown=65532:65532 /src/bin/data /var/lib/program
USER 65532:65532
VOLUME /var/lib/program
EXPOSE 7171
ENTRYPOINT ["/usr/local/bin/program"]
CMD ["serve"]
`
)

// TestBuild changes one thing at a time. want is expected in the error; empty is no error.
func TestBuild(t *testing.T) {
	for _, test := range []struct {
		name, from, to, want string
	}{
		{name: "unchanged"},
		{"unknown instruction", "WORKDIR /src", "SHELL [\"bash\"]", "SHELL: not known here"},
		{"unknown flag", "COPY --from=build", "COPY --link --from=build", "--link"},
		{"no arguments", "VOLUME /var/lib/program", "VOLUME", "VOLUME: has no arguments"},
		{"cut off", `CMD ["serve"]`, `CMD ["serve", \`, "middle of an instruction"},
		{"instruction before FROM", "# A comment.", "ARG X=1", "before the first FROM"},
		{"missing source", "COPY go.mod ./", "COPY go.sum ./", "go.sum"},
		{"ignored source", "COPY . .", "COPY ignored .", "is ignored by .dockerignore"},
		{"unknown stage", "--from=build /src/bin/program", "--from=other /src/bin/program", `no stage "other"`},
		{"failing command", "go build", "go build -no-such-flag", "RUN: exit status"},
		{"path outside", "-o bin/program", "-o /tmp/program", "only paths below"},
		{"path above", "-o bin/program", "-o ../program", "only paths below"},
		{"other Go", "golang:GOVERSION", "golang:1.2", "the image has Go 1.2"},
		{"no shell", "USER 65532:65532", "USER 65532:65532\nRUN true", "cannot be run on gcr.io/distroless"},
		{"label without quotes", `title="program"`, "title=program", "pairs"},
		{"no label", `org.opencontainers.image.licenses="MIT"`, "", "licenses is not set"},
		{"other version in label", `version="$VERSION"`, `version="v0"`, `"v0", want "v1.2.3"`},
		{"root", "USER 65532:65532", "USER root", `USER "root"`},
		{"root by number", "USER 65532:65532", "USER 0", `USER "0"`},
		{"shell form", `CMD ["serve"]`, "CMD serve", "JSON list"},
		{"volume of root", "VOLUME /var/lib/program", "VOLUME /data", "would make it root's"},
		{"port", "EXPOSE 7171", "EXPOSE 80", "7171 is not exposed"},
		{"version not passed on", "-X main.version=$VERSION", "-X main.version=other", `does not say "v1.2.3"`},
		{"unknown command in CMD", `"serve"`, `"serv"`, "CMD is not accepted"},
		{"flag in CMD", `["serve"]`, `["serve", "--listen=:7171"]`, "--listen=:7171 overrides the variable"},
		{"wrong entrypoint", `ENTRYPOINT ["/usr/local/bin/program"]`, `ENTRYPOINT ["/program"]`, "/program"},
		{"no entrypoint", `ENTRYPOINT ["/usr/local/bin/program"]`, "", "ENTRYPOINT: there is none"},
		{"dynamic", "CGO_ENABLED=0 go build", "CGO_ENABLED=0 go build -buildmode=pie", "linked dynamically"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.name == "dynamic" && (runtime.GOOS != "linux" || runtime.GOARCH != "amd64") {
				t.Skip("SKIPPED: needs linux/amd64, where a binary of -buildmode=pie needs a loader")
			}
			text := dockerfile
			if test.from != "" {
				text = strings.Replace(dockerfile, test.from, test.to, 1)
				if text == dockerfile {
					t.Fatalf("the Dockerfile does not hold %q", test.from)
				}
			}
			var out strings.Builder
			_, err := build(t.Context(), project(t, text), map[string]string{"VERSION": "v1.2.3"}, "", &out)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("%v\n%s", err, &out)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("error %v does not say %q\n%s", err, test.want, &out)
			}
		})
	}
}

// TestBuildTwice: a build whose result depends on its folder or on the time is detected.
func TestBuildTwice(t *testing.T) {
	for name, test := range map[string]struct{ to, want string }{
		"the same":  {"RUN mkdir -p bin/data", ""},
		"its place": {"RUN mkdir -p bin/data && pwd > bin/data/built", "two builds differ"},
		"its time":  {"RUN mkdir -p bin/data && date +%N > bin/data/built", "two builds differ"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := project(t, strings.Replace(dockerfile, "RUN mkdir -p bin/data", test.to, 1))
			args := map[string]string{"VERSION": "v1.2.3"}
			var out strings.Builder
			_, err := buildTwice(t.Context(), dir, args, "", &out)
			if (test.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want %q\n%s", err, test.want, &out)
			}
		})
	}
}

// TestCopyHonoursDockerignore checks which files COPY . . copies into the image.
func TestCopyHonoursDockerignore(t *testing.T) {
	dir := project(t, "FROM golang:1\nWORKDIR /src\nCOPY . .\n")
	source, err := buildContext(dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	instructions, err := parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	b := &builder{context: source, scratch: t.TempDir(), out: &strings.Builder{}}
	image, err := b.run(context.Background(), instructions)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"src/main.go":          true,
		"src/kept/a.txt":       true,
		"src/kept/a_test.go":   false,
		"src/ignored/b.txt":    false,
		"src/.dockerignore":    true,
		"src/kept/deep/c.txt":  true,
		"src/kept/deep/d_test": true,
	} {
		if _, err := os.Stat(filepath.Join(image.root, path)); (err == nil) != want {
			t.Errorf("%s: present is %v, want %v", path, err == nil, want)
		}
	}
}

// project writes the project with a Dockerfile and returns its directory.
func project(t *testing.T, dockerfile string) string {
	t.Helper()
	version := strings.Join(strings.Split(strings.TrimPrefix(runtime.Version(), "go"), ".")[:2], ".")
	dir := t.TempDir()
	for name, content := range map[string]string{
		"Dockerfile":       strings.ReplaceAll(dockerfile, "GOVERSION", version),
		".dockerignore":    "# comment\nignored\n**/*_test.go\n",
		"go.mod":           "module example.com/program\n\ngo " + version + "\n",
		"main.go":          program,
		"kept/a.txt":       "a",
		"kept/a_test.go":   "package broken {",
		"kept/deep/c.txt":  "c",
		"kept/deep/d_test": "d",
		"ignored/b.txt":    "b",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
