package explore

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"lockstep/explore/draw"
	"lockstep/known"
	"lockstep/linearizability/judges"
	"lockstep/scenarios/story"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// Versions says which program wrote results. A number is 0 where nobody kept
// it, and NotUsed where the results do not depend on it.
type Versions struct{ World, Judges, Names, Draw, Stories int }

// NotUsed is the version of a part of the program that the results do not depend on.
const NotUsed = -1

// noVersions are the versions of results that name no version.
var noVersions = Versions{NotUsed, NotUsed, NotUsed, NotUsed, NotUsed}

// CurrentVersions returns the versions of this program.
func CurrentVersions() Versions {
	return Versions{World: sim.Version, Judges: judges.Version, Names: known.Newest(), Draw: draw.Version, Stories: story.Version}
}

// Untold leaves out the version of the stories, which only StrategyTold tells.
func (v Versions) Untold() Versions {
	v.Stories = NotUsed
	return v
}

// Versions returns the versions of this program on which the runs of the plan depend.
func (p Plan) Versions() Versions {
	if p.Strategy == StrategyTold {
		return CurrentVersions()
	}
	return CurrentVersions().Untold()
}

// Raised returns v with the versions of judges and names of now, if nothing that matters to one of
// these locks has changed since v. It returns v if there are no locks.
func (v Versions) Raised(now Versions, locks ...*subject.Subject) Versions {
	judged, named := 0, 0
	for _, l := range locks {
		judged, named = max(judged, judges.VersionOf(l.Traits)), max(named, known.VersionOf(l))
	}
	if 0 < judged && judged <= v.Judges && v.Judges < now.Judges {
		v.Judges = now.Judges
	}
	if 0 < named && named <= v.Names && v.Names < now.Names {
		v.Names = now.Names
	}
	return v
}

// Played leaves out the versions that do not matter to the verdicts of given scenarios.
func (v Versions) Played() Versions {
	v.Names, v.Draw, v.Stories = NotUsed, NotUsed, NotUsed
	return v
}

// Recorded leaves out the versions that have no influence on the records of runs.
func (v Versions) Recorded() Versions {
	v.Judges, v.Names, v.Stories = NotUsed, NotUsed, NotUsed
	return v
}

func (v *Versions) each() []struct {
	name string
	n    *int
} {
	return []struct {
		name string
		n    *int
	}{{"world", &v.World}, {"judges", &v.Judges}, {"names", &v.Names}, {"drawing", &v.Draw}, {"stories", &v.Stories}}
}

// String returns the versions as Comment and tables write them, such as "world 6, judges 1".
func (v Versions) String() string {
	var all []string
	for _, x := range v.each() {
		if *x.n != NotUsed {
			all = append(all, fmt.Sprintf("%s %d", x.name, *x.n))
		}
	}
	return strings.Join(all, ", ")
}

// Comment returns the line that tells readers of a Markdown file of results the versions. Programs
// read the versions from JSON.
func (v Versions) Comment() string { return fmt.Sprintf("<!-- versions: %s -->\n", v) }

// MarshalJSON writes the versions that are used, by their names in String.
func (v Versions) MarshalJSON() ([]byte, error) {
	used := map[string]int{}
	for _, x := range v.each() {
		if *x.n != NotUsed {
			used[x.name] = *x.n
		}
	}
	return json.Marshal(used)
}

// UnmarshalJSON reads what MarshalJSON wrote. It refuses the name of a version that does not
// exist, and a number below 0.
func (v *Versions) UnmarshalJSON(text []byte) error {
	var used map[string]int
	if err := json.Unmarshal(text, &used); err != nil {
		return err
	}
	*v = noVersions
	for _, x := range v.each() {
		if n, ok := used[x.name]; ok {
			*x.n = n
			delete(used, x.name)
		}
		if *x.n < NotUsed {
			return fmt.Errorf("%s %d is no version", x.name, *x.n)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(used)) {
		return fmt.Errorf("there is no version of %q", name)
	}
	return nil
}

// Missing names the versions that uses has and v lacks. It returns "" if v lacks none.
func (v Versions) Missing(uses Versions) string {
	var all []string
	wanted := uses.each()
	for i, x := range v.each() {
		if *x.n == NotUsed && *wanted[i].n != NotUsed {
			all = append(all, x.name)
		}
	}
	return strings.Join(all, ", ")
}

// ReadPlan returns the plan of the unfinished campaign in a folder, and the versions of the
// program that began it.
func ReadPlan(dir string) (Plan, Versions, error) {
	s, err := readPlan(dir)
	return s.Plan, s.versions(), err
}

// Difference says in which versions that both use v and now differ. It returns "" if a program of the
// versions now writes the same results.
func (v Versions) Difference(now Versions) string {
	var all []string
	program := now.each()
	for i, x := range v.each() {
		if *x.n != NotUsed && *program[i].n != NotUsed && *x.n != *program[i].n {
			all = append(all, fmt.Sprintf("%s %d, and the program has %d", x.name, *x.n, *program[i].n))
		}
	}
	return strings.Join(all, "; ")
}
