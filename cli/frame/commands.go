package frame

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
	"lockstep/report"
)

// An Invocation is one call of a command.
type Invocation struct {
	Args  []string       // after the name of the command, as they were given
	Names []string       // the arguments that are not options
	Given *pflag.FlagSet // the options
}

// ArgsBut returns the arguments without an option. A table names the command that made it, but
// without --again: a reader who repeats that command plays nothing anew.
func (in Invocation) ArgsBut(option string) (out []string) {
	for i := 0; i < len(in.Args); i++ {
		name, _, hasValue := strings.Cut(in.Args[i], "=")
		switch {
		case name != "--"+option:
			out = append(out, in.Args[i])
		case !hasValue && in.Given.Lookup(option).NoOptDefVal == "":
			i++ // skip the value of the option
		}
	}
	return out
}

// A Guide is the help of a command.
type Guide struct {
	Use      string   // its name and its arguments
	Short    string   // for the list of commands
	Long     string   // paragraphs, each on one line
	Examples []string // arguments of the program
	// OptionsOnly reports whether the command takes no argument that is not an option.
	OptionsOnly bool
}

// Command returns a command that runs the function.
func (a *App) Command(g Guide, run func(Invocation) (int, error)) *cobra.Command {
	var long, example strings.Builder
	for paragraph := range strings.SplitSeq(g.Long, "\n") {
		long.WriteString(report.Wrap(paragraph, "", HelpColumns) + "\n")
	}
	for _, args := range g.Examples {
		fmt.Fprintf(&example, "  %s %s\n", a.Called(), args)
	}
	c := &cobra.Command{
		Use: g.Use, Short: g.Short, Long: strings.TrimSpace(long.String()), Example: strings.TrimRight(example.String(), "\n"),
		DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, names []string) (err error) {
			if g.OptionsOnly && len(names) > 0 {
				hint := ""
				if lock := c.Flags().Lookup("lock"); lock != nil && !lock.Changed {
					hint = "; name a lock with --lock"
				}
				return Usagef("%s: %q is no option; %s takes options only%s", c.Name(), names[0], c.Name(), hint)
			}
			if err := emptyOptions(c); err != nil {
				return err
			}
			defer a.endOnInterrupt()()
			a.code, err = run(Invocation{a.args[slices.Index(a.args, c.Name())+1:], names, c.Flags()})
			return err
		},
	}
	if g.OptionsOnly {
		c.ValidArgsFunction = Nothing
	}
	return c
}

// emptyOptions returns an error if an option that takes text or a list is given none, such as an unset
// variable of a shell. The command would do as without the option: take everything, or keep nothing.
func emptyOptions(c *cobra.Command) (err error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		list, ok := f.Value.(pflag.SliceValue)
		if ok && len(list.GetSlice()) == 0 || f.Value.Type() == "string" && f.Value.String() == "" {
			err = cmp.Or(err, Usagef("%s: --%s is empty; leave it out, or give it a value", c.Name(), f.Name))
		}
	})
	return err
}

// Part returns a hidden command. This program starts itself with it, to do a part of another
// command. The hidden command has no options, so all arguments are passed on.
func (a *App) Part(name string, run func(args []string) (int, error)) *cobra.Command {
	return &cobra.Command{Use: name, Hidden: true, DisableFlagParsing: true, RunE: func(_ *cobra.Command, args []string) (err error) {
		a.code, err = run(args)
		return err
	}}
}

// HelpColumns is the width of a help text.
const HelpColumns = 100

