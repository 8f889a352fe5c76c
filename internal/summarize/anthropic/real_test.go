package anthropic_test

import (
	"flag"
	"testing"

	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/anthropic"
	"github.com/contextd/contextd/internal/summarize/modelhttp"
	"github.com/contextd/contextd/internal/summarize/modeltest"
	"github.com/contextd/contextd/internal/summarize/modeltest/realtest"
)

var endpoint = realtest.RegisterFlags(flag.CommandLine)

func TestReal(t *testing.T) {
	endpoint.Run(t, modeltest.Anthropic, func(o modelhttp.Options) (summarize.Backend, error) {
		return anthropic.New(anthropic.Options{Options: o})
	})
}
