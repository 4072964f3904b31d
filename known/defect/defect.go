package defect

import (
	"slices"

	"lockstep/scenarios/subject"
)

// Of returns a function that reports whether a lock belongs to a library, with or without a planted
// bug, and meets all conditions. The conditions are not called for locks of other libraries.
func Of(library string, conditions ...func(*subject.Subject) bool) func(*subject.Subject) bool {
	return func(l *subject.Subject) bool {
		return l.Library == library && !slices.ContainsFunc(conditions, func(c func(*subject.Subject) bool) bool { return !c(l) })
	}
}

// A Defect is something that a lock is known to do wrong.
type Defect struct {
	// ID names the defect in JSON, folder names, tests and pages. It never changes.
	ID string
	// Title says in one sentence what is wrong. It is for people, and may be reworded.
	Title string
	// Story says what happens and who is to blame.
	Story string
	// Row is the scenario of the track record that shows the defect; "" for none.
	Row string
	// Issues are the numbers of the defect in the library's own tracker.
	Issues []int
	// Judges are the judges that can see the defect.
	Judges []string
	// Applies reports whether a lock has the defect.
	Applies func(*subject.Subject) bool
	// Cause returns the cause of a case's finding, or nil if the finding is not this
	// defect.
	Cause func(*Case) *Cause
	// Since is the version of the list of defects at which Judges, Applies or Cause last changed;
	// 0: before the list kept versions per defect.
	Since int
}

// Explains returns the cause of a case's finding if the finding is this defect. Otherwise it
// returns nil.
func (d *Defect) Explains(c *Case) *Cause {
	if !d.Applies(c.Verdict.Lock) || !slices.Contains(d.Judges, c.Finding.Judge) {
		return nil
	}
	return d.Cause(c)
}
