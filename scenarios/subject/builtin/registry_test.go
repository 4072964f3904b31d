package builtin_test

import (
	"slices"
	"strings"
	"testing"

	"lockstep/scenarios/subject"
)

// The message about an unknown lock names the lock that may be meant.
// Each control is of its own kind, and a lock has only controls of its kind.
func TestControlsAreOfTheKindOfTheLock(t *testing.T) {
	find := func(name string) *subject.Subject {
		l, err := subject.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	for name, want := range map[string][]string{
		"reference": {"reference"}, "reference-fair": {"reference-fair"}, "reference-fair-handle": {"reference-fair-handle"},
		"reference-watched": {"reference-watched", "reference-handle"}, "reference-handle": {"reference-handle", "reference-watched"},
		"redisson@4.7.0": {"reference"}, "redisson-fair@4.7.0": {"reference-fair"}, "redisson-handle@4.7.0": {"reference-handle", "reference-watched"},
		"redisson@4.7.0+replicas":  nil, // several servers
		"setnx-cad":                nil, // nothing renews a hold
		"planted/unlock-by-anyone": {"reference"},
	} {
		var got []string
		for _, c := range subject.Controls(find(name)) {
			got = append(got, c.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("the controls of %s are %v, want %v", name, got, want)
		}
	}
}

func TestTheMessageOfAnUnknownLockNamesTheNearest(t *testing.T) {
	for _, c := range []struct{ rule, name, want string }{
		{"a letter too many", "setnx-dell", "setnx-del"},
		{"a family", "redison", "redisson"},
		{"the beginning of a family", "redisson-fen", "redisson-fenced"},
		{"a release between two", "redisson@3.44.0", "redisson@3.43.0"},
		{"a release whose letters are nearer to another", "redisson@3.20.0", "redisson@3.21.3"},
		{"a release of another major version", "redisson@5.0.0", "redisson@4.7.0"},
		{"a release before all", "redisson@2.1", "redisson@3.4.2"},
		{"a release that the family does not have", "redisson-fenced@3.11.0", "redisson-fenced@3.21.3"},
		{"a misspelt family with a release", "redison-fair@4.7.1", "redisson-fair@4.7.0"},
		{"a configuration", "redisson@4.8.0+replicas", "redisson@4.7.0+replicas"},
		{"no release", "redisson@", "redisson"},
		{"a release that is no number", "redisson@newest", "redisson"},
		{"a planted bug", "planted/unlock-by-anyon", "planted/unlock-by-anyone"},
	} {
		_, err := subject.Find(c.name)
		if err == nil || err.Error() != `unknown lock "`+c.name+`"; did you mean "`+c.want+`"?` {
			t.Errorf("%s: %v; want %s", c.rule, err, c.want)
		}
		if _, err := subject.Find(c.want); err != nil {
			t.Errorf("%s: %v", c.rule, err)
		}
	}
	for _, name := range []string{"zookeeper-of-mine", "foo@1", "unlock-by-anyone", strings.Repeat("x", 1<<20)} {
		if _, err := subject.Find(name); err == nil || strings.Contains(err.Error(), "did you mean") || len(err.Error()) > 100 {
			t.Errorf("%.100s: %.200v", name, err)
		}
	}
}
