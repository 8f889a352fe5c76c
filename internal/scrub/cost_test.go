package scrub_test

import (
	"strings"
	"testing"

	"github.com/contextd/contextd/internal/scrub"
)

// TestRepeatedStartsAreFound: a run of starts of credentials without an end takes linear time. Searching from
// each start to the end would take hours for a text of this size.
func TestRepeatedStartsAreFound(t *testing.T) {
	s, err := scrub.New(scrub.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ start, then, want string }{
		{"password", ` = "hunter2-x9Kq"`, ` = "[scrubbed:assigned_secret]"`},
		{"passwordſ", ` = "hunter2-x9Kq"`, ` = "[scrubbed:assigned_secret]"`},
		{"secret=", `, secret=hunter2-x9Kq`, `, secret=[scrubbed:assigned_secret]`},
		{"pwd=1", `, pwd=hunter2-x9Kq`, `, pwd=[scrubbed:assigned_secret]`},
		{"sk-", ` sk-0123456789abcdefghijkl`, ` [scrubbed:model_api_key]`},
		{"-eyJ", ` eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeK`, ` [scrubbed:jwt]`},
	} {
		before := strings.Repeat(c.start, (1<<20)/len(c.start))
		if got := s.Text(before + c.then); got != before+c.want {
			t.Errorf("%s: …%q", c.start, got[max(0, len(got)-100):])
		}
	}
}
