# `make help` lists the targets. What they need is installed on first use, at
# pinned versions, into ./bin.

SHELL := /usr/bin/env bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

BUF_VERSION                := v1.69.0
GOLANGCI_LINT_VERSION      := v2.15.0
PROTOC_GEN_GO_VERSION      := v1.36.12
PROTOC_GEN_GO_GRPC_VERSION := v1.6.2
PROTOVALIDATE_VERSION      := v1.2.2

BIN  := $(CURDIR)/bin
WORK := $(CURDIR)/.build

VERSION     ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT      ?= $(shell git rev-parse HEAD 2>/dev/null)
COMMIT_DATE ?= $(shell TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null)
PROGRAM     ?= bin/contextd
MAIN        ?= ./cmd/contextd

# How many packages are built and tested in parallel, and the time limit for one package's
# tests: sized for two cores with the race detector and other load on the machine.
TEST_P       ?= 2
TEST_TIMEOUT ?= 20m
PKG          ?= ./...

# Tools, tests and programs are built as the release is, so that no package is compiled in two ways: without C, without
# machine paths, and with two tags. Without grpcnotrace gRPC links html/template, which looks methods up by name: the
# linker would then keep every exported method of every type. Without nopgxregisterdefaulttypes pgx links arrays and
# ranges of every type that PostgreSQL has.
export CGO_ENABLED := 0
export GOFLAGS := $(strip $(GOFLAGS) -trimpath -tags=grpcnotrace,nopgxregisterdefaulttypes)

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# ---------------------------------------------------------------- program

.PHONY: build
build: ## Build the daemon into PROGRAM=bin/contextd, static
	go build -ldflags '-s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT) -X main.date=$(COMMIT_DATE)' -o '$(PROGRAM)' $(MAIN)

.PHONY: sbom
sbom: build ## List what is linked into the daemon, with licences, as CycloneDX in bin/contextd.cdx.json
	env -u GOOS -u GOARCH go run ./tools/sbom -version '$(VERSION)' bin/contextd > bin/contextd.cdx.json

.PHONY: release
release: ## Write archives for each platform, the clients' packages and checksums into RELEASE=bin/release
	tools/release.sh '$(or $(RELEASE),bin/release)'

.PHONY: release-twice
release-twice: ## Make a release twice and compare the bytes (RELEASE_PLATFORMS='linux/amd64')
	rm -rf .build/release
	tools/release.sh .build/release/1
	tools/release.sh .build/release/2
	diff -r .build/release/1 .build/release/2

.PHONY: demo
demo: build ## Replay a bundled session through a daemon under a tight budget
	$(BIN)/contextd demo

.PHONY: readme
readme: ## Write what the demo, the quick start, its digests and its evaluation print into README.md and docs
	go test -count=1 -run 'Readme|Digests' ./cmd/contextd/internal/demo -rewrite
	go test -count=1 -run DocumentedEvaluation ./cmd/contextd -rewrite

.PHONY: record-demo
record-demo: ## Record the demo's session again
	go run ./tools/record -o cmd/contextd/internal/demo/session.jsonl

.PHONY: replay
replay: ## Replay every session of CORPUS=folder through a daemon and print a table
	go run ./bench/replay -corpus '$(CORPUS)' $(REPLAY_FLAGS)

FORMATS ?= anthropic,openai_chat,openai_responses,gemini

.PHONY: replay-formats
replay-formats: ## Hold what CORPUS=folder renders in FORMATS=list to the providers' rules (REPLAY_FLAGS=...)
	go run ./bench/replay -corpus '$(CORPUS)' -formats '$(FORMATS)' $(REPLAY_FLAGS)
	go run ./bench/replay -corpus '$(CORPUS)' -formats '$(FORMATS)' -policy '{"projection":{"policy":"harness_view"}}' $(REPLAY_FLAGS)

.PHONY: replay-policies
replay-policies: ## Replay CORPUS=folder under each projection policy in turn (REPLAY_FLAGS=..., with -formats too)
	for policy in \
		'{"policy":"clean_tool_repair"}' \
		'{"policy":"squash_failed_calls"}' \
		'{"policy":"summary_prefix","summary":"The agent read files and changed some."}' \
		'{"policy":"reachability_gc"}' \
		'{"policy":"custom","expression":"age - model_calls % 20 > 60 ? \"drop\" : age - model_calls % 20 > 30 && errors == 0 ? \"stub\" : age - model_calls % 20 > 10 && result_chars > 4000 ? \"clip\" : \"keep\""}'; \
	do \
		echo "# $$policy"; \
		go run ./bench/replay -corpus '$(CORPUS)' -policy "{\"projection\":$$policy}" $(REPLAY_FLAGS) || exit 1; \
	done

