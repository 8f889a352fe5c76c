// Command pgserver starts a PostgreSQL for tests of another module: it prints the server's address, nothing
// where none is installed, and stops it at the end of its input.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/contextd/contextd/internal/log/pglog/pgtest"
)

func main() {
	server, err := pgtest.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if server == nil {
		return
	}
	fmt.Println(server.DSN(""))
	_ = os.Stdout.Close()                // that is all
	_, _ = io.Copy(io.Discard, os.Stdin) // until whoever started it has ended
	server.Stop()
}
