package simrun

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockstep/internal/nearest"
)

// An invocation is one call of a command.
type invocation struct {
	args  []string       // after the name of the command, as they were given
	names []string       // the arguments that are not options
	given *pflag.FlagSet // the options
}

// argsBut returns the arguments without an option. A table names the command that made it, but
// without --again: a reader who repeats that command plays nothing anew.
func (in invocation) argsBut(option string) (out []string) {
	for i := 0; i < len(in.args); i++ {
		name, _, hasValue := strings.Cut(in.args[i], "=")
		switch {
		case name != "--"+option:
			out = append(out, in.args[i])
		case !hasValue && in.given.Lookup(option).NoOptDefVal == "":
			i++ // skip the value of the option
		}
	}
	return out
}

// A guide is the help of a command.
type guide struct {
	use      string   // its name and its arguments
	short    string   // for the list of commands
	long     string   // paragraphs, each on one line
	examples []string // arguments of the program
	// optionsOnly reports whether the command takes no argument that is not an option.
	optionsOnly bool
}

// command returns a command that runs the function.
func (a *app) command(g guide, run func(invocation) (int, error)) *cobra.Command {
	var long, example strings.Builder
	for paragraph := range strings.SplitSeq(g.long, "\n") {
		long.WriteString(wrap(paragraph, "", helpColumns) + "\n")
	}
	for _, args := range g.examples {
		fmt.Fprintf(&example, "  %s %s\n", program(), args)
	}
	c := &cobra.Command{
		Use: g.use, Short: g.short, Long: strings.TrimSpace(long.String()), Example: strings.TrimRight(example.String(), "\n"),
		DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, names []string) (err error) {
			if g.optionsOnly && len(names) > 0 {
				hint := ""
				if lock := c.Flags().Lookup("lock"); lock != nil && !lock.Changed {
					hint = "; name a lock with --lock"
				}
				return usagef("%s: %q is no option; %s takes options only%s", c.Name(), names[0], c.Name(), hint)
			}
			if err := emptyLists(c); err != nil {
				return err
			}
			defer a.endOnInterrupt()()
			a.code, err = run(invocation{a.args[slices.Index(a.args, c.Name())+1:], names, c.Flags()})
			return err
		},
	}
	if g.optionsOnly {
		c.ValidArgsFunction = nothing
	}
	return c
}

// emptyLists returns an error if an option that takes a list is given an empty one, such as an
// unset variable of a shell. Without the option the command would take everything.
func emptyLists(c *cobra.Command) (err error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		if list, ok := f.Value.(pflag.SliceValue); ok && len(list.GetSlice()) == 0 {
			err = cmp.Or(err, usagef("%s: --%s is empty; leave it out, or give it a value", c.Name(), f.Name))
		}
	})
	return err
}

// part returns a hidden command. This program starts itself with it, to do a part of another
// command. The hidden command has no options, so all arguments are passed on.
func (a *app) part(name string, run func(args []string) (int, error)) *cobra.Command {
	return &cobra.Command{Use: name, Hidden: true, DisableFlagParsing: true, RunE: func(_ *cobra.Command, args []string) (err error) {
		a.code, err = run(args)
		return err
	}}
}

// helpColumns is the width of a help text.
const helpColumns = 100

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

// root returns the whole command line.
func (a *app) root() *cobra.Command {
	cobra.EnableCommandSorting = false
	root := &cobra.Command{
		Use: programName(os.Args[0]), Long: aboutSimrun, Version: versionText(), Args: cobra.ArbitraryArgs,
		SilenceErrors: true, SilenceUsage: true, DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, names []string) error {
			if len(names) > 0 {
				return a.unknownCommand(c, names[0])
			}
			a.code = exitUsage
			return c.Help()
		},
	}
	root.SetOut(a.out)
	root.SetErr(a.err)
	root.SetVersionTemplate("{{.Version}}")
	root.SetUsageTemplate(strings.NewReplacer(
		".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", helpColumns),
		"{{if .Runnable}}", "{{if and .Runnable .HasParent}}", // the program without a command does nothing
	).Replace(strings.TrimRight(root.UsageTemplate(), "\n")) + "{{if not .HasParent}}" + moreAboutSimrun + "{{else}}\n{{end}}")
	root.SetFlagErrorFunc(a.optionError)
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Scenarios:", []*cobra.Command{a.listCommand(), a.runCommand(), a.matrixCommand()}},
		{"Recordings and results:", []*cobra.Command{a.replayCommand(), a.reportCommand(), a.serveCommand(), a.siteCommand(), a.shrinkCommand()}},
		{"Random runs and campaigns:", append([]*cobra.Command{a.exploreCommand(), a.mergeCommand()}, append(a.farmCommands(),
			a.findingsCommand(), a.surveyCommand(), a.repeatCommand())...)},
		{"On real servers:", []*cobra.Command{a.liveCommand(), a.agreeCommand(), a.upstreamCommand()}},
		{"Histories and the tool itself:", []*cobra.Command{a.checkCommand(), a.killCommand(), a.resultsCommand(), a.benchCommand(), a.versionCommand()}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.title
			root.AddCommand(c)
		}
	}
	root.AddCommand(
		a.part(workerCommand, a.worker), a.part(killerCommand, a.killer), a.part(surveyCommand, a.surveyor),
		a.part(repeatCommand, a.repeater), a.part(hunterCommand, a.hunter), a.part(clientCommand, a.client), a.part(guardCommand, a.guard))
	root.SetHelpCommand(a.helpCommand(root))
	a.completionCommand(root)
	completeOptions(root)
	return root
}

