package simrun

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"lockstep/report"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
)

func (a *app) list(args []string) (int, error) {
	asJSON, bugs := false, false
	rest, err := flags("list", args, func(f *pflag.FlagSet) {
		f.BoolVar(&asJSON, "json", false, "")
		f.BoolVar(&bugs, "planted", false, "")
	})
	if err != nil {
		return 0, err
	}
	if len(rest) > 0 {
		return 0, usagef("list takes no argument, got %q", rest[0])
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
		switch {
		case i == 0:
			fmt.Fprintln(a.out, "scenarios")
		case sc.Collection() != collection:
			fmt.Fprintf(a.out, "\nscenarios of %s\n", sc.Collection())
		}
		collection = sc.Collection()
		fmt.Fprintf(a.out, "  %-35s %s\n", sc.Name, clip(firstSentence(sc.About), 61))
	}
	fmt.Fprintln(a.out, "\nlocks")
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
