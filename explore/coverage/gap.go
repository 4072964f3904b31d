package coverage

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"lockstep/model"
	index "lockstep/model/trace"
)

// The moments between two requests of a call, or of a renewal. Such a gap lasts from the effect of a
// request until the next one leaves. Requests that leave before one of them has its effect count as one.
// Before the first request, the gap is the way of that request.
const (
	BeforeFirst Moment = "before request 1"
	AfterFirst  Moment = "after request 1"
	AfterSecond Moment = "after request 2"
	AfterThird  Moment = "after request 3"
	AfterFourth Moment = "after request 4"
)

// Gaps are the moments between two requests. A call may send more requests; those have no gaps.
var Gaps = []Moment{BeforeFirst, AfterFirst, AfterSecond, AfterThird, AfterFourth}

// AllMoments are all moments, those between two requests last.
var AllMoments = slices.Concat(Moments, Gaps)

// IsGap reports whether the moment lies between two requests.
func (m Moment) IsGap() bool { return slices.Contains(Gaps, m) }

// Renewal is the operation of a gap in a renewal. Other situations of a renewal have the operation that
// gained the hold.
const Renewal model.Action = "renewal"

// The actions of others between the effects of two requests. One of them is the state in the situation of a gap.
const (
	Nothing     State = "nothing"
	LeaseEnded  State = "the lease ended"
	GivenUp     State = "the lock was given up"
	AnotherCame State = "another owner came"
	AnotherWent State = "another owner came and went"
	Renewed     State = "a renewal ran"
	Published   State = "a message was published"
	Queued      State = "the queue changed"
)

// Between are all states of gaps.
var Between = []State{Nothing, LeaseEnded, GivenUp, AnotherCame, AnotherWent, Renewed, Published, Queued}

// Lasts reports whether a fault of the kind has a length, and so can keep two requests apart.
func (k Kind) Lasts() bool {
	return slices.Contains([]Kind{Delay, Hold, HalfOpen, Pause, Partition, Stall, Isolate}, k)
}

// May returns the states that a fault of the kind may bring about in an opening: its own, and in a gap also
// those that need time. The first one is its own.
func (o Opening) May(k Kind) []State {
	states := []State{o.State}
	if !o.Moment.IsGap() || !k.Lasts() {
		return states
	}
	if o.LeftNs > 0 {
		states = append(states, LeaseEnded)
	}
	if o.Rival != "" {
		states = append(states, AnotherCame, AnotherWent)
	}
	slices.Sort(states[1:])
	return slices.Compact(states)
}

// Passage is a gap that runs came through, with the names of the requests on both sides.
type Passage struct {
	Op     model.Action `json:"op"`
	Moment Moment       `json:"moment"`
	After  string       `json:"after,omitempty"`
	Before string       `json:"before"`
	N      int          `json:"n"` // how often
}

// Passages returns the gaps of a run, in order. The openings are those of the run.
func Passages(openings []Opening) (all []Passage) {
	seen := map[int]bool{}
	for _, o := range openings {
		if o.Nth == 0 || !o.Moment.IsGap() || seen[o.request] {
			continue
		}
		seen[o.request] = true
		all = append(all, Passage{o.Op, o.Moment, o.After, o.before, 1})
	}
	return Merge(all)
}

// Merge adds up passages of the same gap and the same requests, and puts them in order.
func Merge(passages []Passage) (merged []Passage) {
	slices.SortFunc(passages, func(a, b Passage) int {
		return cmp.Or(cmp.Compare(slices.Index(gapOperations, a.Op), slices.Index(gapOperations, b.Op)), cmp.Compare(slices.Index(Gaps, a.Moment), slices.Index(Gaps, b.Moment)),
			cmp.Compare(a.After, b.After), cmp.Compare(a.Before, b.Before))
	})
	for _, p := range passages {
		if n := len(merged); n > 0 && merged[n-1].Op == p.Op && merged[n-1].Moment == p.Moment && merged[n-1].After == p.After && merged[n-1].Before == p.Before {
			merged[n-1].N += p.N
			continue
		}
		merged = append(merged, p)
	}
	return merged
}

// sequence is a call or a renewal as the requests that it sent.
type sequence struct {
	op      model.Action
	process string
	thread  string // "" in a renewal
	lock    string
	sent    []*index.Command
	own     func(*index.Change) bool // a request of it made the change
	ofOwner func(owner string) bool  // the owner is the one for whom it speaks
}

// callGaps adds the gaps of a call.
func (w *walk) callGaps(call *index.Call) {
	w.gaps(sequence{
		op: call.Action, process: call.Process, thread: call.Caller, lock: call.Lock, sent: call.Sent,
		own:     func(c *index.Change) bool { return c.Call() == call },
		ofOwner: func(owner string) bool { return owner == call.Caller },
	})
}

// renewalGaps adds the gaps of the renewals. A renewal ends before a request of the same name as one that
// it has sent.
func (w *walk) renewalGaps() {
	type key struct{ process, lock string }
	open := map[key][]*index.Command{}
	var order []key
	end := func(k key) {
		sent := open[k]
		w.gaps(sequence{
			op: Renewal, process: k.process, lock: k.lock, sent: sent,
			own:     func(c *index.Change) bool { return slices.Contains(sent, c.By) },
			ofOwner: func(owner string) bool { return model.ProcessOf(owner) == k.process },
		})
		open[k] = nil
	}
	for _, m := range w.run.Commands {
		if m.Script != model.RoleRenew || m.Call != nil || len(m.Locks) == 0 {
			continue
		}
		k := key{m.Process, m.Locks[0]}
		sent, known := open[k]
		if !known {
			order = append(order, k)
		}
		if !leavesForOther(sent, m) && slices.ContainsFunc(sent, func(other *index.Command) bool { return nameOf(other) == nameOf(m) }) {
			end(k)
		}
		open[k] = append(open[k], m)
	}
	for _, k := range order {
		end(k)
	}
}