// programName returns the name of the program in its help. In a test it is simrun.
func programName(called string) string {
	name := strings.TrimSuffix(filepath.Base(called), ".exe")
	if strings.HasSuffix(name, ".test") {
		return filepath.Base(ours)
	}
	return name
}

// helpCommand returns the command help.
func (a *app) helpCommand(root *cobra.Command) *cobra.Command {
	c := a.command(guide{
		use: "help [COMMAND]", short: "say what a command does, and which options it has",
		long:     "Help says what a command does, which options it has and how it is used. Without a name it lists the commands.",
		examples: []string{"help run"},
	}, func(in invocation) (int, error) {
		about, rest, err := root.Find(in.names)
		if err != nil || len(rest) > 0 || about.Hidden {
			return 0, a.unknownCommand(root, strings.Join(in.names, " "))
		}
		about.InitDefaultHelpFlag() // as --help does
		return exitOK, about.Help()
	})
	c.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return available(root), cobra.ShellCompDirectiveNoFileComp
	}
	return c
}

// available returns the names of the commands for users.
func available(root *cobra.Command) (names []string) {
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() || c.Name() == "help" {
			names = append(names, c.Name())
		}
	}
	return names
}

// withCommand puts the command that plays a file before the arguments if they begin with a
// recording or a scenario file.
func withCommand(args []string) []string {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return args
	}
	switch filepath.Ext(args[0]) {
	case ".lockstep":
		return append([]string{"replay"}, args...)
	case ".yaml", ".yml":
		return append([]string{"run"}, args...)
	}
	return args
}

func (a *app) unknownCommand(root *cobra.Command, name string) error {
	if _, err := findScenario(name); err == nil {
		return usagef("unknown command %q; it is a scenario: %s run %s", name, program(), quoted(name))
	}
	if name == "farm" { // registered by the program in peers/, which has the queue
		return usagef("unknown command %q; the program in peers/ has it; in a clone of this project: (cd peers && go run ./cmd/simrun farm --help)", name)
	}
	if info, err := os.Stat(name); err == nil {
		kind, commands := "file", "run plays a scenario, replay a recording, and check judges a history"
		switch {
		case info.IsDir():
			kind, commands = "folder", "report and serve make pages of a folder of results"
		case filepath.Ext(name) == ".live":
			kind, commands = "live run", "report draws it"
		}
		return usagef("unknown command %q; it is a %s: %s; %s help lists the commands", name, kind, commands, program())
	}
	if name == "history" || name == "histories" { // as the documents call what check reads
		return usagef("unknown command %q; check judges a history; %s help lists the commands", name, program())
	}
	return usagef("unknown command %q; %s%s help lists the commands", name, nearest.Hint(nearest.Near(name, available(root))), program())
}

// optionError rewrites an error about the options of a command for users.
func (a *app) optionError(c *cobra.Command, err error) error {
	command := strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")
	where := command + ": "
	if !c.HasParent() {
		if len(a.args) > 0 && !strings.HasPrefix(a.args[0], "-") {
			return a.unknownCommand(c, a.args[0])
		}
		where = ""
	}
	var options []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			options = append(options, f.Name)
		}
	})
	knows := fmt.Sprintf("%s knows --%s", command, strings.Join(options, ", --"))
	switch {
	case len(options) == 0:
		knows = command + " has no options"
	case !c.HasParent():
		knows += "; the options of a command stand after its name, and the options for a file after the file"
	}
	var wrong *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	var missing *pflag.ValueRequiredError
	switch {
	case errors.As(err, &wrong):
		value := wrong.GetValue()
		if value == "" || strings.ContainsAny(value, " \t\n") {
			value = fmt.Sprintf("%q", value)
		}
		return usagef("%s--%s %s: %s", where, wrong.GetFlag().Name, value, unfit(wrong))
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		name, hint := unknown.GetSpecifiedName(), ""
		if near := nearest.Near(name, options); near != "" {
			hint = nearest.Hint("--" + near)
		}
		return usagef("%sunknown option --%s; %s%s", where, name, hint, knows)
	case errors.As(err, &unknown):
		return usagef("%sunknown option -%s; %s", where, unknown.GetSpecifiedName(), knows)
	case errors.As(err, &missing):
		return usagef("%s--%s needs a value", where, missing.GetFlag().Name)
	}
	return usagef("%s%w; %s", where, err, knows)
}
