package cli

import (
	"encoding/xml"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"lockstep/cli/frame"
	"lockstep/internal/filetest"
)

// hostile is the name of a lock that would end a line, a cell and an element, and give commands to a workflow
// and a terminal.
const hostile = `x\n::error file=a.go::hostile </script><b>\u001b[2J\u202E|` + "`"

// A name that came from outside gives no commands to the reader of any output.
func TestNamesFromOutsideGiveNoCommands(t *testing.T) {
	dir := t.TempDir()
	filetest.WriteContents(t, dir, map[string]string{
		"hostile.yaml": `lockstep: 1
name: hostile
about: "about ` + hostile + `"
source: "source ` + hostile + `"
locks: [setnx-del]
processes: {a: {}, b: {}}
steps:
  a/1: [{lock: {name: "` + hostile + `", lease: 3s}}, {sleep: 5s}, {unlock: {name: "` + hostile + `"}}]
  b/1: [{at: 4s}, {lock: {name: "` + hostile + `", lease: 3s}}, {sleep: 2s}, {unlock: {name: "` + hostile + `"}}]
`,
		"hostile.jsonl": `{"process": "a", "thread": 1, "lock": "` + hostile + `", "op": "acquire", "call_ns": 0, "return_ns": 5, "outcome": "granted"}
{"process": "b", "thread": 1, "lock": "` + hostile + `", "op": "acquire", "call_ns": 10, "return_ns": 15, "outcome": "granted"}
`,
	})
	outputs := map[string]string{}
	recording := "DIR/out/hostile/setnx-del/1.lockstep"
	for _, args := range []string{
		"run DIR/hostile.yaml --out DIR/out", "run DIR/hostile.yaml --format junit", "run DIR/hostile.yaml --json", "replay " + recording, "replay " + recording + " --json",
		"shrink " + recording, "report " + recording + " --text", "report " + recording + " --mermaid", "report " + recording + " -o DIR/out/page.html", "report DIR/out -o DIR/out/pages",
		"matrix DIR/hostile.yaml --format markdown", "matrix DIR/hostile.yaml --format html", "check DIR/hostile.jsonl", "check DIR/hostile.jsonl --json", "check DIR/hostile.jsonl --out DIR/out/checked",
	} {
		code, stdout, stderr := call(t, strings.Fields(strings.ReplaceAll(args, "DIR", dir))...)
		if code != frame.ExitUnexpected && code != frame.ExitOK {
			t.Errorf("%s: exit %d, %s", args, code, stderr)
		}
		outputs[args], outputs[args+", errors"] = stdout, stderr
	}
	maps.Copy(outputs, filetest.Contents(t, filepath.Join(dir, "out")))
	told := 0
	for _, name := range slices.Sorted(maps.Keys(outputs)) {
		text := outputs[name]
		if strings.Contains(text, "hostile") {
			told++
		}
		for number, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "::") && !strings.HasSuffix(name, ".html") {
				t.Errorf("%s:%d is a command: %s", name, number+1, line)
			}
			if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsGraphic(r) && r != '\t' }) {
				t.Errorf("%s:%d has a character that does not show: %q", name, number+1, line)
			}
			if strings.HasSuffix(name, ".md") && strings.HasPrefix(line, "| hostile") && strings.Count(strings.ReplaceAll(line, `\|`, ""), "|") != 8 {
				t.Errorf("%s:%d is no row: %s", name, number+1, line)
			}
		}
	}
	if told < 15 {
		t.Errorf("%d outputs have the name", told)
	}
	for d := xml.NewDecoder(strings.NewReader(outputs["run DIR/hostile.yaml --format junit"])); ; {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	// An annotation is the one command.
	_, stdout, _ := call(t, "run", filepath.Join(dir, "hostile.yaml"), "--format", "github")
	if strings.Count(stdout, "\n") != 2 || !strings.HasPrefix(stdout, "::error file=") || strings.ContainsAny(stdout, "\x1b\u202e") {
		t.Errorf("the annotations are %q", stdout)
	}
}

// An argument with a control character is refused, and shown without it.
func TestAnArgumentHasNoControlCharacter(t *testing.T) {
	for _, args := range [][]string{{"report", "no\n::error::x"}, {"run", "misdelete", "--lock", "x\x1b[31m"}} {
		code, out, stderr := call(t, args...)
		if code != frame.ExitUsage || out != "" || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "has a control character") {
			t.Errorf("%q: exit %d, %q, %q", args, code, out, stderr)
		}
	}
	if code, _, stderr := call(t, "report", "no ä 日本"); code != frame.ExitUsage || !strings.Contains(stderr, "there is no file no ä 日本") {
		t.Errorf("exit %d, %s", code, stderr)
	}
}
