package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/contextd/contextd/internal/summarize/modeltest"
)

// behaviours are the backends that a run may name, each with what its model does. A model with several
// behaviours changes to the next one with each session.
var behaviours = map[string][]modeltest.Behaviour{
	"ok":    {modeltest.OK},
	"slow":  {modeltest.Slow},
	"hangs": {modeltest.Hang},
	"fails": {modeltest.Failing, modeltest.Overloaded, modeltest.RateLimited, modeltest.Unauthorized},
	"garbage": {
		modeltest.NotJSON, modeltest.HTML, modeltest.Truncated, modeltest.WrongShape,
		modeltest.Empty, modeltest.Long, modeltest.CutOff, modeltest.Refusal,
	},
	"echo": {modeltest.Echo},
	"down": {modeltest.Down},
}

// noModel is the backend that calls no model.
const noModel = "extractive"

// modelSettings configure a model for the daemon. There are no retries within a request and the breaker's
// pauses are short, so that a short replay tries many spans. A slow model is waited for.
const modelSettings = `summarizers:
  fake:
    type: openai
    base_url: %s
    model: fake
    max_attempts: 1
    timeout: 5s
    task_timeout: 10s
    cool_down: 500ms
default_summarizer: fake
`

// lane is one backend: a daemon and its model.
type lane struct {
	name   string
	daemon *daemon
	model  *modeltest.Server // nil for noModel
	asked  int               // requests to the model at budgets that were reported already
}

func parseBackends(list string) ([]string, error) {
	if list == "" {
		return nil, nil
	}
	names := strings.Split(list, ",")
	for i, name := range names {
		if _, ok := behaviours[name]; !ok && name != noModel {
			return nil, fmt.Errorf("-backends: %q is none of %s, %s", name, noModel, strings.Join(slices.Sorted(maps.Keys(behaviours)), ", "))
		}
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("-backends: %q is given twice", name)
		}
	}
	return names, nil
}

func startLane(ctx context.Context, binary, dir, name string) (*lane, error) {
	l := &lane{name: name}
	var more []string
	if all, ok := behaviours[name]; ok {
		l.model = modeltest.New(all[0])
		config := filepath.Join(dir, name+".yaml")
		if err := os.WriteFile(config, fmt.Appendf(nil, modelSettings, l.model.OpenAIURL()), 0o600); err != nil {
			return nil, errors.Join(err, l.close())
		}
		more = []string{"--config", config}
	}
	var err error
	if l.daemon, err = startDaemon(ctx, binary, "disk", dir, name, more...); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

// begin sets the model's behaviour for the nth session.
func (l *lane) begin(n int) {
	if all := behaviours[l.name]; len(all) > 1 {
		l.model.Switch(all[n%len(all)])
	}
}

// requests is how many requests the model got since the last call.
func (l *lane) requests() int {
	if l.model == nil {
		return 0
	}
	before := l.asked
	l.asked = len(l.model.Requests())
	return l.asked - before
}

// close stops the daemon first, since the model's server waits for open requests.
func (l *lane) close() error {
	var err error
	if l.daemon != nil {
		err = l.daemon.close()
	}
	if l.model != nil {
		l.model.Close()
	}
	return err
}
