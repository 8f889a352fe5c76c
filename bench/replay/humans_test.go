package main

import (
	"strings"
	"testing"

	contextdv1 "github.com/contextd/contextd/proto/contextd/v1"
)

func TestCheckOfHumanWords(t *testing.T) {
	user, assistant := contextdv1.Role_ROLE_USER, contextdv1.Role_ROLE_ASSISTANT
	log := []*contextdv1.Event{
		{Labels: map[string]string{"harness.injected": "true"}, Kind: &contextdv1.Event_Message{Message: textMessage(user, "# AGENTS.md")}},
		{Kind: &contextdv1.Event_Message{Message: textMessage(user, strings.Repeat("Fix it. ", 10))}},
		{Kind: &contextdv1.Event_Message{Message: textMessage(assistant, "Done.")}},
		{Kind: &contextdv1.Event_Message{Message: textMessage(user, strings.Repeat("And that. ", 10))}},
		{Labels: map[string]string{"harness.injected": "true"}, Kind: &contextdv1.Event_Message{Message: textMessage(user, "A task has ended.")}},
	}
	verbatim, clipped, stubbed := contextdv1.Origin_ORIGIN_VERBATIM, contextdv1.Origin_ORIGIN_CLIPPED, contextdv1.Origin_ORIGIN_STUBBED
	for name, c := range map[string]struct {
		events  int // of the log
		origins map[uint64]contextdv1.Origin
		target  uint64
		wrong   string // in the error; empty is none
	}{
		"both are there":               {5, map[uint64]contextdv1.Origin{2: verbatim, 4: verbatim}, 1000, ""},
		"the first is missing":         {5, map[uint64]contextdv1.Origin{1: verbatim, 4: verbatim}, 1000, "first human words: event 2 is missing"},
		"the newest is missing":        {5, map[uint64]contextdv1.Origin{2: verbatim, 5: verbatim}, 1000, "newest human words: event 4 is missing"},
		"the newest is a stub":         {5, map[uint64]contextdv1.Origin{2: verbatim, 4: stubbed}, 1000, "newest human words: event 4 is ORIGIN_STUBBED"},
		"the first is clipped":         {5, map[uint64]contextdv1.Origin{2: clipped, 4: verbatim}, 1000, "first human words: event 2 is clipped"},
		"it is large and clipped":      {5, map[uint64]contextdv1.Origin{2: clipped, 4: verbatim}, 100, ""},
		"the newest is clipped":        {5, map[uint64]contextdv1.Origin{2: verbatim, 3: verbatim, 4: clipped}, 1000, "newest human words: event 4 is clipped"},
		"nothing else is there":        {5, map[uint64]contextdv1.Origin{2: verbatim, 4: clipped}, 1000, ""},
		"no human has said anything":   {1, map[uint64]contextdv1.Origin{1: verbatim}, 1000, ""},
		"the replacement is missing":   {1, nil, 1000, "first human words: event 1 is missing"},
		"the first is the newest, too": {3, map[uint64]contextdv1.Origin{2: verbatim, 3: verbatim}, 1000, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var h humans
			for i, e := range log[:c.events] {
				if e.GetMessage().GetRole() == user {
					h.observe(uint64(i)+1, e)
				}
			}
			a := answer{header: &contextdv1.ContextHeader{Budget: &contextdv1.BudgetReport{TargetTokens: c.target}}}
			for seq := range uint64(len(log)) {
				if origin, ok := c.origins[seq+1]; ok {
					a.messages = append(a.messages, &contextdv1.RenderedMessage{SourceSeqs: []uint64{seq + 1}, Origin: origin, Message: log[seq].GetMessage()})
				}
			}
			err := h.check(a)
			if (err == nil) != (c.wrong == "") || err != nil && !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%v, want %q", err, c.wrong)
			}
		})
	}
}
