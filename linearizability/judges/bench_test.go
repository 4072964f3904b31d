package judges

import (
	"testing"
	"time"

	"lockstep/model"
)

// BenchmarkJudge judges a run in which threads take one lock in turn. Each call is
// an exchange of its own, so that a hold has twelve events.
func BenchmarkJudge(b *testing.B) {
	rec := &model.Record{Params: plainLock}
	add := func(at int64, kind model.Kind, e model.Event) {
		e.AtNs, e.Kind, e.Process, e.Thread = at*int64(time.Millisecond), kind, "a", 1+(e.Op-1)/2%10
		rec.Add(e)
	}
	for i := range 2000 {
		at := int64(i) * 20
		for j, action := range []model.Action{model.ActLock, model.ActUnlock} {
			op := 2*i + j + 1
			script, outcome, state := model.RoleAcquire, model.Granted, &model.LockState{}
			who := model.ThreadName("a", 1+i%10)
			if j == 0 {
				state = &model.LockState{Owner: who, Count: 1, ExpiresMs: at + 30_001}
			} else {
				script, outcome = model.RoleUnlock, model.Released
			}
			add(at, model.KindInvoke, model.Event{Op: op, Action: action, Lock: "l", WaitNs: -1})
			add(at, model.KindSend, model.Event{Op: op, Msg: op, Script: script, Locks: []string{"l"}, Owners: []string{who}})
			add(at+1, model.KindExec, model.Event{Op: op, Msg: op, Script: script, Reply: "nil"})
			add(at+1, model.KindState, model.Event{Op: op, Msg: op, Lock: "l", State: state})
			add(at+2, model.KindDeliver, model.Event{Op: op, Msg: op, Script: script})
			add(at+2, model.KindReturn, model.Event{Op: op, Action: action, Lock: "l", Outcome: outcome})
			at += 10
		}
	}
	add(100_000, model.KindLeave, model.Event{})
	for b.Loop() {
		if j := judgeRecord(rec, nil); len(j.Findings) > 0 {
			b.Fatal(j.Findings)
		}
	}
}
