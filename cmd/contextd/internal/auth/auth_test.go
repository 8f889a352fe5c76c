package auth

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func token(t *testing.T, name, tenant string) (token, listed string) {
	t.Helper()
	token, entry, err := NewToken(name, tenant)
	if err != nil {
		t.Fatal(err)
	}
	b, err := yaml.Marshal([]TokenEntry{entry})
	if err != nil {
		t.Fatal(err)
	}
	return token, string(b)
}

// identify authenticates a call over a connection, with values of the metadata "authorization".
func identify(t *testing.T, a *Authenticator, info credentials.AuthInfo, authorization ...string) (Identity, error) {
	t.Helper()
	ctx, done, err := a.Authenticate(incoming(t, info, authorization...))
	if err != nil {
		return Identity{}, err
	}
	done()
	return Of(ctx), nil
}

// incoming is the context of a call before authentication.
func incoming(t *testing.T, info credentials.AuthInfo, authorization ...string) context.Context {
	ctx := peer.NewContext(t.Context(), &peer.Peer{AuthInfo: info})
	return metadata.NewIncomingContext(ctx, metadata.MD{"authorization": authorization})
}

func TestTokens(t *testing.T) {
	one, listedOne := token(t, "one", "a")
	_, listedTwo := token(t, "two", "")
	hash := strings.Repeat("0", 64)
	for name, test := range map[string]struct {
		content string
		// want is a part of the error; empty for none.
		want string
	}{
		"none":            {"", ""},
		"two":             {listedOne + listedTwo, ""},
		"twice":           {listedOne + listedOne, "entry 2: one is the token of token one"},
		"no name":         {"- {sha256: " + hash + "}", "name"},
		"no hash":         {"- {name: x}", "sha256 of x"},
		"the token":       {"- {name: x, sha256: " + one + "}", "sha256 of x"},
		"a wrong tenant":  {"- {name: x, sha256: " + hash + ", tenant: a/b}", `tenant "a/b"`},
		"an unknown key":  {"- {name: x, token: " + one + "}", "must be a YAML list"},
		"what is no list": {one, "must be a YAML list"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := parseTokens([]byte(test.content))
			if (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), one)) {
				t.Errorf("%v; want %q", err, test.want)
			}
		})
	}
}

func TestBearer(t *testing.T) {
	one, listed := token(t, "one", "a")
	path := filepath.Join(t.TempDir(), "tokens.yaml")
	write(t, path, listed)
	a, err := New(Options{TokenFile: path}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	who := Identity{Name: "token one", Tenant: "a"}
	for name, test := range map[string]struct {
		authorization []string
		want          Identity
		err           string
	}{
		"known":        {[]string{"Bearer " + one}, who, ""},
		"another case": {[]string{"bearer " + one}, who, ""},
		"unknown":      {[]string{"Bearer x" + one}, Identity{}, "is not known"},
		"none":         {nil, Identity{}, "has no bearer token"},
		"twice":        {[]string{"Bearer " + one, "Bearer " + one}, Identity{}, "once"},
		"no scheme":    {[]string{one}, Identity{}, `"Bearer "`},
		"basic":        {[]string{"Basic " + one}, Identity{}, `"Bearer "`},
		"empty":        {[]string{"Bearer "}, Identity{}, `"Bearer "`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := identify(t, a, nil, test.authorization...)
			if got != test.want || (err == nil) != (test.err == "") || err != nil && (!strings.Contains(err.Error(), test.err) || strings.Contains(err.Error(), one)) {
				t.Errorf("%+v, %v; want %+v, %q", got, err, test.want, test.err)
			}
		})
	}
}

// TestSocket: the kernel identifies the process at the other end of a socket.
func TestSocket(t *testing.T) {
	l, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("unix", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	raw, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	_, info, err := Socket().ServerHandshake(raw)
	if err != nil {
		t.Fatal(err)
	}
	uid, gid, other := uint32(os.Getuid()), uint32(os.Getgid()), uint32(os.Getuid()+1)
	for name, test := range map[string]struct {
		peers  []Peer
		tenant string
		denied bool
	}{
		"everybody":           {nil, "", false},
		"the user":            {[]Peer{{UID: &other}, {UID: &uid, Tenant: "a"}}, "a", false},
		"the group":           {[]Peer{{GID: &gid, Tenant: "b"}}, "b", false},
		"the user and group":  {[]Peer{{UID: &uid, GID: &gid}}, "", false},
		"another user":        {[]Peer{{UID: &other}}, "", true},
		"the user or another": {[]Peer{{UID: &other, GID: &gid}}, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := New(Options{Peers: test.peers}, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			who, err := identify(t, a, info)
			if _, denied := errors.AsType[*DeniedError](err); denied != test.denied || who.Tenant != test.tenant {
				t.Errorf("%+v, %v", who, err)
			}
		})
	}
	for _, p := range []Peer{{}, {UID: &uid, Tenant: "/"}} {
		if p.Validate() == nil {
			t.Errorf("%+v is valid", p)
		}
	}
}
