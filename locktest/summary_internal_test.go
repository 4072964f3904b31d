package locktest

import (
	"testing"

	"lockstep/model"
)

// The failures to read first come first, in whatever order they were shown.
func TestTheSummaryBeginsWithTheWorstFailure(t *testing.T) {
	for _, c := range []struct {
		rule   string
		broken map[string][]string
		want   string
	}{
		{rule: "nothing is broken"},
		{rule: "one promise", broken: map[string][]string{model.JudgeTraffic: {"a", "b"}}},
		{rule: "several promises", broken: map[string][]string{model.JudgeTraffic: {"a"}, model.JudgeLiveness: {"b", "c", "d"}, model.JudgeMisdelete: {"e", "story.f.misdelete"}},
			want: "orders breaks 3 promises. Read the failures above in this order:\nmisdelete: story.f.misdelete and 1 more\nliveness: b and 2 more\ntraffic: a"},
	} {
		r := &runner{s: Subject{Name: "orders"}, broken: c.broken}
		if got := r.summary(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.rule, got, c.want)
		}
	}
}

// A failure that may be smaller says so.
func TestAFailureSaysThatItMayBeSmaller(t *testing.T) {
	f := failure{schedules: map[int]bool{9: true, 4: true}, size: 45}
	const whole = "2 of 200 schedules do, the first is number 5; made small to 45 events"
	if got := f.drawn(200); got != whole {
		t.Errorf("%q; want %q", got, whole)
	}
	f.unfinished = true
	if got, want := f.drawn(200), whole+", until the time for it was over: a larger Options.Shrink may make it smaller"; got != want {
		t.Errorf("%q; want %q", got, want)
	}
}
