// Package evidence has the commands for whoever maintains Lockstep: they write and check the results of
// a clone, and the reports about other people's locks.
package evidence

import (
	"slices"

	"github.com/spf13/cobra"

	"lockstep/cli"
	"lockstep/cli/frame"
	"lockstep/lockmain"
)

const (
	aboutEvidence = `evidence writes and checks what Lockstep shows of itself: the results of a clone, and the reports
about other people's locks. simrun is the program for people who judge locks.`
	moreAboutEvidence = `

Exit codes:
  0    as expected
  1    a bug, or a verdict that was not expected
  2    undecided, a run that did not repeat, or an interrupt
  64   bad input; nothing was run
  70   a defect of evidence
  74   reading or writing failed, as on a full disk
If several apply, the first of 70, 64, 74, 1, 2, 0 counts.
`
)

// Main runs the command that the arguments of the program name, with the locks and the means that a
// simrun has. Call it from the main function; it does not return.
func Main(o lockmain.Options) { frame.Main(program(lockmain.Program(o))) }

// program returns the program of the maintainers for the locks and the means of a simrun.
func program(p frame.Program) frame.Program {
	p.Name, p.About, p.More, p.Commands, p.Unknown, p.Endings, p.Moved = frame.EvidenceName, aboutEvidence, moreAboutEvidence, evidenceCommands, ofSimrun, nil, nil
	return p
}

// evidenceCommands returns the commands of the maintainers. The program also has the hidden parts of
// simrun, since its commands call those of simrun.
func evidenceCommands(a *frame.App) (groups []frame.Group, parts []*cobra.Command) {
	groups = []frame.Group{
		{Title: "Results:", Commands: []*cobra.Command{resultsCommand(a), findingsCommand(a), killCommand(a), benchCommand(a), siteCommand(a)}},
		{Title: "On real servers:", Commands: []*cobra.Command{agreeCommand(a), upstreamCommand(a)}},
	}
	if standing := standingCommands(a); standing != nil {
		groups = append(groups, frame.Group{Title: "On many machines:", Commands: standing})
	}
	_, parts = cli.Commands(a)
	return groups, append(parts,
		a.Part(killWorker, func([]string) (int, error) { return killer(a) }),
		a.Part(huntWorker, func([]string) (int, error) { return serveHunts(a) }),
		a.Part(liveGuard, func(args []string) (int, error) { return becomeGuarded(a, args) }))
}

// both returns the program whose commands are those of simrun and of evidence. A command of evidence
// calls others by it.
func both(p frame.Program) frame.Program {
	p.Commands = func(a *frame.App) ([]frame.Group, []*cobra.Command) {
		ours, parts := evidenceCommands(a)
		theirs, _ := cli.Commands(a)
		return slices.Concat(theirs, ours), parts
	}
	return p
}

// ofSimrun names the program that has a command, if simrun or the program in peers/ has it.
func ofSimrun(a *frame.App, name string) error {
	if name == "standing" { // the program in peers/ has the queue that it needs
		return frame.Usagef("unknown command %q; the program in peers/ has it; in a clone of this project: (cd peers && go run ./cmd/evidence standing --help)", name)
	}
	groups, _ := cli.Commands(a)
	for _, g := range groups {
		if slices.ContainsFunc(g.Commands, func(c *cobra.Command) bool { return c.Name() == name }) {
			return frame.Usagef("%s is a command of simrun: `%s %s`", name, frame.Simrun(), name)
		}
	}
	return nil
}
