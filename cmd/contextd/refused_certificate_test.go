package main

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/contextd/contextd/client"
	"github.com/contextd/contextd/cmd/contextd/internal/auth/authtest"
)

// TestRefusedCertificate: a client whose certificate the daemon does not take learns why, and so does who reads the
// daemon's log. The error said now and then that no daemon answers, and the log had nothing.
func TestRefusedCertificate(t *testing.T) {
	r := newRotation(t)
	r.authority.Lifetime = -time.Hour
	r.authority.Issue(t, r.path("expired.pem"), r.path("expired.key"), "agent")
	authtest.NewAuthority(t, t.TempDir()).Issue(t, r.path("strange.pem"), r.path("strange.key"), "agent")
	for cause, own := range map[string]client.Credentials{
		"expired certificate":           {Certificate: r.path("expired.pem"), Key: r.path("expired.key")},
		"unknown certificate authority": {Certificate: r.path("strange.pem"), Key: r.path("strange.key")},
		"certificate required":          {},
	} {
		own.CA = r.path("ca.pem")
		for range 10 { // what the client notices first is chance
			conn, err := client.Dial(r.address, own)
			if err != nil {
				t.Fatal(err)
			}
			err = client.AsError(check(t, conn, ""), r.address)
			if err == nil || !strings.Contains(err.Error(), "remote error: tls: "+cause+"): CONTEXTD_CERT and CONTEXTD_KEY must be") {
				t.Errorf("%s: %v", cause, err)
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	waits := exec.Command(build(t), "health", "--wait=3s", "--addr="+r.address, "--ca="+r.path("ca.pem"))
	if out, err := waits.CombinedOutput(); err == nil || !strings.Contains(string(out), "certificate required") {
		t.Errorf("who waits does not learn why: %v, %s", err, out)
	}
	await(t, func() bool { return strings.Contains(r.log.String(), `"what":"a client was refused by its handshake"`) })
}
