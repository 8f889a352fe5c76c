package main

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestRunGroupEndsAll: child processes of a command are ended with it, whether it finishes or is interrupted.
// The pipe reaches its end once no process holds it.
func TestRunGroupEndsAll(t *testing.T) {
	for name, script := range map[string]string{"done": `sleep 1000 & echo up >&3`, "interrupted": `sleep 1000 & echo up >&3; wait`} {
		t.Run(name, func(t *testing.T) {
			up, held, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer up.Close()
			if err := up.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			cmd := exec.CommandContext(ctx, "sh", "-c", script)
			cmd.ExtraFiles = []*os.File{held}
			ended := make(chan error, 1)
			go func() {
				_, err := runGroup(cmd)
				held.Close()
				ended <- err
			}()
			if _, err := io.ReadFull(up, make([]byte, len("up\n"))); err != nil {
				t.Fatal(err)
			}
			if name == "interrupted" {
				cancel()
			}
			if err := <-ended; (err != nil) != (name == "interrupted") {
				t.Errorf("it ends with %v", err)
			}
			if _, err := io.ReadAll(up); err != nil {
				t.Errorf("something runs on: %v", err)
			}
		})
	}
}

// TestProviderRefusesOthers: requests to hosts other than loopback go to the fake, and are reported.
func TestProviderRefusesOthers(t *testing.T) {
	p, err := StartProvider()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	proxy, err := url.Parse(p.URL())
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy)}}
	for _, address := range []string{"http://example.com/", "https://example.org/"} {
		if resp, err := client.Get(address); err == nil {
			resp.Body.Close()
			if resp.StatusCode != http.StatusBadGateway {
				t.Errorf("%s answers %s", address, resp.Status)
			}
		}
	}
	if got := strings.Join(p.Outside(), " "); got != "example.com example.org:443" {
		t.Errorf("it reports %q", got)
	}
	if len(p.Requests()) != 0 {
		t.Errorf("%d requests for a model", len(p.Requests()))
	}
}
