package judges

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/model"
	"lockstep/model/trace"
)

// FuzzJudge checks that no record makes a judge panic; that every finding breaks a promise of the
// lock, and has a sentence, an instant within the run and calls of the record; and that judging
// twice gives the same. The bytes are read as a run that may be impossible, with arbitrary actions
// of threads, commands and the server.
func FuzzJudge(f *testing.F) {
	for _, seed := range []string{
		"", "\x00", "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09",
		strings.Repeat("\x00\x10\x03\x21\x04\x32", 20),
		strings.Repeat("\x00\x02\x03\x05\x01\x0b\x07\x0d", 12),
		"\x01\x00\x05\x02\x00\x06\x03\x00\x08\x00\x00\x05\x04\x01\x06\x05\x02\x07\x06\x00\x07\x00\x01\x08\x09\x00\x0a\x01\x0b\x02\x0c\x03",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		rec := fuzzRecord(data)
		j := Judge(trace.New(rec), []Resource{{Name: "stock", Start: 10}})
		if again := Judge(trace.New(rec), []Resource{{Name: "stock", Start: 10}}); !reflect.DeepEqual(again, j) {
			t.Fatalf("twice:\n%+v\n%+v", j, again)
		}
		for _, f := range j.Findings {
			if Sentence(f) == "" || f.AtNs < 0 || f.Judge != JudgeHarness && !slices.Contains(model.Judges, f.Judge) {
				t.Errorf("a finding without judge, sentence or instant: %+v", f)
			}
			if _, promised := rec.Params.Promise(f.Judge); f.Verdict == Broken && !promised {
				t.Errorf("%s is not promised of %s", f.Judge, rec.Params.Lock)
			}
			for _, op := range f.Ops {
				if op.ReturnNs >= 0 && op.ReturnNs < op.CallNs {
					t.Errorf("a call that returned before it began: %+v", op)
				}
			}
		}
	})
}

// fuzzRecord reads bytes as a record whose events obey the rules of the world: a thread has one
// call, a message is sent before it is executed.
func fuzzRecord(data []byte) *model.Record {
	next := func() int {
		if len(data) == 0 {
			return 0
		}
		b := int(data[0])
		data = data[1:]
		return b
	}
	locks := []model.Params{plainLock, fairLock, bareLock, ourFairLock}
	rec := &model.Record{Params: locks[next()%len(locks)]}
	threads := []string{"a", "b", "c"}
	scripts := []model.Role{model.RoleAcquire, model.RoleUnlock, model.RoleRenew, model.RoleLeave, model.RoleForceUnlock}
	actions := []model.Action{model.ActLock, model.ActTryLock, model.ActTryLockTimed, model.ActUnlock, model.ActForceUnlock}
	outcomes := []model.Outcome{model.Granted, model.Busy, model.Released, model.StillHeld, model.NotHeld, model.Failed, model.Unknown}
	open := map[string]*model.Event{}
	var sent []model.Event
	var state model.LockState
	var at int64
	ops, faults := 0, 0
	for len(data) > 0 && len(rec.Events) < 200 {
		kind := next()
		who := threads[next()%3]
		at += int64(next()) * 20e6
		e := model.Event{AtNs: at, Process: who, Thread: 1, Lock: "l"}
		switch kind % 10 {
		case 0, 1:
			if call := open[who]; call == nil {
				ops++
				e.Kind, e.Op, e.Action = model.KindInvoke, ops, actions[next()%len(actions)]
				e.LeaseNs = int64(next()%4) * 1e9
				e.WaitNs = int64(next()%3) * 1e9
				if e.Action == model.ActLock {
					e.WaitNs = -1
				}
				c := e
				open[who] = &c
			} else {
				e.Kind, e.Op, e.Action, e.Outcome = model.KindReturn, call.Op, call.Action, outcomes[next()%len(outcomes)]
				delete(open, who)
			}
		case 2, 3:
			e.Kind, e.Msg, e.Thread, e.Script, e.Command = model.KindSend, len(sent)+1, 0, scripts[next()%len(scripts)], "EVAL"
			e.Owners, e.Locks = []string{who + "/1"}, []string{"l"}
			if call := open[who]; call != nil && e.Script != "renew" {
				e.Op = call.Op
			}
			sent = append(sent, e)
		case 4, 5, 6, 7:
			if len(sent) == 0 {
				continue
			}
			m := sent[next()%len(sent)]
			m.AtNs, m.Kind = at, []model.Kind{model.KindExec, model.KindDeliver, model.KindLost, model.KindHit}[kind%10-4]
			m.Dir, m.Fault, m.Text = "reply", 1, "drop of it"
			e = m
		case 8:
			faults++
			spec := []model.FaultSpec{
				{Kind: model.FaultCrash, Processes: []string{who}},
				{Kind: model.FaultPause, Processes: []string{who}, For: 6 * time.Second},
				{Kind: model.FaultPartition, Processes: []string{"a", "b"}, For: 2 * time.Second},
				{Kind: model.FaultServer, Server: model.ServerRestart},
				{Kind: model.FaultKey, KeyDo: "delete", Key: "l"},
			}[next()%5]
			rec.Params.Faults = append(rec.Params.Faults, spec)
			e = model.Event{AtNs: at, Kind: model.KindFault, Fault: faults, Process: who, Text: spec.String()}
		case 9:
			e = []model.Event{
				{AtNs: at, Kind: model.KindExpire, Key: "l"}, {AtNs: at, Kind: model.KindCalm}, {AtNs: at, Kind: model.KindClose, Process: who},
				{AtNs: at, Kind: model.KindResource, Process: who, Thread: 1, Phase: "write", Key: "stock", Value: int64(next()), Count: 1},
			}[next()%4]
		}
		rec.Add(e)
		if kind >= 128 { // the state of the server changes
			state = model.LockState{}
			if n := next(); n%4 > 0 {
				state = model.LockState{Owner: threads[n%3] + "/1", Count: 1 + n%2, ExpiresMs: at/1e6 + int64(n)*100, Token: int64(n % 5)}
				if n%16 == 1 {
					state.ExpiresMs = -1
				}
				if rec.Params.Fair && n%8 > 3 {
					state.Queue = []string{"b/1", "c/1"}[:1+n%2]
				}
			}
			s := state
			rec.Add(model.Event{AtNs: at, Kind: model.KindState, Lock: "l", Msg: e.Msg, State: &s})
		}
	}
	rec.Add(model.Event{AtNs: at + 1e9, Kind: model.KindLeave})
	for _, who := range threads {
		if call := open[who]; call != nil {
			rec.Add(model.Event{AtNs: at + 1e9, Kind: model.KindReturn, Process: who, Thread: 1, Op: call.Op, Action: call.Action, Lock: "l", Outcome: model.Waiting})
		}
	}
	return rec
}
