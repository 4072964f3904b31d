package frame

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockstep/internal/nearest"
	"lockstep/report"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
)

// Shells are the shells for which cobra writes a completion script.
var Shells = []string{"bash", "zsh", "fish", "powershell"}

// completionCommand adds cobra's command completion, which takes the name of a shell.
func (a *App) completionCommand(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	c, _, err := root.Find([]string{"completion"})
	if err != nil {
		panic(err) // cobra has made it
	}
	c.Short = "write a script that completes the command line of a shell"
	c.Example = "  " + a.Called() + " completion bash"
	c.Args, c.DisableFlagsInUseLine = cobra.ArbitraryArgs, true
	c.RunE = func(_ *cobra.Command, names []string) error {
		if len(names) == 0 {
			return Usagef("completion takes a shell: %s", strings.Join(Shells, ", "))
		}
		return Usagef("completion: unknown shell %q; %s", names[0], nearest.Known(names[0], Shells))
	}
}

// A completer returns the words that may take the place of the last word, each with a description
// after a tab, or the kind of files that may.
type completer = cobra.CompletionFunc

// Described joins a name and its description in the form that cobra needs.
func Described(name, about string) string {
	return cobra.CompletionWithDesc(name, report.Clip(FirstSentence(about), 61))
}

func scenarioNames() (names []string) {
	all, err := scenarios.All()
	if err != nil {
		return nil
	}
	for _, sc := range all {
		names = append(names, Described(sc.ShortName(), sc.About))
	}
	return names
}

func lockNames() (names []string) {
	for _, l := range subject.All() {
		names = append(names, Described(l.Name, l.About))
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

// beginning returns the names that begin with a prefix.
func beginning(names []string, prefix string) []string {
	return slices.DeleteFunc(names, func(n string) bool { return !strings.HasPrefix(n, prefix) })
}

// Only completes one of several names.
func Only(names func() []string) completer {
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

// Files completes a file with one of these endings, or a folder on the way to it.
func Files(endings ...string) completer {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return endings, cobra.ShellCompDirectiveFilterFileExt
	}
}

// Folders completes a folder.
func Folders(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// Nothing completes nothing, for an argument that may be any text, or that the command does not
// take.
func Nothing(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveNoFileComp
}

// ScenariosOrFiles completes a scenario by its name, or a scenario file if no name begins so.
func ScenariosOrFiles(c *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if names := beginning(scenarioNames(), prefix); len(names) > 0 {
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	return Files("yaml", "yml")(c, args, prefix)
}

// completeOptions registers the completer of each option. Options with the same name take the same values in
// all commands.
func completeOptions(root *cobra.Command) {
	names := map[string]func() []string{"lock": lockNames, "tag": tagNames}
	places := map[string]completer{"scenario": ScenariosOrFiles, "out": Folders, "keep": Folders, "differing": Folders, "results": Folders, "repository": Folders}
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
		return Nothing
	case names == nil:
		return place
	case many:
		return several(names)
	}
	return Only(names)
}

// FirstSentence returns the first sentence of a text, on one line.
func FirstSentence(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if i := strings.Index(s, ". "); i >= 0 {
		return s[:i+1]
	}
	return s
}