BACKENDS       ?= extractive,ok,slow,fails,garbage,echo,down
REPLAY_BUDGETS ?= 8192,16384,32768

.PHONY: replay-backends
replay-backends: ## Replay CORPUS=folder against summary models that are slow, fail or are down (BACKENDS=list)
	go run ./bench/replay -corpus '$(CORPUS)' -backends '$(BACKENDS)' -budgets '$(REPLAY_BUDGETS)' $(REPLAY_FLAGS)

.PHONY: image
image: ## Build the container image contextd:VERSION (ENGINE=docker, podman, ...)
	$(or $(ENGINE),docker) build --build-arg VERSION='$(VERSION)' --build-arg REVISION='$(COMMIT)' --build-arg REVISION_DATE='$(COMMIT_DATE)' \
		--build-arg SOURCE_DATE_EPOCH="$$(git log -1 --format=%ct)" -t contextd:'$(VERSION)' .

.PHONY: image-steps
image-steps: ## Run the Dockerfile's steps and check their result without a container engine
	go run ./tools/imagesteps -arg VERSION='$(VERSION)' -arg REVISION='$(COMMIT)' -arg REVISION_DATE='$(COMMIT_DATE)' $(IMAGE_STEPS_FLAGS)

# ---------------------------------------------------------------- tests

.PHONY: test
test: ## Run all tests, under the race detector where it may find something
	tools/test.sh $(TEST_TIMEOUT) $(TEST_P) $(PKG)

BENCH     ?= .
BENCHTIME ?= 1s

.PHONY: bench
bench: ## Run the benchmarks (BENCH=regexp PKG=packages BENCHTIME=1s)
	go test -run '^$$' -bench '$(BENCH)' -benchtime $(BENCHTIME) -benchmem -p 1 -timeout 60m $(PKG)

PROFILES ?= bin/profiles

.PHONY: profile
profile: ## Draw flame graphs of appends and assemblies into PROFILES=bin/profiles, and print each step's share
	mkdir -p '$(PROFILES)'
	go test ./bench/rpc -run '^$$' -bench Profile -benchtime 1x -profiles '$(abspath $(PROFILES))'
	go test ./internal/assemble -run '^$$' -bench 'Assemble/disk/10000/warm' -benchtime 3s -cpuprofile '$(abspath $(PROFILES))/assemble.pprof' -o '$(abspath $(PROFILES))/assemble.test'
	go run ./tools/flamegraph -steps bench/rpc/steps.txt '$(PROFILES)'/append-*.pprof
	go run ./tools/flamegraph -steps internal/assemble/testdata/steps.txt '$(PROFILES)'/assemble.pprof

IMPORT_SESSIONS ?= 1000
IMPORT_MIB      ?= 1024

.PHONY: costs
costs: ## Hold operations to the allocations and instructions in testdata/costs.txt (COSTS_FLAGS=-rewrite-costs); needs valgrind, takes minutes
	COUNT_INSTRUCTIONS=1 go test -count=1 -run '^TestCosts$$' -timeout 60m ./internal/assemble ./cmd/contextd/internal/server -v $(COSTS_FLAGS)

.PHONY: bench-import
bench-import: ## Import generated sessions against decoding them (IMPORT_SESSIONS=1000 IMPORT_MIB=1024)
	IMPORT_SESSIONS=$(IMPORT_SESSIONS) IMPORT_MIB=$(IMPORT_MIB) go test -run '^$$' -bench Import -benchtime 1x -timeout 120m ./bench/import

PEERS     := $(WORK)/peers
PYTHON312 ?= python3.12

