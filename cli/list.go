package cli

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"

	"lockstep/cli/frame"
	"lockstep/report"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
)

func listCommand(a *frame.App) *cobra.Command {
	var asJSON, bugs bool
	c := a.Command(frame.Guide{
		Use: "list [--json] [--planted]", Short: "name the scenarios and the locks, or the planted bugs",
		Long:     "List names every scenario and every lock that this program knows, or with --planted the locks that are wrong on purpose.",
		Examples: []string{"list", "list --planted"},
	}, func(in frame.Invocation) (int, error) { return listNames(a, in, bugs, asJSON) })
	f := c.Flags()
	f.BoolVar(&bugs, "planted", false, "the planted bugs, each with the lock that it is in")
	frame.JSONFlag(f, &asJSON, "one object a line")
	c.ValidArgsFunction = frame.Nothing
	return c
}

func listNames(a *frame.App, in frame.Invocation, bugs, asJSON bool) (int, error) {
	if len(in.Names) > 0 {
		return 0, frame.Usagef("list takes no argument, got %q", in.Names[0])
	}
	if bugs {
		return listBugs(a, asJSON)
	}
	all, err := scenarios.All()
	if err != nil {
		return 0, err
	}
	if asJSON {
		enc := json.NewEncoder(a.Out)
		for _, sc := range all {
			if err := enc.Encode(map[string]any{"scenario": sc.Name, "collection": sc.Collection(), "tag": sc.Tag(), "about": sc.About, "source": sc.Source, "locks": sc.Locks}); err != nil {
				return 0, err
			}
		}
		for _, l := range subject.All() {
			if err := enc.Encode(map[string]any{"lock": l.Name, "about": l.About}); err != nil {
				return 0, err
			}
		}
		return frame.ExitOK, nil
	}
	collection := ""
	for i, sc := range all {
		if sc.Collection() != collection {
			if i > 0 {
				fmt.Fprintln(a.Out)
			}
			title := "scenarios"
			if sc.ShortName() != sc.Name { // it is not built in
				title += " of " + sc.Collection()
			}
			fmt.Fprintln(a.Out, title)
		}
		collection = sc.Collection()
		fmt.Fprintf(a.Out, "  %-35s %s\n", sc.Name, report.Clip(frame.FirstSentence(sc.About), 61))
	}
	if len(all) > 0 {
		fmt.Fprintln(a.Out)
	}
	fmt.Fprintln(a.Out, "locks")
	for _, l := range subject.All() {
		fmt.Fprintf(a.Out, "  %-35s %s\n", l.Name, report.Clip(l.About, 61))
	}
	return frame.ExitOK, nil
}

// listBugs lists the locks with a planted bug.
func listBugs(a *frame.App, asJSON bool) (int, error) {
	enc := json.NewEncoder(a.Out)
	for _, b := range subject.PlantedBugs() {
		name := subject.PlantedPrefix + b.Name
		if !asJSON {
			fmt.Fprintf(a.Out, "  %-42s %-21s %s\n", name, b.Base, b.What)
			continue
		}
		if err := enc.Encode(map[string]any{"lock": name, "base": b.Base, "about": b.What, "judge": b.Judge}); err != nil {
			return 0, err
		}
	}
	return frame.ExitOK, nil
}
