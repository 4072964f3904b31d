package sim

import (
	"testing"

	"lockstep/model"
)

// A call may have drawn a value for each of its attempts. The last one is that of its hold, if no other thread of the process asks
// for the lock.
func TestThePresentHoldIsThatOfTheOnlyCallOfItsProcess(t *testing.T) {
	for lock, want := range map[string]string{"": "a/1", "y": "a/1", "x": "second"} {
		p := &Process{cfg: ProcessConfig{Name: "a"}}
		asks, other := &Thread{p: p, name: "a/1"}, &Thread{p: p, name: "a/2"}
		if lock != "" {
			other.call = &call{what: Operation{Lock: lock}}
		}
		p.threads = []*Thread{asks, other}
		w := &World{owners: NewOwners(), held: map[string]*model.LockState{}, rec: &model.Record{}}
		for _, value := range []string{"first", "second"} {
			w.held["x"] = w.owners.Name("x", &model.LockState{Owner: value, Count: 1}, &Writer{Process: "a", Words: []string{"SET", "x", value}})
			w.rec.Events = append(w.rec.Events, model.Event{Kind: model.KindState, Lock: "x", State: w.held["x"]})
		}
		w.granted(asks, 1, "x", 0)
		if got, first := w.held["x"].Owner, w.rec.Events[0].State.Owner; got != want || first != "first" {
			t.Errorf("a/2 asks for %q: the hold is that of %s, want %s; the one before is that of %s", lock, got, want, first)
		}
	}
}
