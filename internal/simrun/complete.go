package simrun

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockstep/internal/nearest"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
)

// shells are the shells for which cobra writes a completion script.
var shells = []string{"bash", "zsh", "fish", "powershell"}

// completionCommand adds cobra's command completion, which takes the name of a shell.
func (a *app) completionCommand(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	c, _, err := root.Find([]string{"completion"})
	if err != nil {
		panic(err) // cobra has made it
	}
	c.Short = "write a script that completes the command line of a shell"
	c.Example = "  " + program() + " completion bash"
	c.Args, c.DisableFlagsInUseLine = cobra.ArbitraryArgs, true
	c.RunE = func(_ *cobra.Command, names []string) error {
		if len(names) == 0 {
			return usagef("completion takes a shell: %s", strings.Join(shells, ", "))
		}
		return usagef("completion: unknown shell %q; %s", names[0], nearest.Known(names[0], shells))
	}
}

// A completer returns the words that may take the place of the last word, each with a description
// after a tab, or the kind of files that may.
type completer = cobra.CompletionFunc

// described joins a name and its description in the form that cobra needs.
func described(name, about string) string {
	return cobra.CompletionWithDesc(name, clip(firstSentence(about), 61))
}

func scenarioNames() (names []string) {
	all, err := scenarios.All()
	if err != nil {
		return nil
	}
	for _, sc := range all {
		names = append(names, described(sc.ShortName(), sc.About))
	}
	return names
}

func lockNames() (names []string) {
	for _, l := range subject.All() {
		names = append(names, described(l.Name, l.About))
	}
	return names
}

func tagNames() (names []string) {
	all, err := scenarios.All()
	if err != nil {
		return nil
	}
	for _, sc := range all {
		if t := sc.Tag(); t != "" && !slices.Contains(names, t) {
			names = append(names, t)
		}
	}
	return names
}

func bugNames() (names []string) {
	for _, b := range subject.PlantedBugs() {
		names = append(names, described(b.Name, b.What))
	}
	return names
}

// beginning returns the names that begin with a prefix.
func beginning(names []string, prefix string) []string {
	return slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, prefix) })
}

// only completes one of several names.
func only(names func() []string) completer {
	return func(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return beginning(names(), prefix), cobra.ShellCompDirectiveNoFileComp
	}
}

// several completes the last of several names with commas between them.
func several(names func() []string) completer {
	return func(_ *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		before := prefix[:strings.LastIndex(prefix, ",")+1]
		all := names()
		for i := range all {
			all[i] = before + all[i]
		}
		return beginning(all, prefix), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
}

// files completes a file with one of these endings, or a folder on the way to it.
func files(endings ...string) completer {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return endings, cobra.ShellCompDirectiveFilterFileExt
	}
}

// folders completes a folder.
func folders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// nothing completes nothing, for an argument that may be any text, or that the command does not
// take.
func nothing(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// scenariosOrFiles completes a scenario by its name, or a scenario file if no name begins so.
func scenariosOrFiles(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if names := beginning(scenarioNames(), prefix); len(names) > 0 {
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	return files("yaml", "yml")(c, args, prefix)
}

// completeOptions registers the completer of each option. Options with the same name take the same values in
// all commands.
func completeOptions(root *cobra.Command) {
	names := map[string]func() []string{"lock": lockNames, "tag": tagNames}
	places := map[string]completer{"scenario": scenariosOrFiles, "out": folders, "keep": folders, "differing": folders, "results": folders, "repository": folders}
	for _, c := range root.Commands() {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			complete := completerOf(f.Value, names[f.Name], places[f.Name])
			if f.Name == "out" && (f.Shorthand == "o" || c.Name() == "bench") {
				complete = nil // a file
			}
			if complete == nil {
				return
			}
			if err := c.RegisterFlagCompletionFunc(f.Name, complete); err != nil {
				panic(err) // it is registered once
			}
		})
	}
}

// completerOf returns the completer of a value: its own words if it has some, else the names if
// they are not nil, else the completer for the place.
func completerOf(value pflag.Value, names func() []string, place completer) completer {
	many := value.Type() == "stringSlice"
	switch v := value.(type) {
	case *word:
		names = func() []string { return slices.Clone(v.known) }
	case *words:
		names, many = func() []string { return slices.Clone(v.known) }, true
	}
	switch {
	case value.Type() == "bool":
		return nil
	case names == nil && place == nil:
		return nothing
	case names == nil:
		return place
	case many:
		return several(names)
	}
	return only(names)
}
