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
	// starts are texts of which each match begins with one, in any case where fold is set.
	// They are looked for before the pattern, which is far slower, is tried.
	starts []string
	fold   bool
	// inside is set where a letter or a digit may come before a match.
	inside bool
	// pattern matches from a start on. Its first group is what is replaced, or all of it.
	pattern lazyRegexp
	// accept, if set, is asked whether what was found is a credential.
	accept func(secret string) bool
	// run, if set, are the characters that a match goes on with to the last of them, whichever
	// start among them it begins with: where one finds nothing, the later ones need no look.
	run func(rune) bool
}

// longestNested is how much of a value that is no credential is searched for another assignment,
// from its end. Looking from each start in it would take the square of its length.
const longestNested = 256

// builtin are the known shapes, the more special ones first. Each is what the provider of
// the credential documents about it. No class of characters that a credential may consist
// of holds a quote, a backslash or a bracket: JSON stays JSON, and marks are not found.
var builtin = []rule{
	{
		// The text between the markers; without the second one, what looks like base64.
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

// lazyRegexp is a regular expression that is compiled when it is first needed: most daemons need
// few of them, and none at the start.
type lazyRegexp struct {
	expr     string
	compiled func() *regexp.Regexp
}

func lazily(expr string) lazyRegexp {
	return lazyRegexp{expr, sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })}
}

func (r lazyRegexp) String() string { return r.expr }

// shape is the rule of a credential that one of a few texts begins and rest ends.
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

// candidates are the rules of which a match may begin with two bytes: most texts hold few
// such pairs. Each start has two bytes at least.
func candidates(a, b byte) []*rule { return groups[groupOf[int(a)<<8|int(b)]] }

// groupOf is the index in groups for each pair of bytes; the first group is empty.
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

// spellings are the ways in which a text may have two letters of a start.
func (r *rule) spellings(pair string) []string {
	if !r.fold {
		return []string{pair}
	}
	lower, upper := strings.ToLower(pair), strings.ToUpper(pair)
	return []string{lower, upper, lower[:1] + upper[1:], upper[:1] + lower[1:]}
}

// find returns what is to be replaced of a match at i. Where it finds nothing, no match begins
// before next.
func (r *rule) find(text string, i int) (begin, end, next int, ok bool) {
	if !r.inside && i > 0 && isWord(text[i-1]) || !r.startsAt(text[i:]) {
		return 0, 0, 0, false
	}
	at := r.pattern.compiled().FindStringSubmatchIndex(text[i:])
	if at == nil {
		return 0, 0, r.endOfRun(text, i), false
	}
	at = at[len(at)-2:] // the group, or the whole match
	begin, end = i+at[0], i+at[1]
	if r.accept == nil || r.accept(text[begin:end]) {
		return begin, end, 0, true
	}
	return 0, 0, max(r.endOfRun(text, i), end-longestNested), false
}

// endOfRun is where the run ends that i is in.
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

// isNameRune takes what folds to a letter of ASCII as well, as a pattern does that folds.
func isNameRune(r rune) bool { return isTokenRune(r) || r == 'ſ' || r == '\u212a' }

// mixed reports whether a text has letters and digits: words and numbers are no keys.
func mixed(text string) bool {
	return strings.ContainsFunc(text, unicode.IsDigit) && strings.ContainsFunc(text, unicode.IsLetter)
}

// leastEntropy is, in bits for each character, what a text that somebody assigned must have
// to be taken for a secret. Of 8 different characters it has 3.
const leastEntropy = 2.75

// drawn reports whether a text looks as if it was drawn at random, not written.
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
