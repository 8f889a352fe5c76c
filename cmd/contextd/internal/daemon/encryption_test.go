package daemon

import (
	"strings"
	"testing"

	"filippo.io/age"
)

// Editors and hands change files of keys. What is a key all the same is taken for one; of anything else
// the error says what it may be, and nothing of it.
func TestFilesOfKeys(t *testing.T) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	key, public := identity.String(), identity.Recipient().String()
	var wide strings.Builder
	for _, c := range key {
		wide.WriteString(string(c) + "\x00")
	}
	for name, test := range map[string]struct{ text, want string }{
		"as it is written":       {"# public key: " + public + "\n" + key + "\n", ""},
		"two of them":            {key + "\n\n" + key + "\n", ""},
		"a mark before the text": {"\xef\xbb\xbf" + key + "\n", ""},
		"lines of Windows":       {"# a key\r\n" + key + "\r\n", ""},
		"indented":               {"\t" + key + "  ", ""},
		"UTF-16":                 {"\xff\xfe" + wide.String(), "not plain text"},
		"empty":                  {"", "there is no key in it"},
		"a comment":              {"# " + key, "there is no key in it"},
		"a public key":           {"#\n" + public, "line 2 is a public key"},
		"cut":                    {key[:40], "line 1 is a key that was cut or mistyped"},
		"mistyped":               {key + "\n" + key[:len(key)-1] + "1", "line 2 is a key that was cut or mistyped"},
		"quoted":                 {"'" + key + "'", "line 1 is no key"},
		"encrypted":              {"-----BEGIN AGE ENCRYPTED FILE-----\nx", "encryption_key_command"},
	} {
		t.Run(name, func(t *testing.T) {
			keys, err := parseKeys([]byte(test.text))
			if (err == nil) != (test.want == "") || (err == nil) != (len(keys) > 0) {
				t.Fatalf("%d keys, %v; want %q", len(keys), err, test.want)
			}
			if err != nil && (!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), key[20:40])) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}
