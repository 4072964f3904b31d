package locktest

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"lockstep/explore"
	explored "lockstep/explore/failure"
	"lockstep/linearizability/judges"
	"lockstep/model"
)

// A run that does not end is told of before its test meets the -timeout, with what was found until then.
func TestWhatWasFoundIsShownBeforeTheTimeout(t *testing.T) {
	failed := func(judge string, class judges.Class, why string) explore.Failed {
		return explore.Failed{Group: explored.Group{Judge: judge, Class: class, Op: "acquire"}, Why: why}
	}
	for _, c := range []struct {
		rule    string
		timeout time.Duration
		finds   bool
		after   time.Duration
		want    string // "": nothing
	}{
		{"before that", 40 * time.Second, true, 37 * time.Second, ""},
		{"then", 40 * time.Second, true, 39 * time.Second, "locktest: orders: the test is about to meet its -timeout of 40s: schedule 9 has not ended for 38s. Until then it found:\n\n" +
			"orders breaks lease: in a story\n\norders breaks liveness in schedule number 4: it waits\norders breaks tidy in schedule number 4: it stays\n"},
		{"nothing was found", 40 * time.Second, false, 39 * time.Second, "schedule 9 has not ended for 38s. Nothing was found until then.\n"},
		{"without a -timeout", 0, true, time.Hour, ""},
	} {
		t.Run(c.rule, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				limit := timeLimit{now: time.Now}
				if c.timeout > 0 {
					limit = newTimeLimit(time.Now, time.Now().Add(c.timeout), c.timeout)
				}
				var s soFar
				var out strings.Builder
				stop := s.watch(&out, "orders", limit)
				defer stop()
				s.begin("schedule 9", time.Now())
				if c.finds {
					s.show("\norders breaks lease: in a story\n")
					run := explore.Run{Index: 3, Failures: []explore.Failed{failed(model.JudgeLiveness, judges.ClassBug, "it waits"), failed(model.JudgeLease, judges.ClassLimit, "excused"), failed(model.JudgeTidy, judges.ClassBug, "it stays")}}
					s.add(run)
					run.Index = 5
					s.add(run)
				}
				time.Sleep(c.after)
				synctest.Wait()
				if got := out.String(); !strings.HasSuffix(got, c.want) || (c.want == "") != (got == "") {
					t.Errorf("%q; want %q", got, c.want)
				}
			})
		})
	}
}
