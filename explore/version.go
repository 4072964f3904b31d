package explore

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"lockstep/explore/draw"
	"lockstep/known"
	"lockstep/linearizability/judges"
	"lockstep/sim"
)

// Versions says which program wrote results. A number is 0 where nobody kept
// it, and NotUsed where the results do not depend on it.
type Versions struct{ World, Judges, Names, Draw int }

// NotUsed is the version of what had no part in results.
const NotUsed = -1

// CurrentVersions are those of this program.
func CurrentVersions() Versions {
	return Versions{World: sim.Version, Judges: judges.Version, Names: known.Version, Draw: draw.Version}
}

// Played leaves out what has no part in the verdicts of given scenarios.
func (v Versions) Played() Versions {
	v.Names, v.Draw = NotUsed, NotUsed
	return v
}

func (v *Versions) each() []struct {
	name string
	n    *int
} {
	return []struct {
		name string
		n    *int
	}{{"world", &v.World}, {"judges", &v.Judges}, {"names", &v.Names}, {"drawing", &v.Draw}}
}

// String is how Comment and tables say versions: world 6, judges 1.
func (v Versions) String() string {
	var all []string
	for _, x := range v.each() {
		if *x.n != NotUsed {
			all = append(all, fmt.Sprintf("%s %d", x.name, *x.n))
		}
	}
	return strings.Join(all, ", ")
}

// Comment is the line of a Markdown file of results that says the versions.
func (v Versions) Comment() string { return fmt.Sprintf("<!-- versions: %s -->\n", v) }

var versionsComment = regexp.MustCompile(`(?m)^<!-- versions: (.*) -->$`)

// ReadVersions finds the line that Comment wrote; ok is false where there is none.
func ReadVersions(text string) (v Versions, ok bool, err error) {
	m := versionsComment.FindStringSubmatch(text)
	if m == nil {
		return v, false, nil
	}
	v = Versions{NotUsed, NotUsed, NotUsed, NotUsed}
	for _, word := range strings.Split(m[1], ", ") {
		name, number, _ := strings.Cut(word, " ")
		n, err := strconv.Atoi(number)
		named := false
		for _, x := range v.each() {
			if x.name == name {
				*x.n, named = n, true
			}
		}
		if err != nil || n < 0 || !named {
			return v, false, fmt.Errorf("%q is no version; one is, for example, world 6", word)
		}
	}
	return v, true, nil
}

// Missing names the versions that uses has and v has not; "" for none.
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

// PlayedBy says which program began the campaign that a folder holds.
func PlayedBy(dir string) (Versions, error) {
	s, err := readPlan(dir)
	return s.versions(), err
}

// Difference says where results of versions v are not those of a program of
// versions now; "" for nowhere.
func (v Versions) Difference(now Versions) string {
	var all []string
	program := now.each()
	for i, x := range v.each() {
		if *x.n != NotUsed && *x.n != *program[i].n {
			all = append(all, fmt.Sprintf("%s %d, and the program has %d", x.name, *x.n, *program[i].n))
		}
	}
	return strings.Join(all, "; ")
}
