package modeltest

// Behaviour is how a server answers every valid request. It refuses invalid requests, and those without the key if
// Key was set, under every behaviour.
type Behaviour string

// The behaviours.
const (
	// OK writes a short summary, the same for the same prompt.
	OK Behaviour = "ok"
	// Slow is OK after a delay.
	Slow Behaviour = "slow"
	// Hang reads the request and never answers.
	Hang Behaviour = "hang"
	// Upgrade switches from HTTP to another protocol, in which it sends nothing.
	Upgrade Behaviour = "upgrade"
	// Down refuses connections.
	Down Behaviour = "down"

	// Failing answers 500.
	Failing Behaviour = "failing"
	// Overloaded answers 503, and 529 where Anthropic does. Not recorded.
	Overloaded Behaviour = "overloaded"
	// RateLimited answers 429 with Retry-After, which the recorded server does not send.
	RateLimited Behaviour = "rate_limited"
	// Unauthorized answers 401, as to a wrong key. In the Messages API not recorded.
	Unauthorized Behaviour = "unauthorized"
	// UnknownModel answers 400, as to a model that is not served.
	UnknownModel Behaviour = "unknown_model"
	// ContextExceeded answers 400, as to a prompt longer than the model's window.
	ContextExceeded Behaviour = "context_exceeded"

	// NotJSON, HTML, Truncated and WrongShape answer 200 with a body that is no answer of the API. Not recorded.
	NotJSON    Behaviour = "not_json"
	HTML       Behaviour = "html"
	Truncated  Behaviour = "truncated"
	WrongShape Behaviour = "wrong_shape"

	// Echo writes the prompt.
	Echo Behaviour = "echo"
	// Empty writes nothing.
	Empty Behaviour = "empty"
	// Long writes far more than the limit and says that it is finished.
	Long Behaviour = "long"
	// CutOff writes the beginning of a summary and says that it was cut off.
	CutOff Behaviour = "cut_off"
	// Refusal refuses, with the API's mark for that. Not recorded.
	Refusal Behaviour = "refusal"
	// Thinking writes reasoning in marks before the summary. Not recorded.
	Thinking Behaviour = "thinking"
)

// Behaviours returns all behaviours.
func Behaviours() []Behaviour {
	return []Behaviour{
		OK, Slow, Hang, Upgrade, Down,
		Failing, Overloaded, RateLimited, Unauthorized, UnknownModel, ContextExceeded,
		NotJSON, HTML, Truncated, WrongShape,
		Echo, Empty, Long, CutOff, Refusal, Thinking,
	}
}