// leavesForOther reports whether a command leaves for another server while the first of these is on its way.
func leavesForOther(sent []*index.Command, m *index.Command) bool {
	return len(sent) > 0 && m.Conn != sent[0].Conn && arrival(sent[0]) < index.Never && m.AtNs < arrival(sent[0])
}

// nameOf returns the name of a request for people.
func nameOf(m *index.Command) string {
	if m.Command == model.SegmentCommand && len(m.Asked) > 0 {
		return m.Asked[0]
	}
	return m.Command
}

// gaps adds the gaps of a call or of a renewal.
func (w *walk) gaps(s sequence) {
	k := 0
	ran := int64(-1) // when the last request had its effect
	var last *index.Command
	for i, m := range s.sent {
		switch {
		case i == 0:
			w.gap(s, BeforeFirst, m.AtNs, arrival(m), nil, m)
		case ran >= 0 && m.AtNs > ran:
			if k++; k == len(Gaps) {
				return
			}
			w.gap(s, Gaps[k], ran, m.AtNs, last, m)
		}
		if m.Executed != nil && m.Executed.AtNs > ran {
			ran, last = m.Executed.AtNs, m
		}
	}
	if gone := w.run.GoneNs(s.process); last != nil && k+1 < len(Gaps) && s.thread != "" && gone < index.Never && gone > ran && s.sent[0].Call.Return == nil {
		w.gap(s, Gaps[k+1], ran, gone, last, nil) // the process ended in it
	}
}

// arrival returns when a request arrived or was lost, or index.Never.
func arrival(m *index.Command) int64 {
	switch {
	case m.Executed != nil:
		return m.Executed.AtNs
	case m.Lost != nil:
		return m.Lost.AtNs
	}
	return index.Never
}

// gap adds an opening for each state of a gap between two requests. There is no next one if the process
// ended before.
func (w *walk) gap(s sequence, m Moment, from, to int64, last, next *index.Command) {
	until := to
	if next != nil && next.Executed != nil { // else nothing follows the actions of others
		until = max(to, next.Executed.AtNs)
	}
	to, until = min(to, w.end()), min(until, w.end())
	if from >= to {
		return
	}
	o := Opening{Cell: Cell{Op: s.op, Moment: m}, Process: s.process, Thread: s.thread, Lock: s.lock, FromNs: from, ToNs: to, Rival: w.rival(s, from)}
	if last != nil {
		o.After = nameOf(last)
	}
	if next != nil {
		o.before, o.request = nameOf(next), next.Msg
	}
	for _, o.State = range w.between(s, from, until) {
		w.open(o, next)
	}
}

// rival returns a thread that wants the lock of a call or a renewal after an instant; "": there is none.
func (w *walk) rival(s sequence, fromNs int64) string {
	calls := w.callsOn(s.lock)
	for _, thread := range calls.threads {
		if !s.ofOwner(thread) && calls.wish(thread) > fromNs {
			return thread
		}
	}
	return ""
}

// wish returns the end of the last call of a thread that takes the lock; 0: there is none.
func (l *lockCalls) wish(thread string) int64 {
	for _, c := range slices.Backward(l.of[thread]) {
		if c.Action.Acquires() {
			return c.ReturnedNs()
		}
	}
	return 0
}

// between returns the actions of others between two instants.
func (w *walk) between(s sequence, fromNs, toNs int64) (states []State) {
	note := func(state State, is bool) {
		if is && !slices.Contains(states, state) {
			states = append(states, state)
		}
	}
	came := ""
	for _, c := range w.run.ChangesWithin(s.lock, fromNs, toNs) {
		if s.own(c) {
			continue
		}
		if c.Ended() {
			note(LeaseEnded, c.By == nil && c.Fault == 0)
			note(GivenUp, c.By != nil)
			note(AnotherWent, came != "" && c.Before.Owner == came)
		}
		if c.Started() && !s.ofOwner(c.After.Owner) {
			came = c.After.Owner
			note(AnotherCame, true)
		}
		note(Renewed, c.Before.Held() && !c.Ended() && c.After.ExpiresMs > c.Before.ExpiresMs)
		note(Queued, !slices.Equal(c.Before.Queue, c.After.Queue))
	}
	n, _ := slices.BinarySearch(w.published, fromNs+1)
	note(Published, n < len(w.published) && w.published[n] < toNs)
	if len(states) == 0 {
		return []State{Nothing}
	}
	return states
}

// Short is a passage that is written as a short list, since each run of a campaign has some.
type Short Passage

// MarshalJSON implements json.Marshaler.
func (p Short) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{Cell{Op: p.Op, Moment: p.Moment, State: Nothing}.Code(), p.After, p.Before, p.N})
}

// UnmarshalJSON implements json.Unmarshaler. It refuses a list that MarshalJSON does not write.
func (p *Short) UnmarshalJSON(text []byte) error {
	var code int
	list := []any{&code, &p.After, &p.Before, &p.N}
	if err := json.Unmarshal(text, &list); err != nil {
		return err
	}
	c, ok := CellOf(code)
	if !ok || !c.Moment.IsGap() || len(list) != 4 {
		return fmt.Errorf("%s is no gap between two requests", text)
	}
	p.Op, p.Moment = c.Op, c.Moment
	return nil
}
