package failure

import (
	"regexp"
	"strings"
	"testing"

	"lockstep/linearizability/judges"
	"lockstep/model"
)

func TestKeysAreFoldersAndDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range []Group{
		{"misdelete", judges.ClassBug, "unlock", nil},
		{"misdelete", judges.ClassBug, "unlock", []string{"drop reply of unlock"}},
		{"misdelete", judges.ClassBug, "unlock", []string{"drop reply of unlock", "pause"}},
		{"want", judges.ClassBug, "deadline of b/1", nil},
		{"want", judges.ClassBug, "deadline", []string{strings.Repeat("a very long fault ", 20)}},
		{"want", judges.ClassBug, "deadline", []string{strings.Repeat("a very long fault ", 21)}},
	} {
		key := g.Key()
		if seen[key] || !regexp.MustCompile(`^[a-z0-9][a-z0-9._+-]*$`).MatchString(key) || len(key) > nameMost {
			t.Errorf("%s", key)
		}
		seen[key] = true
	}
}

// One leak has one name, whatever the call and the faults were. A failure about a lock keeps its call.
func TestALeakHasOneFolder(t *testing.T) {
	names := func(detail judges.Detail, parted string) map[string]bool {
		seen := map[string]bool{}
		for _, op := range []string{"acquire", "unlock", "run"} {
			for _, faults := range [][]string{nil, {"pause"}} {
				o := Origin{Parted: parted}
				if detail != nil {
					o.Parted = partedBefore(nil, judges.Finding{Judge: "tidy", Class: judges.ClassBug, Detail: detail})
				}
				seen[Group{"tidy", judges.ClassBug, op, faults}.Folder(o)] = true
			}
		}
		return seen
	}
	for want, d := range map[string]judges.Leftover{
		"tidy.bug.run.left-key": {Key: "orders"}, "tidy.bug.run.left-channel": {Channel: "orders"}, "tidy.bug.run.left-goroutine": {Goroutine: &model.Goroutine{}}, "tidy.bug.run.left-over": {Text: "a watch"},
	} {
		if got := names(d, ""); len(got) != 1 || !got[want] {
			t.Errorf("%+v: %v, want %s", d, got, want)
		}
	}
	if got := names(nil, string(judges.PartedExpired)); len(got) != 3 {
		t.Errorf("a failure about a lock: %v, want a folder for each call", got)
	}
}
