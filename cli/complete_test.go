package cli

import (
	"slices"
	"strings"
	"testing"

	"lockstep/cli/frame"
)

// completed returns what completes the last word of a command line, without descriptions, and
// the directive to the shell.
func completed(t *testing.T, args ...string) (names []string, directive string) {
	t.Helper()
	code, out, stderr := call(t, append([]string{"__complete"}, args...)...)
	if code != frame.ExitOK {
		t.Fatalf("%v: exit %d, %s", args, code, stderr)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for _, line := range lines[:len(lines)-1] {
		name, _, _ := strings.Cut(line, "\t")
		names = append(names, name)
	}
	return names, lines[len(lines)-1]
}

func TestCompletion(t *testing.T) {
	const (
		anything   = ":0"
		noFile     = ":4"
		noFileMore = ":6" // and no space, since a comma may follow
		withEnding = ":8"
		folder     = ":16"
	)
	for _, c := range []struct {
		rule      string
		args      []string
		directive string
		names     string // some of them; "": none at all
	}{
		{"a command", []string{"ex"}, noFile, "explore"},
		{"a command to explain", []string{"help", ""}, noFile, "run explore completion help"},
		{"a scenario", []string{"run", "misd"}, noFile, "misdelete misdelete-between-get-and-del"},
		{"a second scenario", []string{"matrix", "misdelete", "pause-p"}, noFile, "pause-past-lease"},
		{"a scenario file", []string{"run", "./my"}, withEnding, "yaml yml"},
		{"a lock", []string{"run", "misdelete", "--lock", "setnx-d"}, noFileMore, "setnx-del"},
		{"a lock after another", []string{"run", "--lock", "setnx-del,setnx-c"}, noFileMore, "setnx-del,setnx-cad"},
		{"one lock", []string{"explore", "--lock", "redisson-fenced@4"}, noFile, "redisson-fenced@4.7.0"},
		{"a tag", []string{"run", "--tag", "t"}, noFile, "track-record"},
		{"a fault", []string{"explore", "--faults", "p"}, noFileMore, "pause partition"},
		{"a fault after another", []string{"explore", "--faults", "pause,cr"}, noFileMore, "pause,crash"},
		{"a strategy", []string{"explore", "--strategy", ""}, noFile, "plain told tapct exhaustive"},
		{"a profile", []string{"explore", "--profile=o"}, noFile, "orderly"},
		{"a case of an exhaustive search", []string{"explore", "--scenario", "inventory-s"}, noFile, "inventory-small"},
		{"a format", []string{"matrix", "--format", "h"}, noFile, "html"},
		{"a judge", []string{"shrink", "x", "--judge", "li"}, noFile, "linearizable liveness"},
		{"a model", []string{"check", "--model", "fe"}, noFile, "fenced"},
		{"a recording", []string{"replay", ""}, withEnding, "lockstep"},
		{"a history", []string{"check", ""}, withEnding, "jsonl edn gz"},
		{"a folder of results", []string{"serve", ""}, folder, ""},
		{"a folder to write to", []string{"run", "--out", ""}, folder, ""},
		{"a file to write to", []string{"shrink", "x", "-o", ""}, anything, ""},
		{"a number", []string{"explore", "--runs", ""}, noFile, ""},
		{"no argument", []string{"survey", ""}, noFile, ""},
		{"a shell", []string{"completion", "f"}, noFile, "fish"},
	} {
		names, directive := completed(t, c.args...)
		if directive != c.directive || c.names == "" && len(names) > 0 {
			t.Errorf("%s: %v %s, want directive %s", c.rule, names, directive, c.directive)
		}
		for name := range strings.FieldsSeq(c.names) {
			if !slices.Contains(names, name) {
				t.Errorf("%s: %v without %s", c.rule, names, name)
			}
		}
		word := c.args[len(c.args)-1]
		_, word, _ = strings.Cut("="+word, "=")
		for _, name := range names {
			if directive != withEnding && !strings.HasPrefix(name, word[strings.LastIndex(word, "=")+1:]) {
				t.Errorf("%s: %s does not begin with %s", c.rule, name, word)
			}
		}
	}
}

func TestEachShellHasItsScript(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		code, out, stderr := call(t, "completion", shell)
		if code != frame.ExitOK || stderr != "" || !strings.Contains(out, shell+" completion") || !strings.Contains(out, "__complete") {
			t.Errorf("%s: exit %d, %d bytes, %s", shell, code, len(out), stderr)
		}
	}
}
