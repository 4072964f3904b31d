// Package simrun implements the command line. It runs the registered locks in a simulated
// world and reports which of their promises they kept. See simrun help.
package simrun

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"lockstep/sim"
)

// Exit codes. If several apply, the first in the order 70, 64, 1, 2, 0 counts.
const (
	exitOK         = 0
	exitUnexpected = 1  // a verdict that was not expected; check: not linearizable
	exitUndecided  = 2  // undecided, or nondeterministic
	exitUsage      = 64 // bad input; nothing was run or written
	exitDefect     = 70 // a defect of simrun itself
)

const usage = `simrun runs distributed-lock code in a simulated world.

  simrun list [--json] [--planted]         scenarios and locks; or the planted bugs
  simrun run [SCENARIO or FILE ...]        run them; none named: all built in
      --tag T          the scenarios with this tag: track-record, six-properties; in peers
                       peers-track-record, stories
      --lock L         another lock than the scenario names; may be repeated
      --seed N or A..B the seeds; default: the scenario's own
      --out DIR        write verdicts.md, verdicts.jsonl and recordings to DIR
      --json           one object per run, one per line
      --format F       junit or github, in place of the table
  simrun matrix [SCENARIO or FILE ...]     scenarios by releases; none named: the track record
      --tag T --lock L --seed A..B   as for run
      --format F       text, json (also --json: one object per cell), markdown, html
  simrun replay RECORDING [--json]         run a recording again
      --scenario       or print the scenario file that it holds
  simrun report RECORDING [-o FILE]        a page that shows what happened, and why it is wrong
      --text           the same as text; --mermaid: as a sequence diagram
      --blame          and which decision made it inevitable; --runs N: of 20 for each
  simrun report DIR [-o DIR]               an index of results, and the page of each recording
  simrun serve DIR                         the same on http://127.0.0.1:7420, as it grows; --addr A
  simrun shrink RECORDING [-o FILE]        the smallest scenario that breaks the same judge
      --judge J        this one; default: the first that shows a bug, else a limit
  simrun explore --lock L                  look for schedules that break it
      --faults F,...   network crash pause partition clock server operator
                       watchdog interrupt, or all; default: none
      --profile P      simple, orderly or full: how wild the callers are
      --runs N         default 1000; --steps N: a budget of steps besides
      --keep-going     play on when each cell was met that the faults can meet, and the last
                       300 runs brought no new one
      --seed N or A..B default 1; several share the runs, a hundred at a time
      --strategy plain (each run is drawn anew), aimed (every second run adds faults at
                       moments that had none), or pct (--depth D: orderings it is to get
                       right)
      --strategy exhaustive: all schedules of two clients, with network one message
                       lost; --scenario FILE: of this one
      --jobs J         processes that play; default: one a processor
      --out DIR        keep the runs, and what is found; the same command goes
                       on where it was killed
      --shard I/N      play the I-th of N parts; then simrun merge
      --time D         end after D; failures are made as small as the time allows. An
                       interrupt ends at once. With --out the same command goes on
      --live           play on a real redis-server in real time, for --time D; --jobs J:
                       runs at a time
  simrun merge DIR ... [--out DIR]         one campaign out of its shards
  simrun findings DIR ... [-o FILE]        what campaigns found, written up
  simrun survey                            locks compared: which promises hold under which faults,
                                           and what an acquire costs
      --lock L         may be repeated; default: each lock, of a library the newest release
      --runs N         of each class of faults; default 300; --seed N
      --seconds S      fewer runs for a lock whose runs take longer than S seconds of a
                       processor; --runs-of L=N: so many for this lock
      --jobs J         processes that play; --json: an object per lock
      --out DIR        write survey.md, survey.html, survey.jsonl and recordings to DIR
  simrun repeat                            runs of locks, played twice: which records differ
      --lock L         may be repeated; default: as for survey
      --runs N         drawn runs of each lock; default 200
      --seeds A..B     of each scenario that names the lock; default 1..20
      --jobs J         processes that play; --out DIR: write repeatability.md to DIR
  simrun results [DIR]                     write all of a folder of results anew; default: results
      --only P,...     parts: verdicts track-record six-properties peers-track-record kill
                       exhaustive explore peers exhaustive-summary explore-summary
                       peers-summary survey performance,
                       or a folder such as explore/FOLDER
      --older          only what an older program wrote; --check: name it, and write nothing
      --runs N         play at most N runs of each campaign; default: its own number
  simrun bench                             what runs cost, into results/performance.md
      --only P,...     parts: step schedule run hour workers memory real-time lock growth
                       worlds; and hunt, which takes hours and is measured only if named
      --rounds N       how often what is compared is measured in turn; default 5
      --quick          little of everything, for a look; --out FILE, - for here
  simrun kill [BUG ...] [-o FILE] [--json] is every planted bug found, and by which judge?
      --seeds N        campaigns for each; default 20; --jobs J: at a time
  simrun live SCENARIO or FILE ...         the same scenarios on a real redis-server, in real time
      --lock L --tag T --json   as for run; besides, redisson-java@R and redisson-java-fair@R
                       are the Java library itself
      --runs N         how often each is played; --out DIR: write each run to DIR, for report
      --keep[=DIR]     leave the logs of the processes there
      --address A      use the empty server at A; no fault strikes it
  simrun agree [SCENARIO or FILE ...]      both, and do they come to the same; none named: the
      --runs N         track record; default 3; --jobs J: runs at a time, default 4
      -o FILE          the same command goes on where it was interrupted
      --differing DIR  write the live runs that do not agree to DIR, for report
      --lock L --tag T as for run
  simrun upstream [DEFECT ...]             which known defects does the library itself have? Writes
                                           results/upstream.md, and a report with a JUnit test
                                           for each; with the Java library and Maven
      --release R      default 4.7.0; --runs N: live runs of each, default 3; --tries N: of its
                       test, default 3; --jobs J: defects at a time, default 4
      --out DIR        default results/upstream; --results DIR: what campaigns kept
      --again          play all anew; otherwise the command goes on where it ended
  simrun check HISTORY ... [--json]        judge histories recorded elsewhere: JSON Lines, or
                       Jepsen's EDN of a lock; .gz too; - is standard input
      --out DIR        and draw those that fail, in DIR
      --model M        reentrant, fair or fenced; default reentrant
      --drift-ppm N    how far apart lease clocks run

exit: 0 as expected (check: linearizable; explore: no bug) · 1 a bug, or a verdict
      that was not expected
      2 undecided or not the same again · 64 bad input, nothing was run · 70 our fault

A scenario file, in short; the README tells the rest:

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

// app is one call of simrun.
type app struct {
	host   *sim.Host
	out    io.Writer
	err    io.Writer
	colour bool
	tty    bool // stderr is a terminal
	brief  bool // stderr gets progress and errors only
	speech sync.Mutex
	exit   func(int) // ends the program; nil: os.Exit
	// folders are the folders into which only this process writes, see folder.
	folders []os.FileInfo
}

// Main runs the command that the arguments name and ends the program with its exit code.
// If register is not nil, Main calls it first, to make more locks known.
func Main(register func(*sim.Host) error) {
	sim.Main(func(h *sim.Host) int {
		if register != nil {
			if err := register(h); err != nil {
				fmt.Fprintf(os.Stderr, "simrun: %v\n", err)
				return exitUsage
			}
		}
		a := &app{host: h, out: os.Stdout, err: os.Stderr, tty: terminal(os.Stderr)}
		a.colour = terminal(os.Stdout) && os.Getenv("NO_COLOR") == ""
		return a.main(os.Args[1:])
	})
}

func terminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// usageError reports bad input. Its message goes to stderr, and nothing was run.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

func commands() map[string]func(*app, []string) (int, error) {
	return map[string]func(*app, []string) (int, error){
		"list": (*app).list, "run": (*app).run, "replay": (*app).replay, "shrink": (*app).shrink, "check": (*app).check,
		"report": (*app).report, "serve": (*app).serve, "explore": (*app).explore, "merge": (*app).merge, "findings": (*app).findings, "results": (*app).renew,
		"matrix": (*app).matrix, "bench": (*app).bench, "kill": (*app).kill, "survey": (*app).survey, surveyCommand: (*app).surveyor, "repeat": (*app).repeat, repeatCommand: (*app).repeater, "live": (*app).live, "agree": (*app).agree, "upstream": (*app).upstream, clientCommand: (*app).client, workerCommand: (*app).worker, killerCommand: (*app).killer,
	}
}

func (a *app) main(args []string) (code int) {
	defer func() {
		if r := recover(); r != nil {
			fmt.Fprintf(a.err, "simrun: a defect of simrun: %v\n", r)
			code = exitDefect
		}
	}()
	if len(args) == 0 || args[0] == "help" || args[0] == "-h" || args[0] == "--help" {
		fmt.Fprint(a.out, usage)
		if len(args) == 0 {
			return exitUsage
		}
		return exitOK
	}
	command, ok := commands()[args[0]]
	if !ok {
		fmt.Fprintf(a.err, "simrun: unknown command %q; known: list, run, replay, report, serve, shrink, explore, merge, findings, survey, repeat, results, kill, matrix, bench, check, live, agree, upstream, help\n", args[0])
		return exitUsage
	}
	code, err := command(a, args[1:])
	var bad usageError
	switch {
	case errors.Is(err, pflag.ErrHelp):
		fmt.Fprint(a.out, usage)
		return exitOK
	case errors.As(err, &bad):
		fmt.Fprintf(a.err, "simrun: %v\n", err)
		return exitUsage
	case err != nil:
		fmt.Fprintf(a.err, "simrun: %v\n", err)
		return exitDefect
	}
	return code
}

// wanted describes the values that a flag of each type takes.
var wanted = map[string]string{
	"bool": "true or false", "int": "a whole number", "int64": "a whole number", "uint64": "a whole number that is not negative",
	"duration": "a length of time such as 90s or 2m",
}

// flags parses the arguments of a command and returns the arguments that are not options.
// Options may stand anywhere.
func flags(name string, args []string, define func(*pflag.FlagSet)) ([]string, error) {
	f := pflag.NewFlagSet(name, pflag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	define(f)
	if err := f.Parse(args); err != nil {
		if errors.Is(err, pflag.ErrHelp) {
			return nil, err
		}
		var wrong *pflag.InvalidValueError
		if errors.As(err, &wrong) {
			flag := wrong.GetFlag()
			return nil, usagef("%s: --%s %s: want %s", name, flag.Name, wrong.GetValue(), wanted[flag.Value.Type()])
		}
		var known []string
		f.VisitAll(func(f *pflag.Flag) { known = append(known, "--"+f.Name) })
		return nil, usagef("%s: %v; %s knows %s", name, err, name, strings.Join(known, ", "))
	}
	return f.Args(), nil
}

// verdictColours are the ANSI colours of the verdicts. A colour is never the only sign.
var verdictColours = map[string]string{"held": "32", "bug": "31", "limit": "33", "undecided": "35", "nondeterministic": "35"}

func (a *app) paint(word, padded string) string {
	if c := verdictColours[word]; a.colour && c != "" {
		return "\x1b[" + c + "m" + padded + "\x1b[0m"
	}
	return padded
}
