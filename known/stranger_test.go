package known

import (
	"slices"
	"testing"

	"lockstep/known/bare"
	"lockstep/known/defect"
	"lockstep/known/redisson"
	"lockstep/scenarios/subject"
)

func TestAStrangersLockHasNoDefectOfRedisson(t *testing.T) {
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
		if got := slices.ContainsFunc(redisson.Defects, func(d defect.Defect) bool { return d.Applies(l) }); got != c.want {
			t.Errorf("%s: a defect applies is %v; want %v", c.rule, got, c.want)
		}
	}
}

// A defect is one of the built-in lock, and not of every lock that has its name.
func TestAStrangersLockOfTheNameHasNoKnownDefect(t *testing.T) {
	for _, name := range []string{"setnx-del", "setnx-get-del", "setnx-cad", "string-reentrant"} {
		builtin, err := subject.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		stranger := *builtin
		stranger.Library = ""
		applies := 0
		for _, d := range bare.Defects {
			if d.Applies(builtin) {
				applies++
			}
			if d.Applies(&stranger) {
				t.Errorf("%s applies to a stranger's %s", d.ID, name)
			}
		}
		if applies == 0 {
			t.Errorf("no defect applies to %s", name)
		}
	}
}
