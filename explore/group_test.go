package explore

import (
	"regexp"
	"strings"
	"testing"

	"lockstep/linearizability"
)

func TestKeysAreFoldersAndDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range []Group{
		{"misdelete", linearizability.ClassBug, "unlock", nil},
		{"misdelete", linearizability.ClassBug, "unlock", []string{"drop reply of unlock"}},
		{"misdelete", linearizability.ClassBug, "unlock", []string{"drop reply of unlock", "pause"}},
		{"want", linearizability.ClassBug, "deadline of b/1", nil},
		{"want", linearizability.ClassBug, "deadline", []string{strings.Repeat("a very long fault ", 20)}},
		{"want", linearizability.ClassBug, "deadline", []string{strings.Repeat("a very long fault ", 21)}},
	} {
		key := g.Key()
		if seen[key] || !regexp.MustCompile(`^[a-z0-9][a-z0-9._+-]*$`).MatchString(key) || len(key) > keyMost {
			t.Errorf("%s", key)
		}
		seen[key] = true
	}
}
