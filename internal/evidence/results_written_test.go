package evidence

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/cli"
	"lockstep/cli/frame"
	"lockstep/explore/survey"
	"lockstep/internal/filetest"
)

// The results write a survey anew with the runs that each lock had, whatever a second of this machine is worth.
func TestTheResultsRepeatASurvey(t *testing.T) {
	dir := t.TempDir()
	if code, _, stderr := call(t, "survey", "--lock", "none", "--runs", "2", "--runs-of", "none=1", "--seconds", "9", "--out", dir); code != frame.ExitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	if code, _, stderr := call(t, "results", dir, "--only", "survey"); code != frame.ExitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	if s, _, err := cli.OpenSurvey(dir); err != nil || s.Options.Runs != 2 || s.Options.Seconds != 0 || len(s.Locks) != 1 || s.Locks[0].Runs != 1 {
		t.Errorf("%q, %v: options %+v, and %d runs of %s", s.Command, err, s.Options, s.Locks[0].Runs, s.Locks[0].Name)
	}
}

// A survey is a part of the results. This program does not know its lock.
func TestASurveyOfAnUnknownLockIsAPart(t *testing.T) {
	dir := t.TempDir()
	s := survey.Survey{Command: "simrun survey", Locks: []survey.Lock{{Name: "mine"}}}
	var b bytes.Buffer
	if err := s.WriteJSON(&b); err != nil {
		t.Fatal(err)
	}
	filetest.Write(t, filepath.Join(dir, survey.LocksFile), b.String())
	if code, out, stderr := call(t, "results", dir, "--only", "survey", "--check"); code != frame.ExitOK || !strings.Contains(out, "0 of 1 parts are older") {
		t.Errorf("check: exit %d, %s%s", code, out, stderr)
	}
	if code, out, stderr := call(t, "results", dir, "--only", "survey"); code != frame.ExitOK || !strings.Contains(out, "does not know") {
		t.Errorf("exit %d, %s%s", code, out, stderr)
	}
	if err := os.WriteFile(filepath.Join(dir, survey.LocksFile), []byte("{}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := call(t, "results", dir, "--only", "survey", "--check"); code != frame.ExitUsage || !strings.Contains(stderr, "not a survey") {
		t.Errorf("a file that is no survey: exit %d, %s", code, stderr)
	}
}

// The summary of an exhaustive search that was cut off says so.
func TestFindingsOfAnExhaustiveSearch(t *testing.T) {
	dir := t.TempDir()
	if code, out, stderr := call(t, "explore", "--lock", "redisson@3.21.3", "--faults", "network", "--strategy", "exhaustive", "--runs", "60", "--out", dir); code != frame.ExitUnexpected {
		t.Fatalf("exit %d\n%s%s", code, out, stderr)
	}
	file := filepath.Join(dir, "findings.md")
	if code, _, stderr := call(t, "findings", dir, "-o", file); code != frame.ExitOK {
		t.Fatalf("findings: exit %d\n%s", code, stderr)
	}
	if text := filetest.Read(t, file); !strings.Contains(text, "| 56 schedules (") || !strings.Contains(text, ", not all: ") {
		t.Error(text)
	}
}
