package scenarios

import (
	"maps"
	"math"
	"slices"
	"time"

	"lockstep/model"
)

// This file finds the fields of a scenario that may be left out, and the numbers that may be others.

// options are functions that each take a field away.
type options []func()

// option adds the field if it has not the value that it has without being written.
func option[T comparable](o *options, field *T, without T) {
	if *field != without {
		*o = append(*o, func() { *field = without })
	}
}

// listOption adds a list that is not empty.
func listOption[T any](o *options, field *[]T) {
	if len(*field) > 0 {
		*o = append(*o, func() { *field = nil })
	}
}

// Options returns functions that each leave out a field of a step, fault, process or resource, a
// process of a partition, a resource that no step uses, or a field of the file. Several of them are
// called from the last to the first, and then Tidy.
func (sc *Scenario) Options() []func() {
	var o options
	option(&o, &sc.Server, Server{})
	option(&o, &sc.Watchdog, defaultWatchdog)
	if sc.Server.Replicas > 0 {
		option(&o, &sc.Server.Lag, sc.Latency)
	}
	o.resources(sc)
	for i := range sc.Processes {
		p := &sc.Processes[i]
		option(&o, &p.PerCall, false)
		option(&o, &p.WallOffset, 0)
		option(&o, &p.WallDriftPPM, 0)
		option(&o, &p.ClientOptions.ResponseTimeout, nil)
		option(&o, &p.ClientOptions.RetryAttempts, nil)
		option(&o, &p.ClientOptions.PoolSize, nil)
		option(&o, &p.ClientOptions.FairWait, nil)
	}
	for _, s := range sc.All() {
		o.step(s)
	}
	for i := range sc.Faults {
		o.fault(&sc.Faults[i])
	}
	return o
}

func (o *options) resources(sc *Scenario) {
	uses := func(name string, refused bool) bool {
		for _, s := range sc.All() {
			if s.Kind == StepUse && s.Name == name && (!refused || slices.Contains(s.Want, "refused")) {
				return true
			}
		}
		return false
	}
	for i := range sc.Resources {
		if !uses(sc.Resources[i].Name, false) {
			*o = append(*o, func() { sc.Resources = slices.Delete(sc.Resources, i, i+1) })
		}
	}
	for i := range sc.Resources {
		r := &sc.Resources[i]
		option(o, &r.NeverBelow, nil)
		option(o, &r.End, nil)
		if !uses(r.Name, true) {
			option(o, &r.Fence, "")
		}
	}
}

func (o *options) step(s *Step) {
	option(o, &s.Lease, nil)
	option(o, &s.Wait, nil)
	option(o, &s.Interruptible, nil)
	option(o, &s.UnitSeconds, false)
	listOption(o, &s.Want)
	option(o, &s.Reply, "")
	option(o, &s.UnlockAlways, false)
	if s.Kind == StepUse {
		option(o, &s.Take, defaultTake)
	}
	option(o, &s.For, 0)
	if r := s.Read; r != nil {
		option(o, &r.Holds, nil)
		option(o, &r.Locked, nil)
		option(o, &r.TTL, nil)
		option(o, &r.Queue, nil)
		for _, thread := range slices.Sorted(maps.Keys(r.Deadlines)) {
			*o = append(*o, func() { delete(r.Deadlines, thread) })
		}
	}
}

func (o *options) fault(f *Fault) {
	listOption(o, &f.Servers)
	option(o, &f.KeepData, false)
	option(o, &f.LoseLast, 0)
	switch f.Kind {
	case model.FaultPartition:
		for i := range f.Processes {
			*o = append(*o, func() { f.Processes = slices.Delete(f.Processes, i, i+1) })
		}
	case model.FaultRule:
		// The fields that limit the messages of a rule stay. With nth the rule meets only one
		// message, so from and until may go.
		if f.When.Nth > 0 {
			option(o, &f.From, 0)
			option(o, &f.Until, nil)
			option(o, &f.Awaits, nil)
		}
		if f.Awaits != nil {
			o.condition(f.Awaits)
		}
		option(o, &f.When.Process, "")
		option(o, &f.When.Direction, "")
		option(o, &f.When.Command, "")
		option(o, &f.When.Script, "")
		option(o, &f.When.Channel, "")
	}
}

// condition adds the fields of a condition that has several. The last one that is left stays.
func (o *options) condition(c *model.Condition) {
	var fields options
	option(&fields, &c.Granted, "")
	option(&fields, &c.Ended, "")
	option(&fields, &c.Published, "")
	option(&fields, &c.Executed, nil)
	if len(fields) < 2 {
		return
	}
	for _, remove := range fields {
		*o = append(*o, func() {
			before := *c
			if remove(); *c == (model.Condition{}) {
				*c = before
			}
		})
	}
}

// Wants returns functions that each leave out an expectation of a step or of a resource.
func (sc *Scenario) Wants() []func() {
	var o options
	for _, s := range sc.All() {
		listOption(&o, &s.Want)
		option(&o, &s.Reply, "")
	}
	for i := range sc.Resources {
		option(&o, &sc.Resources[i].NeverBelow, nil)
		option(&o, &sc.Resources[i].End, nil)
	}
	return o
}

// An Amount is a time or a number that may be another.
type Amount struct {
	N    int64 // of a time: nanoseconds
	Time bool
	// Set changes it. It reports false if the field does not take the number.
	Set func(n int64) bool
}

