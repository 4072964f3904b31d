package redisson

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"lockstep/known/defect"
	"lockstep/model"
	"lockstep/scenarios/subject"
)

// Which releases have a defect.

// locks returns a function that reports whether a lock is one of Redisson's and meets all
// conditions.
func locks(conditions ...func(*subject.Subject) bool) func(*subject.Subject) bool {
	return defect.Of("redisson", append([]func(*subject.Subject) bool{whole}, conditions...)...)
}

// whole reports whether a lock has what the causes read: a numbered release and the channels of its
// waiters.
func whole(l *subject.Subject) bool {
	_, err := numbers(l.Release)
	return err == nil && l.Channel != nil
}

func plain(l *subject.Subject) bool { return !l.Fair }
func fair(l *subject.Subject) bool  { return l.Fair }

func sendsAgain(l *subject.Subject) bool { return l.SendsAgain }
func replicated(l *subject.Subject) bool { return l.Replicated }

func since(version string) func(*subject.Subject) bool {
	return func(l *subject.Subject) bool { return compare(l.Release, version) >= 0 }
}

func upTo(version string) func(*subject.Subject) bool {
	return func(l *subject.Subject) bool { return compare(l.Release, version) <= 0 }
}

// compare compares two releases. It panics if one of them has no number.
func compare(release, version string) int {
	a, err := numbers(release)
	b, err2 := numbers(version)
	if err := errors.Join(err, err2); err != nil {
		panic("redisson: " + err.Error())
	}
	return slices.Compare(a, b)
}

// numbers returns the numbers of a version.
func numbers(version string) (out []int, err error) {
	for part := range strings.SplitSeq(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return nil, fmt.Errorf("%q is not a version", version)
		}
		out = append(out, n)
	}
	return out, nil
}

// Which findings may be a defect.

type cause = func(*defect.Case) *defect.Cause

// only limits a cause to the findings for which the condition holds.
func only(condition func(*defect.Case) bool, c cause) cause {
	return func(x *defect.Case) *defect.Cause {
		if !condition(x) {
			return nil
		}
		return c(x)
	}
}

// unless limits a cause to the findings for which the condition does not hold.
func unless(condition func(*defect.Case) bool, c cause) cause {
	return only(func(x *defect.Case) bool { return !condition(x) }, c)
}

func unrenewed(c *defect.Case) bool   { return c.Breaks(model.FormUnrenewed) }
func lateRenewal(c *defect.Case) bool { return c.Breaks(model.FormLateRenewal) }
func longLease(c *defect.Case) bool   { return c.Breaks(model.FormLongLease) }

// renewedTooLong reports whether the finding is about a renewal after the end of a hold, or beyond
// its lease.
func renewedTooLong(c *defect.Case) bool { return lateRenewal(c) || longLease(c) }
