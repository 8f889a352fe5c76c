package openai_test

import (
	"flag"
	"testing"

	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/modelhttp"
	"github.com/contextd/contextd/internal/summarize/modeltest"
	"github.com/contextd/contextd/internal/summarize/modeltest/realtest"
	"github.com/contextd/contextd/internal/summarize/openai"
)

var endpoint = realtest.RegisterFlags(flag.CommandLine)

func TestReal(t *testing.T) {
	endpoint.Run(t, modeltest.OpenAI, func(o modelhttp.Options) (summarize.Backend, error) {
		return openai.New(openai.Options{Options: o})
	})
}
