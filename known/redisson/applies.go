package redisson

import (
	"slices"
	"strconv"
	"strings"

	"lockstep/known/defect"
	"lockstep/model"
	"lockstep/scenarios/subject"
)

// Which releases have a defect.

// families are the names of Redisson's locks without their releases.
var families = []string{"redisson", "redisson-fair", "redisson-fenced", "redisson-nonreentrant", "redisson-nonreentrant-fair"}

// Owns reports whether a lock is one of Redisson's, with a planted bug or without.
func Owns(l *subject.Subject) bool { return slices.Contains(families, l.Unplanted().Family()) }

// of returns whether a lock is one of Redisson's for which all conditions hold.
func of(conditions ...func(*subject.Subject) bool) func(*subject.Subject) bool {
	return func(l *subject.Subject) bool {
		return Owns(l) && !slices.ContainsFunc(conditions, func(c func(*subject.Subject) bool) bool { return !c(l) })
	}
}

func plain(l *subject.Subject) bool { return !l.Fair }
func fair(l *subject.Subject) bool  { return l.Fair }

func sendsAgain(l *subject.Subject) bool { return l.SendsAgain }
func replicated(l *subject.Subject) bool { return l.Replicated }

func since(version string) func(*subject.Subject) bool {
	return func(l *subject.Subject) bool { return slices.Compare(numbers(l.Release), numbers(version)) >= 0 }
}

func upTo(version string) func(*subject.Subject) bool {
	return func(l *subject.Subject) bool { return slices.Compare(numbers(l.Release), numbers(version)) <= 0 }
}

func numbers(version string) (out []int) {
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			panic("not a version: " + version)
		}
		out = append(out, n)
	}
	return out
}

// Which findings may be a defect.

type cause = func(*defect.Case) *defect.Cause

// only limits a cause to the findings of which the condition holds.
func only(condition func(*defect.Case) bool, c cause) cause {
	return func(x *defect.Case) *defect.Cause {
		if !condition(x) {
			return nil
		}
		return c(x)
	}
}

// unless limits a cause to the findings of which the condition does not hold.
func unless(condition func(*defect.Case) bool, c cause) cause {
	return only(func(x *defect.Case) bool { return !condition(x) }, c)
}

func unrenewed(c *defect.Case) bool   { return c.Breaks(model.FormUnrenewed) }
func lateRenewal(c *defect.Case) bool { return c.Breaks(model.FormLateRenewal) }
func longLease(c *defect.Case) bool   { return c.Breaks(model.FormLongLease) }

// renewedTooLong holds of a renewal after the end of a hold, or beyond its lease.
func renewedTooLong(c *defect.Case) bool { return lateRenewal(c) || longLease(c) }