.PHONY: bench-peers
bench-peers: build ## Run other libraries beside contextd over the same sessions (CORPUS=folder PEERS_FLAGS=...); needs Python (for OpenHands 3.12) and npm, takes minutes
	mkdir -p '$(PEERS)/run'
	cmp -s bench/peers/requirements.txt '$(PEERS)/requirements.txt' || { rm -rf '$(PEERS)/venv' && python3 -m venv '$(PEERS)/venv' && \
		'$(PEERS)/venv/bin/pip' install --quiet --disable-pip-version-check --no-deps -r bench/peers/requirements.txt && cp bench/peers/requirements.txt '$(PEERS)/'; }
	if ! '$(PYTHON312)' --version >/dev/null 2>&1; then echo "SKIPPED: OpenHands needs Python 3.12 (PYTHON312=program)" >&2; rm -rf '$(PEERS)/openhands'; \
	else cmp -s bench/peers/requirements-openhands.txt '$(PEERS)/requirements-openhands.txt' || { rm -rf '$(PEERS)/openhands' && '$(PYTHON312)' -m venv '$(PEERS)/openhands' && \
		'$(PEERS)/openhands/bin/pip' install --quiet --disable-pip-version-check -r bench/peers/requirements-openhands.txt && cp bench/peers/requirements-openhands.txt '$(PEERS)/'; }; fi
	cmp -s bench/peers/package-lock.json '$(PEERS)/package-lock.json' || { cp bench/peers/package.json bench/peers/package-lock.json '$(PEERS)/' && \
		npm --prefix '$(PEERS)' ci --ignore-scripts --no-audit --no-fund --loglevel=error || { rm '$(PEERS)/package-lock.json'; exit 1; }; }
	cp bench/peers/peers.mjs '$(PEERS)/'
	go run ./bench/peers -python '$(PEERS)/venv/bin/python' -openhands "$$(ls '$(PEERS)/openhands/bin/python' 2>/dev/null)" -node '$(PEERS)' -dir '$(PEERS)/run' -program '$(PROGRAM)' \
		$(if $(CORPUS),-corpus '$(CORPUS)') $(PEERS_FLAGS)

.PHONY: attack
attack: ## Hold the program to its pod's memory while clients do their worst, in full; takes a quarter of an hour
	NIGHTLY=1 go test -count=1 -v -run 'TestAttack|TestImportsWithinMemory|TestFairness' -timeout 30m ./cmd/contextd

SOAK ?= 30m

.PHONY: faults
faults: ## Break the program's files, disk, clients and process as SEED=1 decides, and soak it for SOAK=30m; takes hours
	NIGHTLY=1 go test -count=1 -v -run Fault -timeout 6h ./cmd/contextd -seed=$(SEED) -soak=$(SOAK)

STAGES ?=

.PHONY: nightly
nightly: ## Run what takes hours, each stage of tools/nightly.sh although others fail (STAGES='hostile fuzz' SOAK=30m FUZZTIME=30s CHECKS=500)
	PKG='$(PKG)' TEST_P='$(TEST_P)' SOAK='$(SOAK)' FUZZTIME='$(FUZZTIME)' CHECKS='$(CHECKS)' tools/nightly.sh $(STAGES)

CALLS ?= 10000
SEED  ?= 1

.PHONY: hostile
hostile: ## Make CALLS=10000 hostile calls of all methods, as SEED=1 decides
	go test -count=1 -v -run HostileCalls -timeout 24h ./cmd/contextd/internal/daemon -calls=$(CALLS) -seed=$(SEED)

FUZZTIME ?= 30s
CHECKS   ?= 500

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME each (PKG=packages)
	tools/fuzz.sh '$(FUZZTIME)' $(PKG)

COVER_MIN ?= 90

.PHONY: cover
cover: ## Measure the coverage of the core packages; fail below COVER_MIN percent
	tools/cover.sh $(COVER_MIN) log budget reduce projection ledger

.PHONY: sdkcheck
sdkcheck: ## Hold rendered messages to the official SDKs' types (CORPUS=folder SDKCHECK_CACHE=folder)
	tools/sdkcheck/run.sh '$(CORPUS)'

HARNESSES         ?= codex,claude,opencode,pi
RESUMECHECK_FLAGS ?=

.PHONY: resumecheck
resumecheck: ## Resume written sessions in the real CLIs; not in CI, downloads 1 GB from npm (HARNESSES=list CORPUS=folder)
	go run ./tools/resumecheck -harnesses '$(HARNESSES)' -corpus '$(CORPUS)' $(RESUMECHECK_FLAGS)

