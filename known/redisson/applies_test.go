package redisson

import (
	"slices"
	"testing"

	"lockstep/known/defect"
	"lockstep/scenarios/subject"
)

func TestAStrangersLockHasNoKnownDefect(t *testing.T) {
	channel := func(string, string) string { return "" }
	for _, c := range []struct {
		rule             string
		library, release string
		channel          func(lock, to string) string
		want             bool
	}{
		{"Redisson's", "redisson", "4.7.0", channel, true},
		{"no library", "", "4.7.0", channel, false},
		{"another library", "redisson-go", "4.7.0", channel, false},
		{"no release", "redisson", "", channel, false},
		{"a release without a number", "redisson", "4.7.0-fork", channel, false},
		{"no channel", "redisson", "4.7.0", nil, false},
	} {
		l := &subject.Subject{Name: "redisson@4.7.0", Library: c.library, Release: c.release, Channel: c.channel}
		if got := slices.ContainsFunc(Defects, func(d defect.Defect) bool { return d.Applies(l) }); got != c.want {
			t.Errorf("%s: a defect applies is %v; want %v", c.rule, got, c.want)
		}
	}
}
