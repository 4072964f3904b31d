package survey

import (
	"fmt"
	"slices"
	"time"

	"lockstep/model"
	"lockstep/model/trace"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// latency is the time that a message takes one way while costs are measured.
const latency = time.Millisecond

// Cost has the requests and times of a lock on a network of 1 ms one way, without a fault.
type Cost struct {
	// Acquire and Unlock are the calls of one client that has its connections. No other
	// client asks for the lock.
	Acquire Exchange `json:"acquire"`
	Unlock  Exchange `json:"unlock"`
	// A client unlocks, and another one that waits gets the lock. HandOverMs is the time
	// from the call of the unlock to the return of the acquire, and HandOverMessages counts
	// the requests that are sent, and the replies and pushes that arrive, in that time. Both are the
	// medians of unlocks at different times, since a waiter that asks again and again may have asked
	// just before the unlock, or long before.
	HandOverMs       float64 `json:"hand_over_ms"`
	HandOverMessages int     `json:"hand_over_messages"`
	// TenWaiters is the number of requests per second of ten clients that wait behind a
	// holder, in the third and fourth second of their wait.
	TenWaiters float64 `json:"ten_waiters_requests_per_s"`
}

// Exchange is the cost of one call: the requests that it sends, and the time until it returns.
type Exchange struct {
	Requests int     `json:"requests"`
	Ms       float64 `json:"ms"`
}

// RoundTrips returns how often the call waits for the network, by the time that it takes.
func (e Exchange) RoundTrips() float64 { return e.Ms / float64(2*latency/time.Millisecond) }

// The scenarios in which costs are measured. A lease of eight seconds, as some locks have,
// outlasts each hold.
const (
	alone = `
processes: {a: {}}
steps:
  a/1: [{lock: x}, {unlock: x}, {at: 1s}, {lock: x}, {sleep: 100ms}, {unlock: x}]
`
	handOver = `
processes: {a: {}, b: {}}
steps:
  a/1: [{lock: x}, {at: %dms}, {unlock: x}]
  b/1: [{at: 1s}, {lock: x}, {sleep: 1s}, {unlock: x}]
`
	tenWaiters = `
processes: {a: {}, b: {}, c: {}, d: {}, e: {}, f: {}, g: {}, h: {}, i: {}, j: {}, k: {}}
steps:
  a/1: [{lock: x}, {at: 5s}, {unlock: x}]
  b/1: [{at: 1000ms}, {lock: x}, {unlock: x}]
  c/1: [{at: 1010ms}, {lock: x}, {unlock: x}]
  d/1: [{at: 1020ms}, {lock: x}, {unlock: x}]
  e/1: [{at: 1030ms}, {lock: x}, {unlock: x}]
  f/1: [{at: 1040ms}, {lock: x}, {unlock: x}]
  g/1: [{at: 1050ms}, {lock: x}, {unlock: x}]
  h/1: [{at: 1060ms}, {lock: x}, {unlock: x}]
  i/1: [{at: 1070ms}, {lock: x}, {unlock: x}]
  j/1: [{at: 1080ms}, {lock: x}, {unlock: x}]
  k/1: [{at: 1090ms}, {lock: x}, {unlock: x}]
`
)

// The unlocks of hand-overs: the first one, the time between two of them, and their number. No
// surveyed lock has pauses between two tries that are longer than all of this time.
const (
	handOverFirstMs = 3000
	handOverStepMs  = 11
	handOvers       = 41
)

// Measure plays the scenarios on a lock and returns its cost.
func Measure(h *sim.Host, l *subject.Subject) (c Cost, err error) {
	t, err := played(h, l, alone, 1)
	if err != nil {
		return c, err
	}
	if len(t.Calls) != 4 {
		return c, fmt.Errorf("%s: %d calls where costs are measured; want 4", l.Name, len(t.Calls))
	}
	c.Acquire, c.Unlock = exchange(t.Calls[2]), exchange(t.Calls[3])

	var lengths []int64
	var sent []int
	for i := range handOvers {
		if t, err = played(h, l, fmt.Sprintf(handOver, handOverFirstMs+i*handOverStepMs), uint64(i+1)); err != nil {
			return c, err
		}
		unlock, acquire := first(t, "a/1", model.ActUnlock), first(t, "b/1", model.ActLock)
		if unlock == nil || acquire == nil || acquire.Outcome != model.Granted {
			return c, fmt.Errorf("%s: nobody is handed the lock where costs are measured", l.Name)
		}
		length, messages := int64(0), 0
		if acquire.ReturnedNs() > unlock.AtNs { // otherwise the lock let both in
			length, messages = acquire.ReturnedNs()-unlock.AtNs, messagesIn(t, unlock.AtNs, acquire.ReturnedNs())
		}
		lengths, sent = append(lengths, length), append(sent, messages)
	}
	slices.Sort(lengths)
	slices.Sort(sent)
	c.HandOverMs, c.HandOverMessages = ms(lengths[handOvers/2]), sent[handOvers/2]

	if t, err = played(h, l, tenWaiters, 1); err != nil {
		return c, err
	}
	const from, to = int64(3 * time.Second), int64(5 * time.Second)
	for _, m := range t.Commands {
		if m.Process != "a" && from <= m.AtNs && m.AtNs < to {
			c.TenWaiters++
		}
	}
	c.TenWaiters /= time.Duration(to - from).Seconds()
	return c, nil
}

// played plays a scenario on a network of one latency.
func played(h *sim.Host, l *subject.Subject, steps string, seed uint64) (*trace.Run, error) {
	text := fmt.Sprintf("lockstep: 1\nname: cost\nlocks: [%s]\nnetwork: {latency: %v}\n%s", l.Name, latency, steps)
	sc, err := scenarios.Parse("cost.yaml", []byte(text), scenarios.AnyLock)
	if err != nil {
		return nil, err
	}
	return trace.New(play.Play(h, sc, l, sim.NewSeeded(seed)).Record), nil
}

// first returns the first call of a thread with that action; or nil if there is none.
func first(t *trace.Run, thread string, action model.Action) *trace.Call {
	for _, o := range t.Calls {
		if o.Caller == thread && o.Action == action {
			return o
		}
	}
	return nil
}

func exchange(o *trace.Call) Exchange {
	return Exchange{Requests: len(o.Sent), Ms: ms(o.ReturnedNs() - o.AtNs)}
}

// messagesIn counts the requests that are sent, and the replies and pushes that arrive,
// between two instants.
func messagesIn(t *trace.Run, fromNs, toNs int64) (n int) {
	for i := range t.Record.Events {
		e := &t.Record.Events[i]
		if (e.Kind == model.KindSend || e.Kind == model.KindDeliver) && fromNs <= e.AtNs && e.AtNs <= toNs {
			n++
		}
	}
	return n
}

// ms returns a time in milliseconds, to a tenth.
func ms(ns int64) float64 {
	return float64(time.Duration(ns).Round(100*time.Microsecond).Microseconds()) / 1000
}