# ---------------------------------------------------------------- generated code

# validate.proto comes from a Go module, so that no schema registry is needed.
INCLUDE := .build/include/buf/validate/validate.proto

$(INCLUDE): Makefile
	mkdir -p $(@D)
	dir=$$(go mod download -json github.com/bufbuild/protovalidate@$(PROTOVALIDATE_VERSION) | sed -n 's/^\t"Dir": "\(.*\)",$$/\1/p'); \
	install -m 0644 "$$dir/proto/protovalidate/buf/validate/validate.proto" $@

.PHONY: generate
generate: bin/buf bin/protoc-gen-go bin/protoc-gen-go-grpc $(INCLUDE) ## Format the protos and generate their Go code
	$(BIN)/buf format -w proto
	$(BIN)/buf generate

.PHONY: check-generated
check-generated: bin/buf bin/protoc-gen-go bin/protoc-gen-go-grpc $(INCLUDE) ## Fail where generated code is not what the protos give
	tools/check-generated.sh

# ---------------------------------------------------------------- clients

ADAPTERS ?=

.PHONY: test-python
test-python: $(INCLUDE) ## Test the Python client against a daemon (skipped without python3; ADAPTERS='oldest adk-oldest': with the oldest frameworks, too)
	ADAPTERS='$(ADAPTERS)' clients/python/test.sh || [ $$? = 3 ]

.PHONY: test-typescript
test-typescript: $(INCLUDE) ## Test the TypeScript client against a daemon (skipped without npm)
	clients/typescript/test.sh || [ $$? = 3 ]

# The examples build the packages in the same folders as their tests: run them in sequence.
test-python test-typescript: | $(filter conformance,$(MAKECMDGOALS))

# Empty means all languages.
CONFORMANCE_LANGUAGES ?=
CONFORMANCE_FLAGS     ?=

.PHONY: conformance
conformance: $(INCLUDE) ## Run one scenario in every language's client and compare the bytes (CONFORMANCE_LANGUAGES=list)
	examples/conformance.sh $(CONFORMANCE_FLAGS) $(CONFORMANCE_LANGUAGES)

# ---------------------------------------------------------------- inspector

PAGE := cmd/contextd/internal/inspect/dist

.PHONY: inspector
inspector: bin/buf $(INCLUDE) ## Build the inspector's page from its source, with npm
	tools/inspector.sh '$(CURDIR)/$(PAGE)'

.PHONY: check-inspector
check-inspector: bin/buf $(INCLUDE) ## Test the inspector's source, and fail where the committed page is not what it makes (skipped without npm)
	@rm -rf .build/inspector; tools/inspector.sh '$(CURDIR)/.build/inspector' || { [ $$? = 3 ] && exit 0; exit 1; }; \
	[ ! -d .build/inspector ] || diff -r .build/inspector '$(PAGE)' || { echo "the inspector's page is not what its source makes: run make inspector" >&2; exit 1; }

.PHONY: test-inspector
test-inspector: ## Test the inspector in a headless Chromium (skipped without npm or chromium)
	tools/inspector-browser.sh || [ $$? = 3 ]

.PHONY: screenshots
screenshots: ## Make the inspector's screenshots again, which its tests and the docs have; look at them
	REWRITE=1 tools/inspector-browser.sh

.PHONY: chromium
chromium: ## Install Debian's Chromium where there is none, for the tests of the inspector
	@if command -v chromium >/dev/null; then exit 0; fi; \
	if ! command -v apt-get >/dev/null || [ "$$(id -u)" != 0 ]; then echo "SKIPPED: Chromium is not installed, and only root can do that, with apt-get" >&2; exit 0; fi; \
	tools/apt.sh install -qq -y --no-install-recommends chromium fonts-dejavu-core >/dev/null

# ---------------------------------------------------------------- lint

.PHONY: lint
lint: lint-proto lint-breaking check-generated check-inspector lint-format lint-words lint-mod lint-go lint-deploy ## Run every check that is not a test

.PHONY: lint-proto
lint-proto: bin/buf $(INCLUDE) ## Check the protos' style, comments and rules
	$(BIN)/buf lint
	$(BIN)/buf format --diff --exit-code proto

.PHONY: lint-breaking
lint-breaking: bin/buf $(INCLUDE) ## Check that the protos break no client of main
	tools/breaking.sh

