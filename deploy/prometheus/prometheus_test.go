// Package prometheus_test tests the alerts and the dashboard with a real Prometheus that scrapes a real
// daemon.
package prometheus_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// program finds a program of Prometheus in PATH, or where `make prometheus` puts it.
func program(t *testing.T, name string) string {
	t.Helper()
	if path, err := exec.LookPath(name); err == nil {
		return path
	}
	path, err := filepath.Abs("../../bin/prometheus/usr/bin/" + name)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Skipf("SKIPPED: there is no %s; make prometheus fetches it", name)
	}
	return path
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	if err != nil {
		t.Errorf("%s %s: %v\n%s", filepath.Base(name), strings.Join(args, " "), err, out)
	}
}

func TestRules(t *testing.T) {
	promtool := program(t, "promtool")
	run(t, promtool, "check", "config", "prometheus.yaml")
	run(t, promtool, "check", "rules", "contextd.rules.yaml")
	run(t, promtool, "test", "rules", "contextd.rules.test.yaml")
}

type alert struct {
	Alert, Expr         string
	Labels, Annotations map[string]string
}

func alerts(t *testing.T) []alert {
	t.Helper()
	text, err := os.ReadFile("contextd.rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rules struct{ Groups []struct{ Rules []alert } }
	if err := yaml.Unmarshal(text, &rules); err != nil {
		t.Fatal(err)
	}
	return rules.Groups[0].Rules
}

func TestEachAlertHasItsSectionOfTheRunbook(t *testing.T) {
	runbook, err := os.ReadFile("../../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	var sections []string
	for _, m := range regexp.MustCompile(`(?m)^## (\w+)$`).FindAllStringSubmatch(string(runbook), -1) {
		sections = append(sections, m[1])
	}
	var names []string
	for _, a := range alerts(t) {
		names = append(names, a.Alert)
		if want := "docs/runbook.md#" + strings.ToLower(a.Alert); a.Annotations["runbook"] != want {
			t.Errorf("the runbook of %s is %q, want %q", a.Alert, a.Annotations["runbook"], want)
		}
		if !slices.Contains([]string{"critical", "warning", "info"}, a.Labels["severity"]) {
			t.Errorf("the severity of %s is %q", a.Alert, a.Labels["severity"])
		}
	}
	if !slices.Equal(names, sections) {
		t.Errorf("the alerts are\n%v, the sections of the runbook\n%v", names, sections)
	}
}

// queries are the queries of the alerts and the dashboard, by their place.
func queries(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, a := range alerts(t) {
		all[a.Alert] = a.Expr
	}
	text, err := os.ReadFile("../grafana/contextd.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, p := range dashboard.Panels {
		for i, target := range p.Targets {
			all[fmt.Sprintf("%s %d", p.Title, i)] = strings.NewReplacer("$instance", ".*", "$__rate_interval", "1m").Replace(target.Expr)
		}
	}
	return all
}

// rare are metrics of events that not every daemon has.
var rare = []string{"contextd_prefix_breaks_total", "contextd_lifecycle_events_total", "contextd_hooks_calls_total", "contextd_summary_duration_seconds_bucket"}

func TestEveryQueryFindsItsMetrics(t *testing.T) {
	prometheus := program(t, "prometheus")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	dir := t.TempDir()
	contextd := filepath.Join(dir, "contextd")
	run(t, "go", "build", "-o", contextd, "../../cmd/contextd")
	api, metrics, web := address(t), address(t), address(t)

	serve := exec.CommandContext(ctx, contextd, "serve", "--data-dir", filepath.Join(dir, "data"), "--listen", api, "--metrics-listen", metrics, "--shadow", "frugal", "--log-level", "error")
	start(t, serve)
	t.Setenv("CONTEXTD_ADDR", api)
	run(t, contextd, "health", "--wait", "60s")
	say := exec.CommandContext(ctx, contextd, "append", "s")
	say.Stdin = strings.NewReader(`{"message":{"role":"ROLE_USER","blocks":[{"text":{"text":"Hello"}}]}}`)
	if out, err := say.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run(t, contextd, "assemble", "s")
	run(t, contextd, "record", "s", "--projection", "p1-0001", "--input-tokens", "9")
	if err := exec.CommandContext(ctx, contextd, "log", "missing").Run(); err == nil {
		t.Fatal("there is a session that nobody made")
	}

	config := filepath.Join(dir, "prometheus.yaml")
	text := fmt.Sprintf("scrape_configs: [{job_name: contextd, scrape_interval: 1s, static_configs: [{targets: [%q]}]}]\n", metrics)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	scraper := exec.CommandContext(ctx, prometheus, "--config.file", config, "--storage.tsdb.path", filepath.Join(dir, "tsdb"), "--web.listen-address", web)
	stderr, err := scraper.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	start(t, scraper)
	lines := bufio.NewScanner(stderr)
	for ready := false; !ready && lines.Scan(); {
		ready = strings.Contains(lines.Text(), "Server is ready")
	}
	go func() { _, _ = io.Copy(io.Discard, stderr) }() // a full pipe would block it
	for scraped := false; !scraped; {                  // the shadow is computed after the answer
		scraped = len(ask(ctx, t, web, `contextd_calls_failed_total`)) > 0 && len(ask(ctx, t, web, `contextd_shadow_tokens_total`)) > 0
	}

	metric := regexp.MustCompile(`\b(?:contextd|process)_[a-z_]+\b`)
	for where, query := range queries(t) {
		ask(ctx, t, web, query)
		for _, name := range metric.FindAllString(query, -1) {
			// The daemon's own tests check the metrics of a database and a certificate, which this daemon does not have.
			if strings.HasPrefix(name, "contextd_database_") || strings.HasPrefix(name, "contextd_certificate_") {
				continue
			}
			if len(ask(ctx, t, web, name)) == 0 && !slices.Contains(rare, name) {
				t.Errorf("%s: there is no metric %s", where, name)
			}
		}
	}
	// The daemon is healthy, but the test machine's disk may be nearly full.
	for _, a := range alerts(t) {
		if found := ask(ctx, t, web, a.Expr); len(found) > 0 && a.Alert != "ContextdDiskLow" {
			t.Errorf("%s fires: %s", a.Alert, found)
		}
	}
}

// start starts a program that ends with the test.
func start(t *testing.T, c *exec.Cmd) {
	t.Helper()
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 10 * time.Second
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Signal(os.Interrupt)
		_ = c.Wait()
	})
}

// address is a free port on loopback.
func address(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// ask returns the result of a query.
func ask(ctx context.Context, t *testing.T, web, query string) []json.RawMessage {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+web+"/api/v1/query?query="+url.QueryEscape(query), http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var body struct {
		Status, Error string
		Data          struct{ Result []json.RawMessage }
	}
	if err := json.NewDecoder(answer.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	if body.Status != "success" {
		t.Errorf("%s: %s", query, body.Error)
	}
	return body.Data.Result
}
