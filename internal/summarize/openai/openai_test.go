package openai_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/modelhttp"
	"github.com/contextd/contextd/internal/summarize/modeltest"
	"github.com/contextd/contextd/internal/summarize/modeltest/backendtest"
	"github.com/contextd/contextd/internal/summarize/modeltest/realtest"
	"github.com/contextd/contextd/internal/summarize/openai"
)

var endpoint = realtest.RegisterFlags(flag.CommandLine)

func open(o modelhttp.Options) (summarize.Backend, error) {
	return openai.New(openai.Options{Options: o})
}

func TestReal(t *testing.T)     { endpoint.Run(t, modeltest.OpenAI, open) }
func TestRecorded(t *testing.T) { realtest.Replay(t, modeltest.OpenAI, open) }

func TestBehaviours(t *testing.T) { backendtest.Run(t, modeltest.OpenAI, open) }

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
