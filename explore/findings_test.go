package explore

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"lockstep/explore/failure"
)

func TestFindingsAreWrittenUp(t *testing.T) {
	base := t.TempDir()
	write := func(dir, text string) string {
		dir = filepath.Join(base, dir)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "verdicts.jsonl"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	const (
		known = `{"group":"g1","judge":"hold-count","class":"bug","op":"unlock","faults":["lost reply of unlock"],` +
			`"defect":"R-4871","cause":{"kind":"ran-twice","at_ns":2000000,"op":2,"msgs":[3,5]},"runs":7,"median_runs":12,"first_seed":3,"size_events":9,"why":"it did","recording":"g1/3.lockstep"}` + "\n"
		unknown = `{"group":"g2","judge":"lease","class":"bug","op":"acquire","faults":[],"runs":1,"first_seed":4,"size_events":5,"why":"nobody knows","recording":"g2/4.lockstep"}` + "\n"
		limit   = `{"group":"g3","judge":"mutual-exclusion","class":"limit","op":"acquire","faults":["pause"],"runs":2,"first_seed":5,"size_events":6,"why":"it slept","recording":"g3/5.lockstep"}` + "\n"
		total   = `{"campaign":"a command","plan":{"lock":"redisson@3.21.3","faults":["network"],"profile":"full"},"runs":50,"missing":0,"groups":3,"verdicts":{},"steps":99,"sim_ns":1,"died":0,"states":[]}` + "\n"
	)
	var b bytes.Buffer
	if err := WriteFindings(&b, base, []string{write("one", known+unknown+limit+total)}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| [`a command`](one/verdicts.md) | 50 | 99 | 1 | 1 | 1 |",
		"\n1 of 17 rows were found by these campaigns.", "| unlock-reply-lost | `redisson@3.21.3 --faults network --profile full`: 12 runs |", "| unlock-of-a-free-lock | not found |",
		"| fair-dead-waiters-add-up | not found: it is a limit",
		"## R-4871: an unlock that is sent again takes two levels",
		"It is the row `unlock-reply-lost` of the track record. Runs until it was met (median of 20 parts of the campaign): 12 on redisson@3.21.3.",
		"* redisson@3.21.3: hold-count at unlock, with lost reply of unlock: 7 of 50 runs; [9 events](one/g1/3.lockstep): it did; cause: messages 3 and 5 at 0.002s: the command of one call ran twice",
		"## Without a name\n\n* redisson@3.21.3: lease at acquire, with no fault: 1 of 50 runs; [5 events](one/g2/4.lockstep): nobody knows",
		"## Limits", "with pause: 2 of 50 runs",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, b.String())
		}
	}
	// The folders of the campaigns and the one of the links may be named from here or from the root.
	t.Chdir(base)
	for from, dir := range map[string]string{base: "one", ".": filepath.Join(base, "one")} {
		var again bytes.Buffer
		if err := WriteFindings(&again, from, []string{dir}); err != nil || again.String() != b.String() {
			t.Errorf("links from %s to %s: %v\n%s", from, dir, err, &again)
		}
	}
	unplanned := strings.Replace(total, `"plan":{"lock":"redisson@3.21.3","faults":["network"],"profile":"full"},`, "", 1)
	for _, c := range []struct{ name, text, want string }{
		{"unplanned", known + unplanned, "verdicts.jsonl: the plan of the campaign is missing"},
		{"cut", known, "the totals of the campaign are missing"},
		{"other", "{}\n", "verdicts.jsonl:1: neither a group nor the totals"},
		{"no JSON", known + "{\n", "verdicts.jsonl:2: not what explore writes"},
		{"more", total + known, "verdicts.jsonl:2: something follows the totals"},
		{"old", strings.ReplaceAll(known, "R-4871", "R-0") + total, "run them again"},
	} {
		if err := WriteFindings(&b, base, []string{write(c.name, c.text)}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		}
	}
}

// A campaign of 200 runs is cut into 20 parts of 10 runs.
func TestMediansOfTheFirstRunThatMeetsADefect(t *testing.T) {
	p := plan("redisson@3.21.3", 200)
	var runs []Run
	for i := range p.Runs {
		r := Run{Index: i, From: -1, Word: "bug"}
		fails := func(defect string) {
			r.Failures = append(r.Failures, Failed{Group: failure.Group{Class: "bug"}, Origin: failure.Origin{Defect: defect}})
		}
		part, at := i/10, i%10
		if at >= 3 && part < 11 { // in 11 parts, after 4 runs each
			fails("often")
		}
		if part < 10 {
			fails("in half of them")
		}
		if at == 9-part/3 {
			fails("sooner and sooner")
		}
		runs = append(runs, r)
	}
	got := Sum(p, runs).Medians
	want := map[string]int{"often": 4, "sooner and sooner": 7}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
