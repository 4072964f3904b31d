package failure

import (
	"regexp"
	"strings"
	"testing"

	"lockstep/linearizability/judges"
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