// Root returns the whole command line.
func (a *App) Root() *cobra.Command {
	cobra.EnableCommandSorting = false
	root := &cobra.Command{
		Use: a.programName(os.Args[0]), Long: a.About, Version: a.VersionText(), Args: cobra.ArbitraryArgs,
		SilenceErrors: true, SilenceUsage: true, DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, names []string) error {
			if len(names) > 0 {
				return a.unknownCommand(c, names[0])
			}
			a.code = ExitUsage
			return c.Help()
		},
	}
	root.SetOut(a.Out)
	root.SetErr(a.Err)
	root.SetVersionTemplate("{{.Version}}")
	root.SetUsageTemplate(strings.NewReplacer(
		".FlagUsages", fmt.Sprintf(".FlagUsagesWrapped %d", HelpColumns),
		"{{if .Runnable}}", "{{if and .Runnable .HasParent}}", // the program without a command does nothing
	).Replace(strings.TrimRight(root.UsageTemplate(), "\n")) + "{{if not .HasParent}}" + a.More + "{{else}}\n{{end}}")
	root.SetFlagErrorFunc(a.optionError)
	groups, parts := a.Commands(a)
	for _, g := range groups {
		root.AddGroup(&cobra.Group{ID: g.Title, Title: g.Title})
		for _, c := range g.Commands {
			c.GroupID = g.Title
			root.AddCommand(c)
		}
	}
	root.AddCommand(parts...)
	for name := range a.Moved {
		root.AddCommand(&cobra.Command{Use: name, Hidden: true, DisableFlagParsing: true, RunE: func(c *cobra.Command, _ []string) error {
			return a.moved(name)
		}})
	}
	root.SetHelpCommand(a.helpCommand(root))
	a.completionCommand(root)
	completeOptions(root)
	return root
}

// moved returns the error of a command that another program has now.
func (a *App) moved(name string) error {
	return Usagef("%s %s is now `%s`", a.Name, name, a.Moved[name])
}

// programName returns the name of the program in its help: that of its file, but its own in a test.
func (a *App) programName(called string) string {
	name := strings.TrimSuffix(filepath.Base(called), ".exe")
	if strings.HasSuffix(name, ".test") {
		return a.Name
	}
	return name
}

// helpCommand returns the command help.
func (a *App) helpCommand(root *cobra.Command) *cobra.Command {
	c := a.Command(Guide{
		Use: "help [COMMAND]", Short: "say what a command does, and which options it has",
		Long:     "Help says what a command does, which options it has and how it is used. Without a name it lists the commands.",
		Examples: []string{"help run"},
	}, func(in Invocation) (int, error) {
		about, rest, err := root.Find(in.Names)
		if err != nil || len(rest) > 0 || about.Hidden {
			return 0, a.unknownCommand(root, strings.Join(in.Names, " "))
		}
		about.InitDefaultHelpFlag() // as --help does
		return ExitOK, about.Help()
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

// withCommand puts the command that plays a file before the arguments if they begin with such a file.
func (a *App) withCommand(args []string) []string {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		return args
	}
	if command := a.Endings[filepath.Ext(args[0])]; command != "" {
		return append([]string{command}, args...)
	}
	return args
}

func (a *App) unknownCommand(root *cobra.Command, name string) error {
	if a.Moved[name] != "" {
		return a.moved(name)
	}
	if a.Unknown != nil {
		if err := a.Unknown(a, name); err != nil {
			return err
		}
	}
	return Usagef("unknown command %q; %s%s help lists the commands", name, nearest.Hint(nearest.Near(name, available(root))), a.Called())
}

// optionError rewrites an error about the options of a command for users.
func (a *App) optionError(c *cobra.Command, err error) error {
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
		return Usagef("%s--%s %s: %s", where, wrong.GetFlag().Name, value, unfit(wrong))
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		name, hint := unknown.GetSpecifiedName(), ""
		if near := nearest.Near(name, options); near != "" {
			hint = nearest.Hint("--" + near)
		}
		return Usagef("%sunknown option --%s; %s%s", where, name, hint, knows)
	case errors.As(err, &unknown):
		return Usagef("%sunknown option -%s; %s", where, unknown.GetSpecifiedName(), knows)
	case errors.As(err, &missing):
		return Usagef("%s--%s needs a value", where, missing.GetFlag().Name)
	}
	return Usagef("%s%w; %s", where, err, knows)
}
