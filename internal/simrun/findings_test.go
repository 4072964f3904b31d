package simrun

import (
	"reflect"
	"testing"

	"lockstep/explore"
	"lockstep/explore/draw"
)

// A campaign of an older program has its command only. The command gives the plan, even of a
// lock that this program does not know.
func TestTheCommandOfACampaignGivesItsPlan(t *testing.T) {
	network := []draw.Class{draw.ClassNetwork}
	for _, p := range []explore.Plan{
		{Lock: "x@1", Profile: draw.Simple, Strategy: explore.StrategyRandom, Seed: 3, Runs: 20},
		{Lock: "x@1", Faults: draw.Classes, Profile: draw.Full, Strategy: explore.StrategyPCT, Depth: 3, Seed: 1, Runs: 500, Steps: 9000},
		{Lock: "x@1", Faults: network, Profile: draw.Simple, Strategy: explore.StrategyRandom, Seed: 5, Seeds: 3, Runs: 300},
		{Lock: "x@1", Faults: network, Strategy: explore.StrategyExhaustive},
		{Lock: "x@1", Faults: network, Strategy: explore.StrategyExhaustive, Runs: 8, Case: "small.yaml"},
	} {
		if got, err := commandPlan(p.String()); err != nil || !reflect.DeepEqual(got, p) {
			t.Errorf("%s gives\n%+v, %v; want\n%+v", p, got, err, p)
		}
	}
	for _, command := range []string{"", "simrun", "simrun run --lock x", "simrun explore", "simrun explore --lock x y", "simrun explore --lock x --faults moon", "simrun explore --moon"} {
		if p, err := commandPlan(command); err == nil {
			t.Errorf("%q gives %+v", command, p)
		}
	}
}
