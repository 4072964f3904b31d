// Package known lists the known defects of the locks that Lockstep comes with, and names
// the findings that they cause.
//
// Package known/defect has the types that describe a defect. Each library has its list
// in a folder of its own.
package known

import (
	"slices"

	"lockstep/known/bare"
	"lockstep/known/defect"
	"lockstep/known/redisson"
)

// Cause is the part of a record that caused a finding.
type Cause = defect.Cause

// Defect is something that a lock is known to do wrong.
type Defect = defect.Defect

// All are the known defects of all libraries. Where a record has the causes of several, the
// first of them names a finding.
var All = slices.Concat(bare.Defects, redisson.Defects)

// own is the number of the defects of Lockstep's own locks. They come first in All.
var own = len(All)

// Registered returns the defects that Register added.
func Registered() []Defect { return All[own:] }

// Register adds the known defects of locks that are not Lockstep's own, after the defects that are
// already registered. Campaigns, findings and the survey then show their names. The Since of a
// defect may be higher than Version. Call it while the program starts. It panics if two defects have
// the same ID.
func Register(defects ...Defect) {
	for _, d := range defects {
		if Find(d.ID) != nil {
			panic("there is a known defect " + d.ID + " already")
		}
		All = append(All, d)
	}
}

// Find returns the defect with that ID; nil: none.
func Find(id string) *Defect {
	for i := range All {
		if All[i].ID == id {
			return &All[i]
		}
	}
	return nil
}

// Title returns the title of the defect with that ID; "" when there is none.
func Title(id string) string {
	if d := Find(id); d != nil {
		return d.Title
	}
	return ""
}

// Row returns the scenario of the track record that shows the defect with that ID; "" for
// none.
func Row(id string) string {
	if d := Find(id); d != nil {
		return d.Row
	}
	return ""
}

// OutOfReach gives the reason why no campaign names a row of the track record.
var OutOfReach = map[string]string{
	"fair-dead-waiters-add-up": "it is a limit and no defect: liveness with a crash, below",
}