// Amounts returns the times and numbers that may be others. It leaves out the resources, the values
// that the author expects of a step, and what need not be written.
func (sc *Scenario) Amounts() []Amount {
	var a amounts
	if sc.Watchdog != defaultWatchdog {
		amount(&a, &sc.Watchdog, minWatchdog, maxDuration)
	}
	if sc.Server.Replicas > 0 {
		amount(&a, &sc.Server.Replicas, 1, maxReplicas)
	}
	for i := range sc.Processes {
		p := &sc.Processes[i]
		if p.Threads > 1 {
			amount(&a, &p.Threads, sc.lastThread(p.Name), p.Threads)
		}
		amount(&a, &p.WallOffset, -maxDuration, maxDuration)
		amount(&a, &p.WallDriftPPM, -maxDrift, maxDrift)
		optionalAmount(&a, p.ClientOptions.ResponseTimeout, minResponseTimeout, maxDuration)
		optionalAmount(&a, p.ClientOptions.RetryAttempts, 0, maxClient)
		optionalAmount(&a, p.ClientOptions.PoolSize, 1, maxClient)
		optionalAmount(&a, p.ClientOptions.FairWait, 0, maxDuration)
	}
	for _, s := range sc.All() {
		a.step(s)
	}
	for i := range sc.Faults {
		a.fault(&sc.Faults[i])
	}
	return a
}

// lastThread returns the number of the last thread of a process that has steps or that a step or a fault
// names.
func (sc *Scenario) lastThread(process string) int {
	last := 1
	for _, t := range sc.Threads {
		if t.Process == process {
			last = max(last, t.Thread)
		}
	}
	see := func(thread string) {
		if model.ProcessOf(thread) == process {
			last = max(last, model.NumberOf(thread))
		}
	}
	for _, s := range sc.All() {
		for _, thread := range s.threads() {
			see(thread)
		}
	}
	for _, f := range sc.Faults {
		if f.Awaits != nil {
			see(f.Awaits.Granted)
		}
	}
	return last
}

// threads returns the threads that a step names.
func (s *Step) threads() (names []string) {
	if s.Target != "" {
		names = append(names, s.Target)
	}
	if r := s.Read; r != nil {
		if r.Queue != nil {
			names = append(names, *r.Queue...)
		}
		names = slices.AppendSeq(names, maps.Keys(r.Deadlines))
	}
	return names
}

// amounts are being collected.
type amounts []Amount

// amountThat adds a field that takes the numbers for which fits returns true.
func amountThat[T int | int64 | Duration](a *amounts, field *T, fits func(T) bool) {
	_, isTime := any(field).(*Duration)
	*a = append(*a, Amount{N: int64(*field), Time: isTime, Set: func(n int64) bool {
		v := T(n)
		if !fits(v) {
			return false
		}
		*field = v
		return true
	}})
}

// amount adds a field that takes the numbers from least to most.
func amount[T int | int64 | Duration](a *amounts, field *T, least, most T) {
	amountThat(a, field, func(v T) bool { return v >= least && v <= most })
}

// optionalAmount adds a field that is there.
func optionalAmount[T int | int64 | Duration](a *amounts, field *T, least, most T) {
	if field != nil {
		amount(a, field, least, most)
	}
}

func (a *amounts) step(s *Step) {
	switch s.Kind {
	case StepAt, StepSleep:
		amount(a, &s.D, 0, maxDuration)
	case StepUse:
		if s.Take != defaultTake {
			amount(a, &s.Take, 0, math.MaxInt32)
		}
		amount(a, &s.For, 0, maxDuration)
	case StepRepeat:
		if s.Times > 0 {
			amount(a, &s.Times, 1, s.Times) // more could make more steps than a run may have
		}
	}
	optionalAmount(a, s.Wait, 0, maxDuration)
	optionalAmount(a, s.Lease, minLease, maxDuration)
	optionalAmount(a, s.Until, 0, maxDuration)
}

func (a *amounts) fault(f *Fault) {
	if f.Kind == model.FaultRule {
		latest := maxDuration
		if f.Until != nil {
			latest = *f.Until - 1
		}
		amount(a, &f.From, 0, latest)
		optionalAmount(a, f.Until, f.From+1, maxDuration)
	} else {
		amount(a, &f.At, 0, maxDuration)
	}
	if f.For > 0 {
		amount(a, &f.For, 1, maxDuration)
	}
	switch {
	case f.StepsServerClock():
		amountThat(a, &f.Step, func(step Duration) bool { return step != 0 && step%time.Millisecond == 0 })
	case f.Kind == model.FaultWallClock:
		amount(a, &f.Step, -maxDuration, maxDuration)
	}
	if f.When.Nth > 0 {
		amount(a, &f.When.Nth, 1, math.MaxInt32)
	}
	if f.When.Every > 0 {
		amount(a, &f.When.Every, 1, math.MaxInt32)
	}
	if f.When.After > 0 {
		amount(a, &f.When.After, 1, math.MaxInt32)
	}
	if c := f.Awaits; c != nil && c.Executed != nil && c.Executed.Nth > 0 {
		amount(a, &c.Executed.Nth, 1, math.MaxInt32)
	}
	if f.LoseLast > 0 {
		amount(a, &f.LoseLast, 0, math.MaxInt32)
	}
}
