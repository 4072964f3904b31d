package cli

import (
	"errors"
	"reflect"
	"testing"

	"github.com/spf13/pflag"

	"lockstep/explore"
	"lockstep/explore/draw"
)

// The arguments of a plan make the same plan.
func TestTheArgumentsOfAPlanMakeIt(t *testing.T) {
	network := []draw.Class{draw.ClassNetwork}
	for _, p := range []explore.Plan{
		{Lock: "x@1", Profile: draw.Simple, Strategy: explore.DefaultStrategy, Seed: 3, Runs: 20},
		{Lock: "x@1", Profile: draw.Simple, Strategy: explore.DefaultStrategy, Seed: 3, Runs: 20, Settled: explore.SettledRuns},
		{Lock: "x@1", Faults: draw.Classes, Profile: draw.Full, Strategy: explore.StrategyTaPCT, Depth: 3, Seed: 1, Runs: 500, Steps: 9000},
		{Lock: "x@1", Faults: network, Profile: draw.Simple, Strategy: explore.DefaultStrategy, Seed: 5, Seeds: 3, Runs: 300},
		{Lock: "x@1", Faults: network, Strategy: explore.StrategyExhaustive},
		{Lock: "x@1", Faults: network, Strategy: explore.StrategyExhaustive, Runs: 8, Case: "small.yaml"},
	} {
		got := explore.Plan{}
		var w planWords
		given := pflag.NewFlagSet("explore", pflag.ContinueOnError)
		planFlags(given, &got, &w)
		err := given.Parse(p.Args()[1:])
		if p.Strategy == explore.StrategyExhaustive && !given.Changed("runs") {
			got.Runs = 0 // cover does so
		}
		if err := errors.Join(err, w.complete(&got)); err != nil || !reflect.DeepEqual(got, p) {
			t.Errorf("%s gives\n%+v, %v; want\n%+v", p, got, err, p)
		}
	}
}
