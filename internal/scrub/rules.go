package scrub

import (
	"math"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// rule finds one kind of credential.
type rule struct {
	name string
	// starts are the texts with which a match can begin; fold ignores their case. They are searched for
	// first, since the pattern is far slower.
	starts []string
	fold   bool
	// inside is set where a match may directly follow a letter or a digit.
	inside bool
	// pattern is matched from a start on. Its first group is replaced or, if it has none, the whole match.
	pattern lazyRegexp
	// accept, if set, decides whether a match is a credential.
	accept func(secret string) bool
	// run, if set, says which characters a match extends over: always to the end of the run. So if the match
	// at one start is no credential, later starts in the same run need not be tried.
	run func(rune) bool
}

// longestNested is how many bytes at the end of a value that is no credential are searched for another
// assignment. Searching from each start in the value would take quadratic time.
const longestNested = 256

// builtin are the known shapes as the providers document them, the more specific ones first. The characters
// of a credential never include a quote, a backslash or a bracket, so that JSON stays valid and marks are not
// matched.
var builtin = []rule{
	{
		// Matches the text between the markers or, without an end marker, what looks like base64.
		name: "private_key", starts: []string{"-----BEGIN "}, inside: true,
		pattern: lazily(`^-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----(?:(?:\s|\\[nr])*[A-Z][A-Za-z-]*: [^"\\\n]*)*(?:[A-Za-z0-9+/=\s]|\\[nr])*(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----)?`),
	},
	shape("aws_access_key", `[0-9A-Z]{16}\b`, "AKIA", "ASIA", "ABIA", "ACCA"),
	shape("github_token", `[A-Za-z0-9_]{22,255}\b`, "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
	shape("gitlab_token", `[A-Za-z0-9_-]{20,}`, "glpat-", "gldt-", "glrt-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "glsoat-"),
	shape("slack_token", `[A-Za-z0-9-]{10,}`, "xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-", "xoxs-", "xapp-"),
	shape("slack_webhook", `[A-Za-z0-9/_-]{20,}`, "hooks.slack.com/services/", "hooks.slack.com/workflows/"),
	shape("google_key", `[0-9A-Za-z_-]{20,}`, "AIza", "ya29.", "GOCSPX-"),
	shape("stripe_key", `[0-9a-zA-Z]{16,}`, "sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"),
	shape("npm_token", `[A-Za-z0-9]{36}\b`, "npm_"),
	shape("pypi_token", `[A-Za-z0-9_-]{50,}`, "pypi-"),
	shape("docker_token", `[A-Za-z0-9_-]{20,}`, "dckr_pat_", "dckr_oat_"),
	shape("huggingface_token", `[A-Za-z0-9]{30,}\b`, "hf_"),
	shape("sendgrid_key", `[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}`, "SG."),
	shape("digitalocean_token", `[a-f0-9]{64}\b`, "dop_v1_", "doo_v1_", "dor_v1_"),
	shape("shopify_token", `[a-fA-F0-9]{32}\b`, "shpat_", "shpca_", "shppa_", "shpss_"),
	shape("vault_token", `[A-Za-z0-9_-]{24,}`, "hvs.", "hvb.", "hvr."),
	shape("databricks_token", `[0-9a-f]{32}\b`, "dapi"),
	shape("age_key", `[0-9A-Z]{58}\b`, "AGE-SECRET-KEY-1"),
	shape("jwt", `[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}`, "eyJ").through(isTokenRune),
	{
		// OpenAI, Anthropic, OpenRouter and many others.
		name: "model_api_key", starts: []string{"sk-"},
		pattern: lazily(`^sk-[A-Za-z0-9_-]{20,}`), accept: mixed, run: isTokenRune,
	},
	{
		name: "telegram_token", starts: []string{":AA"}, inside: true,
		pattern: lazily(`^:(AA[A-Za-z0-9_-]{33})\b`), accept: mixed,
	},
	{
		name: "authorization", starts: []string{"authorization", "bearer"}, fold: true, inside: true,
		pattern: lazily(`(?i)^(?:authorization[\\"']*\s*[:=]\s*[\\"']*(?:bearer|basic|token)|bearer)\s+([a-z0-9._~+/=-]{16,})`),
		accept:  mixed,
	},
	{
		name: "url_password", starts: []string{"://"}, inside: true,
		pattern: lazily(`^://[^\s/:@"'<>\\()\[\]{}$]*:([^\s/@"'<>\\()\[\]{}$*]+)@`),
	},
	{
		name: "assigned_secret", fold: true, inside: true,
		starts: []string{
			"password", "passphrase", "passwd", "pwd", "secret",
			"apikey", "api_key", "api-key", "accesskey", "access_key", "access-key", "privatekey", "private_key", "private-key",
			"signingkey", "signing_key", "signing-key", "encryptionkey", "encryption_key", "encryption-key",
			"accountkey", "account_key", "account-key", "authtoken", "auth_token", "auth-token", "apitoken", "api_token", "api-token",
			"accesstoken", "access_token", "access-token", "refreshtoken", "refresh_token", "refresh-token",
		},
		pattern: lazily(`(?i)^[a-z][a-z0-9_-]*(?:\\*["'])?\s*(?::=|=>|=|:)\s*(?:\\*["'])?([a-z0-9+/=_.~!@#%^&*-]{8,})`),
		accept:  drawn,
		run:     isNameRune,
	},
}

// lazyRegexp is a regular expression that is compiled at its first use: most daemons need few of them.
type lazyRegexp struct {
	expr     string
	compiled func() *regexp.Regexp
}

func lazily(expr string) lazyRegexp {
	return lazyRegexp{expr, sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })}
}

func (r lazyRegexp) String() string { return r.expr }

// shape is a rule for credentials that consist of one of several starts and a rest.
func shape(name, rest string, starts ...string) rule {
	quoted := make([]string, len(starts))
	for i, start := range starts {
		quoted[i] = regexp.QuoteMeta(start)
	}
	return rule{name: name, starts: starts, pattern: lazily(`^(?:` + strings.Join(quoted, "|") + `)` + rest)}
}

func (r rule) through(run func(rune) bool) rule {
	r.run = run
	return r
}

// candidates are the rules with a start that begins with these two bytes. Most texts have few such pairs.
// Each start has at least two bytes.
func candidates(a, b byte) []*rule { return groups[groupOf[int(a)<<8|int(b)]] }

// groupOf maps each pair of bytes to an index in groups; the first group is empty.
var groupOf, groups = func() (of [1 << 16]uint16, groups [][]*rule) {
	groups = [][]*rule{nil}
	for i := range builtin {
		pairs := map[[2]byte]bool{}
		for _, start := range builtin[i].starts {
			for _, spelled := range builtin[i].spellings(start[:2]) {
				pairs[[2]byte{spelled[0], spelled[1]}] = true
			}
		}
		for pair := range pairs {
			at := &of[int(pair[0])<<8|int(pair[1])]
			if *at == 0 {
				*at = uint16(len(groups))
				groups = append(groups, nil)
			}
			groups[*at] = append(groups[*at], &builtin[i])
		}
	}
	return of, groups
}()

// spellings are the ways in which a text may spell the first two letters of a start.
func (r *rule) spellings(pair string) []string {
	if !r.fold {
		return []string{pair}
	}
	lower, upper := strings.ToLower(pair), strings.ToUpper(pair)
	return []string{lower, upper, lower[:1] + upper[1:], upper[:1] + lower[1:]}
}

// find looks for a match that begins at i and returns the part to replace. If there is none, no match begins
// before next either.
func (r *rule) find(text string, i int) (begin, end, next int, ok bool) {
	if !r.inside && i > 0 && isWord(text[i-1]) || !r.startsAt(text[i:]) {
		return 0, 0, 0, false
	}
	at := r.pattern.compiled().FindStringSubmatchIndex(text[i:])
	if at == nil {
		return 0, 0, r.endOfRun(text, i), false
	}
	at = at[len(at)-2:] // the first group, or the whole match
	begin, end = i+at[0], i+at[1]
	if r.accept == nil || r.accept(text[begin:end]) {
		return begin, end, 0, true
	}
	return 0, 0, max(r.endOfRun(text, i), end-longestNested), false
}

// endOfRun is the end of the run of characters at i; 0 if the rule has no run.
func (r *rule) endOfRun(text string, i int) int {
	if r.run == nil {
		return 0
	}
	n := strings.IndexFunc(text[i:], func(c rune) bool { return !r.run(c) })
	if n < 0 {
		return len(text)
	}
	return i + n
}

func (r *rule) startsAt(text string) bool {
	for _, start := range r.starts {
		if strings.HasPrefix(text, start) || r.fold && len(text) >= len(start) && strings.EqualFold(text[:len(start)], start) {
			return true
		}
	}
	return false
}

func isWord(b byte) bool {
	return b == '_' || '0' <= b && b <= '9' || 'A' <= b && b <= 'Z' || 'a' <= b && b <= 'z'
}

func isTokenRune(r rune) bool { return r == '-' || r < utf8.RuneSelf && isWord(byte(r)) }

// isNameRune also accepts characters that fold to ASCII letters, as case-insensitive patterns do.
func isNameRune(r rune) bool { return isTokenRune(r) || r == 'ſ' || r == '\u212a' }

// mixed reports whether a text has both letters and digits: a key does, a word or a number does not.
func mixed(text string) bool {
	return strings.ContainsFunc(text, unicode.IsDigit) && strings.ContainsFunc(text, unicode.IsLetter)
}

// leastEntropy is the entropy, in bits per character, that an assigned text must have to count as a secret.
// For example, a text of eight different characters has 3.
const leastEntropy = 2.75

// drawn reports whether a text looks random rather than written.
func drawn(text string) bool {
	if !mixed(text) {
		return false
	}
	var counts [256]int
	for i := range len(text) {
		counts[text[i]]++
	}
	entropy, n := 0.0, float64(len(text))
	for _, c := range counts {
		if c > 0 {
			p := float64(c) / n
			entropy -= p * math.Log2(p)
		}
	}
	return entropy >= leastEntropy
}
