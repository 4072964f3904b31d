package locktest

import (
	"strings"
	"testing"

	"lockstep/scenarios/play"
)

// A server that does not simulate what the lock asks for may be why no call was granted, so nothing else is said of the lock.
func TestWhatIsNotSimulatedIsReasonEnough(t *testing.T) {
	for _, c := range []struct {
		unsimulated []string
		want        string
	}{
		{[]string{"LCS", "LCS"}, "a server of the world met LCS, which it does not simulate"},
		{nil, "no call was ever granted the lock"},
	} {
		x := tested{unsimulated: c.unsimulated, service: play.Service{Asked: 3}}
		if why := x.unjudged(); len(why) != 1 || !strings.HasPrefix(why[0], c.want) {
			t.Errorf("%q: %q", c.unsimulated, why)
		}
	}
}
