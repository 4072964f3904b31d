//go:build linux

package live

import (
	"slices"
	"time"

	"lockstep/linearizability/judges"
	"lockstep/model/trace"
	"lockstep/scenarios/play"
)

// uncertainty is how late a process may have acted, plus the doubt about an instant of the record.
func (s *session) uncertainty() time.Duration {
	return max(time.Duration(s.gapNs), BeatGap+BeatEvery) + s.doubt() // clients do not report a shorter gap
}

// doubt is the length of the interval in which an instant may lie that only the server tells.
func (s *session) doubt() time.Duration { return time.Duration(2 * s.wallError()) }

// wallError is how far the instants that the server tells may be from the monotonic clock: the
// server counts in whole milliseconds, and reads its clock a little before it runs a command.
//
// Observed servers are asked from time to time. A change may have come at any instant between two
// looks, so half of the longest time between two is added.
func (s *session) wallError() int64 {
	if s.bytes {
		return int64(time.Millisecond) + s.width()/2
	}
	return int64(time.Millisecond) + s.skewNs
}

// judge judges the record in three forms. They have the instants that nobody observed where
// these are most likely, as early as possible, and as late as possible. A finding counts if
// all forms have it. Any other finding is undecided, so that nobody takes the run for one in
// which the lock kept its promise.
func (s *session) judge() judges.Judgement {
	rules := play.Rules(s.sc)
	j := judges.Judge(trace.New(s.assemble(0)), rules)
	for _, shift := range []int64{-s.wallError(), s.wallError()} {
		other := judges.Judge(trace.New(s.assemble(shift)), rules)
		j = s.agree(j, other)
	}
	s.undecideMissed(&j)
	return j
}

// undecideMissed makes the findings about a lock undecided if the record lacks a state of it: a
// command gave a key of the lock an end, and the key ended before the parent read it. So the record
// says that the command removed it.
func (s *session) undecideMissed(j *judges.Judgement) {
	for _, lock := range play.LockNames(s.sc) {
		missed := slices.ContainsFunc(s.looks, func(l look) bool {
			return slices.ContainsFunc(l.missed, func(key string) bool { return s.bare(key) == lock })
		})
		for i := range j.Findings {
			if missed && j.Findings[i].Lock == lock {
				undecide(&j.Findings[i], judges.Doubt{Uncertainty: s.doubt()})
			}
		}
	}
}

// agree keeps the findings that both judgements have, and makes the others undecided.
func (s *session) agree(a, b judges.Judgement) judges.Judgement {
	doubt := judges.Doubt{Uncertainty: s.doubt()}
	out := judges.Judgement{Waits: a.Waits}
	for _, f := range a.Findings {
		if !has(b, f) {
			undecide(&f, doubt)
		}
		out.Findings = append(out.Findings, f)
	}
	for _, f := range b.Findings {
		if !has(a, f) {
			undecide(&f, doubt)
			out.Findings = append(out.Findings, f)
		}
	}
	for _, r := range a.Reached {
		if slices.Contains(b.Reached, r) {
			out.Reached = append(out.Reached, r)
		}
	}
	return out
}

// has reports whether a judgement has a finding of the same judge about the same lock and
// thread, decided or not.
func has(j judges.Judgement, f judges.Finding) bool {
	return slices.ContainsFunc(j.Findings, func(x judges.Finding) bool {
		return x.Judge == f.Judge && x.Lock == f.Lock && x.Thread == f.Thread
	})
}

// undecide makes a finding undecided.
func undecide(f *judges.Finding, doubt judges.Doubt) {
	if f.Verdict == judges.Broken {
		f.Verdict, f.Class, f.Doubt = judges.Undecided, "", doubt
	}
}
