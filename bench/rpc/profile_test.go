package rpc_test

import (
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
)

var profiles = flag.String("profiles", "", "folder for what BenchmarkProfile writes")

// profileSeconds is how long a way is profiled.
const profileSeconds = 8

// BenchmarkProfile writes a CPU profile of the daemon under 64 writers for each way and size into the folder
// -profiles. Metrics are on, since they share an address with profiles.
func BenchmarkProfile(b *testing.B) {
	if *profiles == "" {
		b.Skip("SKIPPED: -profiles names no folder for the profiles")
	}
	for _, size := range []int{1 << 10, 16 << 10} {
		metrics := freeAddress(b)
		d := start(b, "--metrics-listen="+metrics, "--pprof")
		s := newTexts(b, size)
		var n atomic.Int64
		for _, w := range []*way{{name: "unary", append: s.unary(d)}, {name: "stream", append: s.stream(d)}} {
			measure(b, d, w, &n, 64, roundEvents(size, 64))
			file := filepath.Join(*profiles, fmt.Sprintf("append-%s-%dKiB.pprof", w.name, size>>10))
			written := make(chan error, 1)
			go func() {
				written <- fetch(fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", metrics, profileSeconds), file)
			}()
			for running := true; running; {
				measure(b, d, w, &n, 64, roundEvents(size, 64))
				select {
				case err := <-written:
					if err != nil {
						b.Fatal(err)
					}
					running = false
				default:
				}
			}
		}
		d.stop()
	}
}

func freeAddress(b *testing.B) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func fetch(url, file string) error {
	resp, err := http.Get(url)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, resp.Body)
	if closeErr := out.Close(); err == nil {
		err = closeErr
	}
	return err
}
