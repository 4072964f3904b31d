package sim

import "testing"

func TestAProcessThatSimulatesNoTime(t *testing.T) {
	for godebug, unfit := range map[string]bool{
		"": false, ",": false, "asynctimerchan=0": false, ",asynctimerchan=1": true, "asynctimerchan=2,gctrace=1": true,
		"asynctimerchan=1,asynctimerchan=0": false, "panicnil=1": false,
	} {
		if why := unsuited(godebug); (why != "") != unfit {
			t.Errorf("%q: %q", godebug, why)
		}
	}
}
