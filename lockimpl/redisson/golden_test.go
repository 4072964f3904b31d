package redisson

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/scripts.golden anew from miniredis, or the table of the library's tests in library-tests.md; read the difference against the rules before you keep it")

const goldenFile = "testdata/scripts.golden"

const goldenHead = `# What every script does in every state of the table in states_test.go.
#
# A section is a script with its parts; a line is a state, and after => the
# reply, what was published, and what is kept under each key where it is not
# what was kept before ("for" is its time to live in ms; "gone": nothing).
# The caller is c1:1. Sent are a lease of 1000000 ms, a wait of 300000 ms, and
# 4000000 ms for the life of a latch; instants are told from the caller's now.
# Where a lock has an expiry it is 2000000 ms before the script.
#
# go test ./lockimpl/redisson -run TestGolden -update writes it anew.
`

// golden reads the kept answers: for each script, the answer for each state.
func golden(t *testing.T) map[string]map[string]string {
	t.Helper()
	text, err := os.ReadFile(goldenFile)
	if err != nil {
		t.Fatal(err)
	}
	kept := map[string]map[string]string{}
	var of map[string]string
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		line = strings.TrimSuffix(line, "\n")
		switch name, isScript := strings.CutPrefix(line, "== "); {
		case line == "" || line[0] == '#':
		case isScript && kept[name] == nil:
			of = map[string]string{}
			kept[name] = of
		case isScript:
			t.Fatalf("%s:%d: a second section %s", goldenFile, n, name)
		default:
			what, answer, ok := strings.Cut(line, " => ")
			if _, twice := of[what]; !ok || twice || of == nil {
				t.Fatalf("%s:%d: %q is not a new state with its answer", goldenFile, n, line)
			}
			of[what] = answer
		}
	}
	return kept
}

// On miniredis every script has, in every state, the effect that was kept. A changed script, or a
// changed part of one, fails here, without Redis.
func TestGoldenAnswersOfScripts(t *testing.T) {
	mini := miniStage(t)
	if *update {
		b := strings.Builder{}
		b.WriteString(goldenHead)
		for _, s := range distinctScripts() {
			fmt.Fprintf(&b, "\n== %s\n", variant(s))
			for _, c := range casesOf(t, s) {
				fmt.Fprintf(&b, "%s => %s\n", c.what, mini.play(t, s.Text, c).text(exact))
			}
		}
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(goldenFile, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	kept := golden(t)
	for _, s := range distinctScripts() {
		of := kept[variant(s)]
		if of == nil {
			t.Errorf("%s has no section %s", goldenFile, variant(s))
			continue
		}
		delete(kept, variant(s))
		for _, c := range casesOf(t, s) {
			want, ok := of[c.what]
			delete(of, c.what)
			if got := mini.play(t, s.Text, c).text(exact); got != want || !ok {
				t.Errorf("%s, %s:\n got %s\nwant %s", variant(s), c.what, got, want)
			}
		}
		for what := range of {
			t.Errorf("%s: %s has no state %q", goldenFile, variant(s), what)
		}
	}
	for name := range kept {
		t.Errorf("%s: no release has the script %s", goldenFile, name)
	}
}
