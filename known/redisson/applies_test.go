package redisson

import (
	"testing"

	"lockstep/scenarios/subject"
)

func TestAStrangersLockOfTheFamilyHasNoKnownDefect(t *testing.T) {
	channel := func(string, string) string { return "" }
	for _, c := range []struct {
		rule, release string
		channel       func(lock, to string) string
		want          bool
	}{
		{"Redisson's", "4.7.0", channel, true},
		{"no release", "", channel, false},
		{"a release without a number", "4.7.0-fork", channel, false},
		{"no channel", "4.7.0", nil, false},
	} {
		l := &subject.Subject{Name: "redisson@mine", Release: c.release, Channel: c.channel}
		if got := Owns(l); got != c.want {
			t.Errorf("%s: Owns is %v; want %v", c.rule, got, c.want)
		}
		for _, d := range Defects {
			if d.Applies(l) && !c.want {
				t.Errorf("%s: %s applies", c.rule, d.ID)
			}
		}
	}
}
