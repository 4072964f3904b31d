package builtin_test

import (
	"strings"
	"testing"

	"lockstep/scenarios/subject"
)

// The message about an unknown lock names the lock that may be meant.
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
	for _, name := range []string{"zookeeper-of-mine", "foo@1", "unlock-by-anyone"} {
		if _, err := subject.Find(name); err == nil || strings.Contains(err.Error(), "did you mean") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
