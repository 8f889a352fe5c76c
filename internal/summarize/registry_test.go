package summarize_test

import (
	"errors"
	"slices"
	"testing"

	eventlog "github.com/contextd/contextd/internal/log"
	"github.com/contextd/contextd/internal/summarize"
	"github.com/contextd/contextd/internal/summarize/extractive"
)

func TestRegistry(t *testing.T) {
	for field, all := range map[string]map[string]summarize.Summarizer{
		`summarizers[""]`:              {"": {Backend: extractive.Backend{}}},
		`summarizers["caller"]`:        {summarize.Caller: {Backend: extractive.Backend{}}},
		`summarizers["none"]`:          {"none": {}},
		`summarizers["slow"].timeout`:  {"slow": {Backend: extractive.Backend{}, Timeout: -1}},
		`summarizers["hot"].cool_down`: {"fine": {Backend: extractive.Backend{}}, "hot": {Backend: extractive.Backend{}, CoolDown: -1}},
	} {
		var invalid *eventlog.InvalidError
		if _, err := summarize.NewRegistry(all); !errors.As(err, &invalid) || invalid.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	r, err := summarize.NewRegistry(map[string]summarize.Summarizer{"b": {Backend: extractive.Backend{}}, "a": {Backend: extractive.Backend{}}})
	if err != nil || !slices.Equal(r.Names(), []string{"a", "b"}) {
		t.Errorf("%v, %v", r, err)
	}
	want := []summarize.BreakerState{{Summarizer: "a", Health: summarize.Closed}, {Summarizer: "b", Health: summarize.Closed}}
	if got := r.Breakers(); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
}
