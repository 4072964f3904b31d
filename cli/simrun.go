// Package cli has the commands of simrun, for people who judge locks. Each command is a function of the call of the
// program (frame.App) with options of its own. Program assembles them.
package cli

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"lockstep/cli/frame"
)

// aboutSimrun is the help of the program above its list of commands, and moreAboutSimrun below it.
const (
	aboutSimrun = `simrun runs distributed-lock code in a simulated world and judges which promises it kept.

A file needs no command: simrun FILE.lockstep replays a recording, simrun FILE.yaml runs a scenario.`
	moreAboutSimrun = `

Exit codes:
  0    as expected (check: linearizable; explore: no bug)
  1    a bug, or a verdict that was not expected
  2    undecided, a run that did not repeat, or an interrupt
  64   bad input; nothing was run
  70   a defect of simrun
  74   reading or writing failed, as on a full disk
If several apply, the first of 70, 64, 74, 1, 2, 0 counts: an interrupted command that printed a bug
ends with 1.

A scenario file, in short; docs/scenarios.md has the rest:

  lockstep: 1
  name: my-lock
  locks: [redisson@4.7.0, setnx-del]
  processes: {a: {threads: 1}, b: {}}
  steps:
    a/1:
      - lock: {name: orders, lease: 3s, want: granted}
      - sleep: 5s
      - unlock: orders
    b/1:
      - at: 1s
      - lock: {name: orders, lease: 10s}
      - sleep: 4s
      - unlock: orders
  faults:
    - {at: 2s, pause: b, for: 100ms}
  expect:
    setnx-del: {bug: [misdelete]}
`
)

// Program returns simrun, the program for people who judge locks, without its locks and means.
func Program() frame.Program {
	return frame.Program{
		Name: frame.SimrunName, About: aboutSimrun, More: moreAboutSimrun, Commands: Commands, Unknown: unknown,
		Endings: map[string]string{".lockstep": "replay", ".yaml": "run", ".yml": "run"}, Moved: movedCommands(),
	}
}

// Commands returns the commands for people who judge locks.
func Commands(a *frame.App) (groups []frame.Group, parts []*cobra.Command) {
	groups = []frame.Group{
		{Title: "Scenarios:", Commands: []*cobra.Command{listCommand(a), runCommand(a), matrixCommand(a)}},
		{Title: "Recordings and results:", Commands: []*cobra.Command{replayCommand(a), reportCommand(a), serveCommand(a), shrinkCommand(a), explainCommand(a)}},
		{Title: "Random runs and campaigns:", Commands: append([]*cobra.Command{exploreCommand(a), mergeCommand(a)}, append(farmCommands(a), surveyCommand(a), repeatCommand(a))...)},
		{Title: "Tests of your own:", Commands: []*cobra.Command{overlayCommand(a), testCommand(a)}},
		{Title: "On real servers:", Commands: []*cobra.Command{liveCommand(a)}},
		{Title: "Histories and the tool itself:", Commands: []*cobra.Command{checkCommand(a), a.VersionCommand()}},
	}
	return groups, []*cobra.Command{
		a.Part(ExploreWorker, func([]string) (int, error) { return serveRuns(a) }),
		a.Part(surveyWorker, func([]string) (int, error) { return serveSurvey(a) }),
		a.Part(repeatWorker, func([]string) (int, error) { return serveRepeats(a) }),
		a.Part(liveClient, func(args []string) (int, error) { return serveClient(a, args) }),
	}
}

// movedCommands has the commands that the program of the maintainers has now, with their calls.
func movedCommands() map[string]string {
	all := map[string]string{}
	for _, name := range []string{"agree", "bench", "findings", "kill", "results", "site", "upstream"} {
		all[name] = "go run ./cmd/evidence " + name
	}
	return all
}

// unknown says more about a name that is no command, if it is the name of something else.
func unknown(a *frame.App, name string) error {
	if _, err := findScenario(name); err == nil {
		return frame.Usagef("unknown command %q; it is a scenario: %s run %s", name, frame.Simrun(), frame.Quoted(name))
	}
	if name == "farm" { // the program in peers/ has the queue that it needs
		return frame.Usagef("unknown command %q; the program in peers/ has it; in a clone of this project: (cd peers && go run ./cmd/simrun farm --help)", name)
	}
	if info, err := os.Stat(name); err == nil {
		kind, commands := "file", "run plays a scenario, replay a recording, and check judges a history"
		switch {
		case info.IsDir():
			kind, commands = "folder", "report and serve make pages of a folder of results"
		case filepath.Ext(name) == ".live":
			kind, commands = "live run", "report draws it"
		}
		return frame.Usagef("unknown command %q; it is a %s: %s; %s help lists the commands", name, kind, commands, frame.Simrun())
	}
	if name == "history" || name == "histories" { // as the documents call what check reads
		return frame.Usagef("unknown command %q; check judges a history; %s help lists the commands", name, frame.Simrun())
	}
	return nil
}
