package failure

import (
	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/scenarios/play"
)

// Debtor says who had not given the lock back when a waiter had waited for nothing for too long.
type Debtor string

// The debtors.
const (
	NoDebtor      Debtor = ""        // every thread that was granted the lock had called unlock
	WaiterItself  Debtor = "waiter"  // the waiter, which waits for itself
	SameProcess   Debtor = "process" // another thread of the waiter's process
	AnotherThread Debtor = "another" // a thread of another process
	GoneProcess   Debtor = "gone"    // a thread of a process that is dead or has closed its client
)

// DebtorOf returns the debtor of a finding about a forgotten waiter; NoDebtor for any other finding. A lock
// that is free and not granted to its waiter is one failure. A waiter that waits for itself is another: each
// lock that counts no levels has it.
func DebtorOf(v play.Verdict, f judges.Finding) Debtor {
	d, ok := f.Detail.(judges.Forgotten)
	r := v.Played.Trace
	if !ok || r == nil {
		return NoDebtor
	}
	due := d.FromNs + d.Bound.Ns
	owed := map[string]int{} // grants without an unlock
	for _, o := range r.CallsOn(f.Lock) {
		switch {
		case o.Action.Acquires() && o.Outcome == model.Granted && o.ReturnedNs() <= due:
			owed[o.Caller]++
		case o.Action == model.ActUnlock && o.AtNs <= due:
			delete(owed, o.Caller)
		}
	}
	for _, of := range []struct {
		debtor Debtor
		owes   func(who string) bool
	}{
		{WaiterItself, func(who string) bool { return who == f.Thread }},
		{SameProcess, func(who string) bool { return model.ProcessOf(who) == model.ProcessOf(f.Thread) }},
		{GoneProcess, func(who string) bool { return r.GoneNs(model.ProcessOf(who)) <= due }},
		{AnotherThread, func(string) bool { return true }},
	} {
		for who := range owed {
			if of.owes(who) {
				return of.debtor
			}
		}
	}
	return NoDebtor
}