.PHONY: lint-format
lint-format: ## Check that Go files are formatted
	@unformatted=$$(git ls-files --cached --others --exclude-standard -- '*.go' | while read -r f; do [ ! -e "$$f" ] || echo "$$f"; done | xargs -r gofmt -l); \
	if [ -n "$$unformatted" ]; then echo "gofmt -w needed:"; echo "$$unformatted"; exit 1; fi

.PHONY: lint-words
lint-words: ## Check pages, protos and comments for words that are not plain (tools/words.txt)
	tools/words.sh

.PHONY: lint-mod
lint-mod: ## Check that go.mod and go.sum list what the code needs
	go mod tidy -diff

.PHONY: lint-go
lint-go: bin/golangci-lint ## Check the Go code and its import arrows
	$(BIN)/golangci-lint run --allow-parallel-runners $(PKG)

# Not cached: Go does not see that files of another module have changed.
.PHONY: lint-deploy
lint-deploy: bin/golangci-lint ## Check the manifests for Kubernetes, the chart, and docs/kubernetes.md against the daemon
	cd deploy/kubernetes && go mod tidy -diff && $(BIN)/golangci-lint run --allow-parallel-runners && go test -count=1 .

# ---------------------------------------------------------------- tools

# buf takes minutes to compile, so it comes from its maker's npm package where there is npm.
bin/buf: bin/.buf@$(BUF_VERSION)
bin/.buf@$(BUF_VERSION):
	rm -rf bin/.buf@* '$(WORK)/buf'
	mkdir -p '$(BIN)' '$(WORK)/buf'
	{ npm install --silent --no-save --ignore-scripts --prefix '$(WORK)/buf' @bufbuild/buf@$(BUF_VERSION:v%=%) && \
		cp '$(WORK)'/buf/node_modules/@bufbuild/buf-*/bin/buf '$(BIN)'; } || GOBIN=$(BIN) go install github.com/bufbuild/buf/cmd/buf@$(BUF_VERSION)
	touch $@

# $(call tool,name,package,version): bin/name, installed once per version.
define tool
bin/$(1): bin/.$(1)@$(3)
bin/.$(1)@$(3):
	rm -f bin/.$(1)@*
	GOBIN=$(BIN) go install $(2)@$(3)
	touch $$@
endef

$(eval $(call tool,protoc-gen-go,google.golang.org/protobuf/cmd/protoc-gen-go,$(PROTOC_GEN_GO_VERSION)))
$(eval $(call tool,protoc-gen-go-grpc,google.golang.org/grpc/cmd/protoc-gen-go-grpc,$(PROTOC_GEN_GO_GRPC_VERSION)))
$(eval $(call tool,golangci-lint,github.com/golangci/golangci-lint/v2/cmd/golangci-lint,$(GOLANGCI_LINT_VERSION)))

.PHONY: tools
tools: bin/buf bin/protoc-gen-go bin/protoc-gen-go-grpc bin/golangci-lint ## Install the tools into ./bin

.PHONY: prometheus
prometheus: ## Fetch Debian's Prometheus into ./bin, for the tests of alerts and dashboard
	@if [ -x bin/prometheus/usr/bin/promtool ] || command -v promtool >/dev/null; then exit 0; fi; \
	if ! command -v apt-get >/dev/null; then echo "SKIPPED: there is no apt-get to fetch Prometheus with" >&2; exit 0; fi; \
	mkdir -p bin/prometheus && cd bin/prometheus && ../../tools/apt.sh download -q prometheus && dpkg -x prometheus_*.deb . && rm prometheus_*.deb

.PHONY: postgres
postgres: ## Install Debian's PostgreSQL and pgbouncer where there are none, for the tests of the postgres store
	@missing=; command -v initdb >/dev/null || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || missing=postgresql; \
	command -v pgbouncer >/dev/null || [ -x /usr/sbin/pgbouncer ] || missing="$$missing pgbouncer"; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if ! command -v apt-get >/dev/null || [ "$$(id -u)" != 0 ]; then echo "SKIPPED: not installed, and only root can do that, with apt-get: $$missing" >&2; exit 0; fi; \
	tools/apt.sh install -qq -y --no-install-recommends $$missing >/dev/null

.PHONY: clean
clean: ## Remove what the targets made
	rm -rf bin .build
