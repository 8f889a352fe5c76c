package daemon_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"connectrpc.com/connect"

	"github.com/contextd/contextd/cmd/contextd/internal/auth/authtest"
	"github.com/contextd/contextd/cmd/contextd/internal/config"
	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

// listed are the sessions that the inspector shows to the holder of a token.
func listed(t *testing.T, address, token string) ([]*contextdv1.Session, error) {
	t.Helper()
	client := connect.NewClient[contextdv1.ListSessionsRequest, contextdv1.ListSessionsResponse](http.DefaultClient,
		"http://"+address+contextdv1.ContextService_ListSessions_FullMethodName)
	req := connect.NewRequest(&contextdv1.ListSessionsRequest{})
	if token != "" {
		req.Header().Set("Authorization", "Bearer "+token)
	}
	answer, err := client.CallUnary(t.Context(), req)
	if err != nil {
		return nil, err
	}
	return answer.Msg.GetSessions(), nil
}

func TestInspectorShowsTenantsTheirOwn(t *testing.T) {
	address := free(t)
	of := startTenants(t, 1, func(c *config.Config) { c.InspectListen = address })
	for tenant, id := range map[string]string{"first": "a", "t1": "b"} {
		if _, err := of.api().AppendEvents(of.as(t.Context(), tenant), say(id, "hello")); err != nil {
			t.Fatal(err)
		}
	}
	for tenant, want := range map[string]string{"first": "a", "t1": "b"} {
		got, err := listed(t, address, of.tokens[tenant])
		if err != nil || len(got) != 1 || got[0].GetSessionId() != want {
			t.Errorf("%s is shown %v, %v; want %s", tenant, got, err, want)
		}
	}
	for _, token := range []string{"", "guessed"} {
		if got, err := listed(t, address, token); connect.CodeOf(err) != connect.CodeUnauthenticated {
			t.Errorf("with the token %q: %v, %v", token, got, err)
		}
	}
	of.end(t)
}

// TestInspectorSpeaksTLS with the daemon's certificate, and needs none of browsers.
func TestInspectorSpeaksTLS(t *testing.T) {
	address, folder := free(t), t.TempDir()
	authority := authtest.NewAuthority(t, folder)
	cert, key := filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	authority.Issue(t, cert, key, "127.0.0.1")
	of := startTenants(t, 0, func(c *config.Config) {
		c.InspectListen, c.UnixSocket = address, filepath.Join(folder, "s")
		c.Auth.CertFile, c.Auth.KeyFile, c.Auth.ClientCAFile = cert, key, authority.File
	})
	known := x509.NewCertPool()
	pem, err := os.ReadFile(authority.File)
	if err != nil || !known.AppendCertsFromPEM(pem) {
		t.Fatal(err)
	}
	browser := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: known}}}
	defer browser.CloseIdleConnections()
	answer, err := browser.Get("https://" + address + "/")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("the page is answered %s", answer.Status)
	}
	of.end(t)
}

// TestInspectorDoesNotHoldUpAStop: a page that follows a session has a call without an end.
func TestInspectorDoesNotHoldUpAStop(t *testing.T) {
	address := free(t)
	r := start(t, settings(t, func(c *config.Config) { c.InspectListen, c.Store = address, config.StoreMemory }))
	r.await(t, serving)
	if _, err := r.api().AppendEvents(t.Context(), say("s", "hello")); err != nil {
		t.Fatal(err)
	}
	made, err := r.api().AssembleContext(t.Context(), &contextdv1.AssembleContextRequest{SessionId: "s"})
	for err == nil {
		_, err = made.Recv()
	}
	if !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	client := connect.NewClient[contextdv1.WatchLifecycleRequest, contextdv1.WatchLifecycleResponse](http.DefaultClient,
		"http://"+address+contextdv1.CompactionService_WatchLifecycle_FullMethodName)
	stream, err := client.CallServerStream(t.Context(), connect.NewRequest(&contextdv1.WatchLifecycleRequest{
		SessionIds: []string{"s"}, After: []*contextdv1.LifecycleCursor{{SessionId: "s"}},
	}))
	if err != nil {
		t.Fatal(err)
	}
	if !stream.Receive() {
		t.Fatal(stream.Err())
	}
	r.end(t)
	if stream.Receive() || stream.Err() == nil {
		t.Error("the stream went on after the daemon had stopped")
	}
}
