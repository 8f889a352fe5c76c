package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
)

// sidecar finds a running daemon, or starts one on loopback that stores in memory. stop ends a daemon that
// was started, and waits until it has ended.
func sidecar(ctx context.Context) (address string, stop func(), err error) {
	if address := os.Getenv("CONTEXTD_ADDR"); address != "" {
		return address, func() {}, nil
	}
	binary := os.Getenv("CONTEXTD_BINARY")
	if binary == "" {
		binary = "contextd"
	}
	cmd := exec.CommandContext(ctx, binary, "serve", "--store", "memory", "--listen", "127.0.0.1:0", "--log-format", "json")
	logs, err := cmd.StderrPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("start the daemon: %w", err)
	}
	stop = func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_, _ = io.Copy(io.Discard, logs)
		_ = cmd.Wait()
	}
	lines := bufio.NewReader(logs)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			stop()
			return "", nil, errors.New("the daemon ended before it listened")
		}
		var entry struct{ Msg, Address string }
		if json.Unmarshal(line, &entry) == nil && entry.Msg == "listening" {
			// Read the daemon's log to the end, so that it never blocks on a full pipe.
			go func() { _, _ = io.Copy(io.Discard, lines) }()
			return entry.Address, stop, nil
		}
	}
}
