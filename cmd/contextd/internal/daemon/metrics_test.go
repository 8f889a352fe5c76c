package daemon_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/contextd/contextd/cmd/contextd/internal/auth/authtest"
	"github.com/contextd/contextd/cmd/contextd/internal/config"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func TestMetrics(t *testing.T) {
	address := free(t)
	r := start(t, settings(t, func(c *config.Config) { c.MetricsListen = address }))
	r.await(t, serving)
	for range 3 {
		if _, err := r.api().AppendEvents(t.Context(), say("s", "hello")); err != nil {
			t.Fatal(err)
		}
	}
	stream, err := r.api().AssembleContext(t.Context(), &contextdv1.AssembleContextRequest{SessionId: "s"})
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = stream.Recv()
	}
	if _, err := r.api().GetSession(t.Context(), &contextdv1.GetSessionRequest{SessionId: "missing"}); err == nil {
		t.Fatal("there is a session that nobody made")
	}
	if _, err := r.api().RecordModelCall(t.Context(), &contextdv1.RecordModelCallRequest{SessionId: "s", InputTokens: 5}); err != nil {
		t.Fatal(err)
	}
	body := scrape(t, "http://"+address+"/metrics")
	for _, want := range []string{
		"contextd_append_events_total{", "contextd_append_duration_seconds_bucket{", `outcome="ok",state="green"`,
		`reason="SESSION_NOT_FOUND"} 1`, `type="input"} 5`,
		"contextd_assembly_tokens_raw_total{", "contextd_part_healthy{", `part="store"`, "rpc_server_", "go_goroutines",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	for _, want := range []string{`used\{.*setting="cache_sessions".*\} 1`, `max\{.*setting="cache_sessions".*\} 64`, `used\{.*setting="cache_memory".*\} [1-9]`, `max\{.*setting="cache_memory".*\} [1-9]`} {
		if !regexp.MustCompile(`contextd_limit_` + want).MatchString(body) {
			t.Errorf("metrics lack %s:\n%s", want, grep(body, "contextd_limit"))
		}
	}
	page, err := os.ReadFile("../../../../docs/monitoring.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`contextd_(memory|limit)_used.*(?:budget|setting)="(\w+)"`).FindAllStringSubmatch(body, -1) {
		row := regexp.MustCompile("(?m)^\\| `contextd\\." + m[1] + "\\.used.*$").FindString(string(page))
		if !slices.Contains(strings.FieldsFunc(row, func(r rune) bool { return r == ' ' || r == ',' || r == ':' }), m[2]) {
			t.Errorf("docs/monitoring.md lacks %s of contextd.%s.used", m[2], m[1])
		}
	}
	if strings.Contains(body, `=""`) {
		t.Errorf("a label is empty:\n%s", body)
	}
	if !strings.Contains(body, "} 3\n") {
		t.Error("three events are not counted")
	}
	for path, want := range map[string]int{"/livez": 200, "/readyz": 200, "/debug/pprof/heap": 404, "/debug/pprof/profile": 404, "/": 404} {
		if got := statusAt(t, "http://"+address+path); got != want {
			t.Errorf("%s: %d, want %d", path, got, want)
		}
	}
	r.end(t)
}

// TestShadow: a daemon keeps what another policy would have sent, and one that starts again goes on
// from there.
// TestCertificateMetrics: the metrics by which an alert says that the daemon's certificate expires soon.
func TestCertificateMetrics(t *testing.T) {
	address, folder := free(t), t.TempDir()
	cert, key := filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	authtest.NewAuthority(t, folder).Issue(t, cert, key, "127.0.0.1")
	r := startTenants(t, 0, func(c *config.Config) {
		c.MetricsListen, c.Auth.CertFile, c.Auth.KeyFile = address, cert, key
	})
	body := scrape(t, "http://"+address+"/metrics")
	for _, want := range []string{"\ncontextd_certificate_lifetime_seconds{", "\ncontextd_certificate_remaining_seconds{"} {
		if !strings.Contains(body, want) {
			t.Errorf("metrics lack %s", want)
		}
	}
	r.end(t)
}

func TestShadow(t *testing.T) {
	c := settings(t, func(c *config.Config) { c.Shadow = "frugal" })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for turn := range 2 {
		r := start(t, c)
		r.await(t, serving)
		if _, err := r.api().AppendEvents(t.Context(), say("s", "hello")); err != nil {
			t.Fatal(err)
		}
		made := r.context(t, "s")
		var shadow *contextdv1.ShadowProjection
		for shadow == nil { // it comes after the answer
			all, err := r.api().ListProjections(ctx, &contextdv1.ListProjectionsRequest{SessionId: "s"})
			if err != nil {
				t.Fatal(err)
			}
			last := all.GetProjections()[len(all.GetProjections())-1]
			if shadow = last.GetShadow(); last.GetProjectionId() != made.GetProjectionId() {
				t.Fatalf("%s is the last one", last.GetProjectionId())
			}
		}
		if shadow.GetPolicy() != "frugal" || shadow.GetTokens() == 0 || shadow.GetMessageCount() != uint32(turn+1) || (shadow.GetStableTokens() > 0) != (turn > 0) {
			t.Errorf("the shadow of turn %d is %v", turn, shadow)
		}
		r.end(t)
	}
}

// TestProfiles are served where that is asked for.
func TestProfiles(t *testing.T) {
	address := free(t)
	r := start(t, settings(t, func(c *config.Config) { c.Store, c.MetricsListen, c.Pprof = config.StoreMemory, address, true }))
	r.await(t, serving)
	if got := statusAt(t, "http://"+address+"/debug/pprof/heap"); got != 200 {
		t.Errorf("got %d", got)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/debug/pprof/heap", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "evil.example"
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("under the name of another site: %d, %v", resp.StatusCode, err)
	}
	r.end(t)
}

// free is an address that nobody listens on.
func free(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// get asks for a page.
func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func statusAt(t *testing.T, url string) int {
	t.Helper()
	status, _ := get(t, url)
	return status
}

func scrape(t *testing.T, url string) string {
	t.Helper()
	_, body := get(t, url)
	return body
}
