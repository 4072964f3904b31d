package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"lockstep/cli/frame"
	"lockstep/explore"
	"lockstep/explore/draw"
	"lockstep/explore/strategy"
	"lockstep/internal/quantity"
)

// planWords has the options of a plan that become its fields only after they are checked.
type planWords struct {
	faults         []string
	profile, seeds string
	keepGoing      bool
}

// planFlags declares the options of explore that determine a plan.
func planFlags(f *pflag.FlagSet, p *explore.Plan, w *planWords) {
	drawnFlags(f, p, w)
	frame.OneOf(f, &p.Strategy, "strategy", explore.DefaultStrategy, append(slices.Clone(strategy.Names), explore.StrategyExhaustive), "how the runs are chosen, see above: plain, told, tapct or exhaustive")
	f.StringVar(&p.Case, "scenario", "", "with --strategy exhaustive: the `SCENARIO` or file to play")
}

// drawnFlags declares the options, besides --strategy, of a plan whose runs are drawn.
func drawnFlags(f *pflag.FlagSet, p *explore.Plan, w *planWords) {
	frame.Single(f, &p.Lock, "lock", "the `LOCK` to play")
	frame.SomeOf(f, &w.faults, "faults", draw.ClassNames(), "the failures that you fear: "+strings.Join(frame.Texts(draw.Classes), ", ")+", or all, or none; default: none")
	frame.OneOf(f, &w.profile, "profile", string(draw.Simple), frame.Texts(draw.Profiles), "what the callers do: the `PROFILE` simple, orderly or full")
	frame.Whole(f, &p.Runs, "runs", 1000, quantity.Runs, "how many runs are played")
	frame.Whole(f, &p.Steps, "steps", 0, quantity.Steps, "also end after so many steps; 0: no such limit")
	frame.SeedFlag(f, &w.seeds, "1", "the seeds, `N or A..B`; several share the runs, a hundred at a time")
	frame.Whole(f, &p.Depth, "depth", 0, quantity.Orderings, "with --strategy tapct: find bugs that need `N` orderings of messages; default 3")
	f.BoolVar(&w.keepGoing, "keep-going", false, "play on when the campaign is full")
}

// complete checks the words and sets their fields of the plan. An exhaustive search has no
// profile and no seed.
func (w planWords) complete(p *explore.Plan) (err error) {
	if p.Faults, err = draw.ParseClasses(w.faults); err != nil || p.Strategy == explore.StrategyExhaustive {
		return err
	}
	if p.Profile, err = draw.ParseProfile(w.profile); err != nil {
		return fmt.Errorf("--profile: %w", err)
	}
	first, last, err := frame.SeedRange("--seed", w.seeds)
	if err != nil {
		return err
	}
	p.Seed = first
	if !w.keepGoing {
		p.Settled = explore.SettledRuns
	}
	if more := last - first; more > 0 {
		if more >= uint64(p.Runs/explore.FamilyRuns) {
			return fmt.Errorf("--seed %s --runs %d: each seed needs at least %d runs", w.seeds, p.Runs, explore.FamilyRuns)
		}
		p.Seeds = int(more) + 1
	}
	return nil
}

// DefaultDepth is the depth of --strategy tapct if none is given.
const DefaultDepth = 3

// planned checks the options of a campaign before anything is run. It completes the plan
// and the campaign.
func planned(p *explore.Plan, c *explore.Campaign, w planWords, shard string) error {
	if p.Lock == "" {
		return frame.ErrNoLock()
	}
	l, err := FindSimulated(p.Lock)
	if err != nil {
		return err
	}
	p.Lock = l.Name
	if err := w.complete(p); err != nil {
		return err
	}
	switch {
	case !p.Bounded() && p.Depth != 0:
		return errors.New("--depth belongs to --strategy tapct")
	case p.Bounded() && p.Depth == 0:
		p.Depth = DefaultDepth
	}
	if shard != "" {
		i, n, ok := strings.Cut(shard, "/")
		first, err1 := strconv.Atoi(i)
		of, err2 := strconv.Atoi(n)
		if !ok || err1 != nil || err2 != nil || first < 1 || of < first || int64(of) > quantity.Shards.Most {
			return fmt.Errorf("--shard %q: write I/N, as in 1/8 for the first of eight", shard)
		}
		if c.Dir == "" {
			return fmt.Errorf("--shard needs --out: %s merge reads the folders of all shards", frame.Simrun())
		}
		c.Shard, c.Of = first-1, of
	}
	return nil
}
