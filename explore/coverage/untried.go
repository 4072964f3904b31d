package coverage

import (
	"fmt"
	"slices"
	"strings"

	"lockstep/internal/counted"
	"lockstep/model"
)

// noun returns the kind in words that follow "no".
func (k Kind) noun() string {
	switch k {
	case Drop:
		return "loss of a message"
	case Hold:
		return "hold of a message"
	case HalfOpen:
		return "half-open connection"
	case WallClock:
		return "step of a clock"
	case ServerClock:
		return "step of a server's clock"
	case FlushScripts:
		return "flush of scripts"
	case Isolate:
		return "isolation"
	case Delete:
		return "deletion of a key"
	case Expire:
		return "end of a key"
	}
	return string(k)
}

// operationNouns are the operations in words, those between whose requests most goes wrong first.
var operationNouns = []struct {
	op   model.Action
	noun string
}{
	{Renewal, "a renewal"}, {model.ActUnlock, "an unlock"}, {model.ActExtend, "an extension"}, {model.ActLock, "an acquire"},
	{model.ActTryLockTimed, "a timed try"}, {model.ActTryLock, "a single try"}, {model.ActForceUnlock, "a forced unlock"},
}

func nounOf(op model.Action) string {
	for _, o := range operationNouns {
		if o.op == op {
			return o.noun
		}
	}
	return string(op)
}

// A place is a gap of an operation, or several with the same requests on their sides.
type place struct {
	where   string
	op      model.Action
	moments []Moment
	n       int // how often runs came through
}

// places returns where runs could have met faults between two requests, those where most goes wrong first.
func (t Table) places() (all []place) {
	for _, o := range operationNouns {
		for _, m := range append(slices.Clone(Gaps[1:]), Gaps[0]) {
			where, n := t.between(o.op, m)
			if n == 0 {
				continue
			}
			i := slices.IndexFunc(all, func(p place) bool { return p.where == where })
			if i < 0 {
				i = len(all)
				all = append(all, place{where: where, op: o.op})
			}
			all[i].moments, all[i].n = append(all[i].moments, m), all[i].n+n
		}
	}
	return all
}

// namedKinds is the number of kinds of faults that a sentence names.
const namedKinds = 4

// untriedGaps says in sentences which places between two requests a kind of fault never met, and then which
// actions of others never came in a place that it met.
func (t Table) untriedGaps() (told []string) {
	var came []string
	for _, p := range t.places() {
		var never []string
		for _, r := range t.Rows {
			met, could := false, false
			var missed, had []State
			for _, s := range t.Grid {
				if s.Op != p.op || !slices.Contains(p.moments, s.Moment) {
					continue
				}
				switch {
				case slices.Contains(s.Met, r.Fault):
					met, had = true, append(had, s.State)
				case slices.Contains(s.Never, r.Fault):
					could, missed = true, append(missed, s.State)
				}
			}
			var states []string
			for _, s := range Between[1:] {
				if slices.Contains(missed, s) && !slices.Contains(had, s) {
					states = append(states, string(s))
				}
			}
			switch {
			case could && !met:
				never = append(never, r.Fault.noun())
			case met && len(states) > 0:
				came = append(came, fmt.Sprintf("no %s fell %s while %s", r.Fault.noun(), p.where, or(states)))
			}
		}
		if more := len(never) - namedKinds; more > 1 {
			never = append(never[:namedKinds], fmt.Sprintf("fault of %d other kinds", more))
		}
		if len(never) > 0 {
			told = append(told, fmt.Sprintf("no %s fell %s; %s came", or(never), p.where, counted.Of(p.n, "such moment")))
		}
	}
	return append(told, came...)
}

// untriedElsewhere says in sentences which other cells faults never met, of one kind of fault after the other.
func (t Table) untriedElsewhere() (told []string) {
	left := map[Kind][]string{}
	most := 0
	for _, r := range t.Rows {
		for _, s := range t.Grid {
			if slices.Contains(s.Never, r.Fault) && !s.Moment.IsGap() {
				left[r.Fault] = append(left[r.Fault], fmt.Sprintf("no %s met %s %s, with the lock %s", r.Fault.noun(), nounOf(s.Op), s.Moment, s.State))
			}
		}
		most = max(most, len(left[r.Fault]))
	}
	for i := range most {
		for _, r := range t.Rows {
			if cells := left[r.Fault]; i < len(cells) {
				told = append(told, cells[i])
			}
		}
	}
	return told
}

// between returns where a gap is, by the names of the requests that most often were on its sides, and how
// often runs came through it.
func (t Table) between(op model.Action, m Moment) (where string, n int) {
	var most Passage
	kinds := 0
	for _, p := range t.Gaps {
		if p.Op != op || p.Moment != m {
			continue
		}
		n += p.N
		kinds++
		if p.N > most.N {
			most = p
		}
	}
	k := slices.Index(Gaps, m)
	switch {
	case k == 0 && kinds == 1:
		return fmt.Sprintf("on %s, the first request of %s", most.Before, nounOf(op)), n
	case k == 0:
		return fmt.Sprintf("on the first request of %s, such as %s", nounOf(op), most.Before), n
	case kinds == 1 && most.After == most.Before:
		return fmt.Sprintf("between one %s and the next of %s", most.After, nounOf(op)), n
	case kinds == 1:
		return fmt.Sprintf("between %s and %s of %s", most.After, most.Before, nounOf(op)), n
	}
	return fmt.Sprintf("between requests %d and %d of %s, such as %s and %s", k, k+1, nounOf(op), most.After, most.Before), n
}

// or joins words as alternatives.
func or(words []string) string {
	if n := len(words); n > 1 {
		return strings.Join(words[:n-1], ", ") + " or " + words[n-1]
	}
	return strings.Join(words, "")
}

// NotTried names some cells that the faults never met, those between two requests first, and says how many
// more sentences there are; "": there is none.
func (t Table) NotTried(most int) string {
	told := append(slices.Clone(t.Untried), t.untriedElsewhere()...)
	some := told[:min(most, len(told))]
	if len(some) == 0 {
		return ""
	}
	text := "not tried: " + strings.Join(some, "; ")
	if more := len(told) - len(some); more > 0 {
		text += fmt.Sprintf("; and %d more", more)
	}
	return text
}
