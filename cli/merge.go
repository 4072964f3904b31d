package cli

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"lockstep/cli/frame"
	"lockstep/explore"
	"lockstep/sim"
)

func mergeCommand(a *frame.App) *cobra.Command {
	out, asJSON := "", false
	c := a.Command(frame.Guide{
		Use: "merge DIR ...", Short: "make one campaign out of its shards",
		Long:     "Merge makes one campaign out of the folders that explore --shard I/N --out wrote, and reports what it found as explore does.",
		Examples: []string{"merge shard-1 shard-2 --out campaign"},
	}, func(in frame.Invocation) (int, error) { return mergeShards(a, in.Names, out, asJSON) })
	f := c.Flags()
	f.StringVar(&out, "out", "", "keep what is found in `DIR`")
	frame.JSONFlag(f, &asJSON, "the result as JSON Lines")
	a.QuietFlag(f, "only the totals and the bugs")
	c.ValidArgsFunction = frame.Folders
	return c
}

// mergeShards makes one campaign from the folders of its shards.
func mergeShards(a *frame.App, dirs []string, out string, asJSON bool) (int, error) {
	if len(dirs) == 0 {
		return 0, frame.Usagef("merge takes the folders of the shards of one campaign")
	}
	to, err := os.Stat(out)
	var before []os.FileInfo
	for _, dir := range dirs {
		if err := frame.InputFolder(dir, "merge takes the folders of shards"); err != nil {
			return 0, err
		}
		if info, err := os.Stat(dir); err == nil {
			if slices.ContainsFunc(before, func(other os.FileInfo) bool { return os.SameFile(info, other) }) {
				return 0, frame.Usagef("merge: the folder %s is named twice", dir)
			}
			before = append(before, info)
		}
		if from, fromErr := os.Stat(dir); err == nil && fromErr == nil && os.SameFile(from, to) {
			return 0, frame.Usagef("merge: --out %s is the folder of a shard; name another folder", out)
		}
	}
	p, runs, err := explore.Merge(dirs)
	if err != nil {
		return 0, frame.Usagef("merge: %w", err)
	}
	if p.World != sim.Version {
		return 0, frame.Usagef("merge: the campaign was played in world version %d, and this program's is %d", p.World, sim.Version)
	}
	missing, err := explore.MissingShards(dirs)
	if err != nil {
		return 0, frame.Usagef("merge: %w", err)
	}
	if len(missing) > 0 {
		a.Warn("merge: these shards of the campaign are missing: %s", strings.Join(missing, ", "))
	}
	release, err := campaignFolder(a, out)
	if err != nil {
		return 0, frame.Usage(fmt.Errorf("merge: %w", err))
	}
	defer release()
	stop, unregister := a.Interrupts(func() {})
	defer unregister()
	t := NewTime(stop, 0)
	defer t.End()
	told := tellProgress(a, 0)
	told.played(explore.Progress{Runs: len(runs), Of: p.Runs})
	go told.pace.Each(t.hard, told.line)
	s := &explore.Shrinking{Plan: p, Jobs: runtime.NumCPU(), Dir: out, From: dirs}
	return conclude(a, t, s, told, runs, out, asJSON, nil)
}
