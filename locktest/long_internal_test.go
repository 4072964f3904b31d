package locktest

import (
	"testing"

	"lockstep/explore"
	"lockstep/scenarios/play"
)

func TestSchedulesThatAreTooLong(t *testing.T) {
	for _, c := range []struct {
		name string
		run  explore.Run
		want bool
	}{
		{"it was ended", explore.Run{Word: play.VerdictUndecided, Steps: explore.MostSteps + 3}, true},
		{"it was judged", explore.Run{Word: play.VerdictHeld, Steps: explore.MostSteps + 3}, false},
		{"a panic", explore.Run{Word: play.VerdictUndecided, Steps: explore.MostSteps - 1}, false},
	} {
		if got := c.run.TooLong(); got != c.want {
			t.Errorf("%s: too long: %v", c.name, got)
		}
	}
	long := []explore.Run{{Index: 6}, {Index: 8}}
	const text = "2 of 20 schedules of orders, number 7 the first, took more than 100000 steps and were not judged: while a fault lasts, the callers or the client try again at once"
	if got, fails := longText("orders", long, 20); got != text || fails {
		t.Errorf("fails: %v: %s", fails, got)
	}
	if _, fails := longText("orders", long, 19); !fails {
		t.Error("more than one in ten do not fail the test")
	}
}
