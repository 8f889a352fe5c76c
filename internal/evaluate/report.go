package evaluate

// Report is the result of policies on the sessions of some files. Shares are from 0 to 1, and null if there
// was nothing to find. Costs in dollars include only sessions whose model has a known price, and are null
// if none has.
type Report struct {
	Settings Settings `json:"settings"`
	// Files counts the transcripts that were read, and Others the files that are no transcripts.
	Files  int `json:"files"`
	Others int `json:"other_files"`
	// Failed are the files that could not be read, sorted by path.
	Failed   []FailedFile `json:"failed_files"`
	Sessions int          `json:"sessions"`
	// Priced counts the sessions whose model has a known price.
	Priced int `json:"priced_sessions"`
	// Calls counts the model calls of all sessions.
	Calls int `json:"calls"`
	// Compactions counts the compactions that the harnesses recorded.
	Compactions int            `json:"compactions"`
	Models      []SessionModel `json:"models"`
	Policies    []Row          `json:"policies"`
	// Harnesses has the rows of each harness.
	Harnesses []HarnessRows `json:"harnesses"`
	// Days is the cost of each day, by the times of the transcripts, oldest first.
	Days []Day `json:"days"`
	// Largest are the sessions that take the most tokens when everything is sent, the largest first.
	Largest []SessionReport `json:"largest_sessions"`
}

// Settings are the options of a report.
type Settings struct {
	// Model is the model assumed for all sessions; empty for each session's own.
	Model string `json:"model,omitempty"`
	// MaxTokens is the window assumed for all sessions; 0 is the window of each session's model.
	MaxTokens uint64 `json:"max_tokens,omitempty"`
	// CacheTTLSeconds is how long the provider's cache keeps a prefix; 0 is without end.
	CacheTTLSeconds float64 `json:"cache_ttl_seconds"`
	// Policies are the names of the compared policies, in the order of all rows. Kinds says where each is from.
	Policies []string `json:"policies"`
	Kinds    []Kind   `json:"kinds"`
}

// Kind says where a policy is from.
type Kind string

// The kinds of policies.
const (
	KindContextd Kind = "contextd"    // a preset of contextd
	KindFile     Kind = "policy_file" // a policy of a file
	KindHarness  Kind = "harness"     // what the harness itself sent
	KindSimple   Kind = "simple"      // a policy that needs no contextd
)

// FailedFile is a file that could not be read, and why.
type FailedFile struct {
	Path  string `json:"path"`
	Error string `json:"error"`
}

// SessionModel is a model by which sessions were measured.
type SessionModel struct {
	// Model is the name in the transcript; empty if it has none. Entry is the name in the models table.
	Model string `json:"model"`
	Entry string `json:"entry"`
	// Window and Target are in tokens.
	Window   uint64 `json:"window"`
	Target   uint64 `json:"target"`
	Sessions int    `json:"sessions"`
	// InputUSD is the price of a million new tokens of the prompt; null if it is not known.
	InputUSD *float64 `json:"input_usd_per_million"`
}

// Row is the result of one policy.
type Row struct {
	Policy string `json:"policy"`
	Kind   Kind   `json:"kind"`
	// Cost is relative to sending everything. Spent is in units of the price of one uncached prompt token,
	// USD in dollars.
	Cost  *float64 `json:"cost"`
	Spent float64  `json:"spent_tokens"`
	USD   *float64 `json:"usd"`
	// Recall, Evidence, Edits and CallsVisible are shares of what the model needed next.
	Recall       *float64 `json:"recall"`
	Evidence     *float64 `json:"evidence"`
	Edits        *float64 `json:"edits"`
	CallsVisible *float64 `json:"calls_visible"`
	// OverWindow counts the contexts larger than the window, OverTarget those larger than the target, and
	// Refused those that could not be made to fit.
	OverWindow    int `json:"over_window"`
	OverTarget    int `json:"over_target"`
	Refused       int `json:"refused"`
	PrefixChanges int `json:"prefix_changes"`
	// Causes count the prefix changes by cause.
	Causes  map[string]int `json:"causes"`
	Tokens  uint64         `json:"tokens"`
	Cached  uint64         `json:"cached_tokens"`
	Largest uint64         `json:"largest_context"`
	Expired int            `json:"expired_caches"`
}

// HarnessRows are the rows of one harness's sessions.
type HarnessRows struct {
	Harness  string `json:"harness"`
	Sessions int    `json:"sessions"`
	Calls    int    `json:"calls"`
	Policies []Row  `json:"policies"`
}

// Day is the cost of the calls of one day, in UTC.
type Day struct {
	Day   string `json:"day"`
	Calls int    `json:"calls"`
	// Spent and USD are by policy, in the order of the settings.
	Spent []float64  `json:"spent_tokens"`
	USD   []*float64 `json:"usd"`
}

// SessionReport is one session in detail.
type SessionReport struct {
	File    string  `json:"file"`
	Suffix  string  `json:"suffix,omitempty"`
	Harness string  `json:"harness"`
	Model   string  `json:"model"`
	Window  uint64  `json:"window"`
	Target  uint64  `json:"target"`
	Calls   int     `json:"calls"`
	Rows    []Row   `json:"policies"`
	Trails  []Trail `json:"trails"`
}

// Trail is the course of a session under a policy.
type Trail struct {
	Policy string `json:"policy"`
	// Points are some of the calls, evenly spaced, including the last.
	Points []TrailPoint `json:"points"`
	// Changes are the prefix changes; only the first ones, if there are many.
	Changes []TrailChange `json:"changes"`
}

// TrailPoint is one call of a trail.
type TrailPoint struct {
	Call   int     `json:"call"` // from 1
	Tokens uint64  `json:"tokens"`
	Cached uint64  `json:"cached_tokens"`
	Spent  float64 `json:"spent_tokens"` // so far
}

// TrailChange is a change of the prefix.
type TrailChange struct {
	Call   int    `json:"call"`
	Cause  string `json:"cause"`
	Before uint64 `json:"tokens_before"`
	After  uint64 `json:"tokens_after"`
	// Cached is how many tokens of the new prompt came from the cache.
	Cached uint64 `json:"cached_tokens"`
}

// Measured is one session with the outcomes of the policies, in the order of the settings.
type Measured struct {
	Session  *Session
	Model    SessionModel // Sessions is not set
	Outcomes []Outcome
}
