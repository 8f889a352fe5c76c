package main

import (
	"flag"
	"os"
	"testing"
)

func TestFlagsWithoutEffectAreRefused(t *testing.T) {
	args, flags := os.Args, flag.CommandLine
	t.Cleanup(func() { os.Args, flag.CommandLine = args, flags })
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"-corpus", "x", "-direct", "-model", "m"}, ""},
		{[]string{"-corpus", "x", "-summaries", "-model", "m"}, ""},
		{[]string{"-trace"}, ""},
		{[]string{"-corpus", "x", "-model", "m"}, "-model: goes with -direct or -formats, and with a corpus"},
		{[]string{"-trace", "-model", "m"}, "-model: goes with -direct or -formats, and with a corpus"},
		{[]string{"-trace", "-direct", "-model", "m"}, "-model: goes with -direct or -formats, and with a corpus"},
		{[]string{"-trace", "-policy", `{"name":"frugal","projection":{"policy":"full"}}`}, `-policy: with -direct only the name of a built-in one: {"name":"frugal"}`},
		{[]string{"-corpus", "x", "-summaries", "-hashes", "f"}, "-hashes: goes with a replay through the daemon, under one model"},
	} {
		flag.CommandLine = flag.NewFlagSet("replay", flag.ContinueOnError)
		os.Args = append([]string{"replay"}, c.args...)
		got := ""
		if _, err := parseFlags(); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%q: %q, want %q", c.args, got, c.want)
		}
	}
}
