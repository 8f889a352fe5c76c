package anthropic_test

import (
	"flag"
	"testing"

	"go.uber.org/goleak"

	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/anthropic"
	"github.com/contextd/contextd/internal/summarize/modelhttp"
	"github.com/contextd/contextd/internal/summarize/modeltest"
	"github.com/contextd/contextd/internal/summarize/modeltest/backendtest"
	"github.com/contextd/contextd/internal/summarize/modeltest/realtest"
)

var endpoint = realtest.RegisterFlags(flag.CommandLine)

func open(o modelhttp.Options) (summarize.Backend, error) {
	return anthropic.New(anthropic.Options{Options: o})
}

func TestReal(t *testing.T)     { endpoint.Run(t, modeltest.Anthropic, open) }
func TestRecorded(t *testing.T) { realtest.Replay(t, modeltest.Anthropic, open) }

func TestBehaviours(t *testing.T) { backendtest.Run(t, modeltest.Anthropic, open) }

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
