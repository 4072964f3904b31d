package simrun

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"lockstep/report"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
)

func (a *app) listCommand() *cobra.Command {
	var asJSON, bugs bool
	c := a.command(guide{
		use: "list [--json] [--planted]", short: "name the scenarios and the locks, or the planted bugs",
		long:     "List names every scenario and every lock that this program knows, or with --planted the locks that are wrong on purpose.",
		examples: []string{"list", "list --planted"},
	}, func(in invocation) (int, error) { return a.list(in, bugs, asJSON) })
	f := c.Flags()
	f.BoolVar(&bugs, "planted", false, "the planted bugs, each with the lock that it is in")
	jsonFlag(f, &asJSON, "one object a line")
	c.ValidArgsFunction = nothing
	return c
}

func (a *app) list(in invocation, bugs, asJSON bool) (int, error) {
	if len(in.names) > 0 {
		return 0, usagef("list takes no argument, got %q", in.names[0])
	}
	if bugs {
		return a.listBugs(asJSON)
	}
	all, err := scenarios.All()
	if err != nil {
		return 0, err
	}
	if asJSON {
		enc := json.NewEncoder(a.out)
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
		return exitOK, nil
	}
	collection := ""
	for i, sc := range all {
		if sc.Collection() != collection {
			if i > 0 {
				fmt.Fprintln(a.out)
			}
			title := "scenarios"
			if sc.ShortName() != sc.Name { // it is not built in
				title += " of " + sc.Collection()
			}
			fmt.Fprintln(a.out, title)
		}
		collection = sc.Collection()
		fmt.Fprintf(a.out, "  %-35s %s\n", sc.Name, clip(firstSentence(sc.About), 61))
	}
	if len(all) > 0 {
		fmt.Fprintln(a.out)
	}
	fmt.Fprintln(a.out, "locks")
	for _, l := range subject.All() {
		fmt.Fprintf(a.out, "  %-35s %s\n", l.Name, clip(l.About, 61))
	}
	return exitOK, nil
}

// listBugs lists the locks with a planted bug.
func (a *app) listBugs(asJSON bool) (int, error) {
	enc := json.NewEncoder(a.out)
	for _, b := range subject.PlantedBugs() {
		name := subject.PlantedPrefix + b.Name
		if !asJSON {
			fmt.Fprintf(a.out, "  %-42s %-21s %s\n", name, b.Base, b.What)
			continue
		}
		if err := enc.Encode(map[string]any{"lock": name, "base": b.Base, "about": b.What, "judge": b.Judge}); err != nil {
			return 0, err
		}
	}
	return exitOK, nil
}

func firstSentence(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if i := strings.Index(s, ". "); i >= 0 {
		return s[:i+1]
	}
	return s
}

// wrap and clip lay out text as the reports do.
var wrap, clip = report.Wrap, report.Clip
