package known

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	root "lockstep/known"
	"lockstep/known/defect"
	"lockstep/linearizability/judges"
	"lockstep/locktest"
	"lockstep/model"
	"lockstep/model/trace"
	"lockstep/peers/etcd"
	"lockstep/peers/memcached"
	"lockstep/peers/mysql"
	"lockstep/peers/nats"
	"lockstep/peers/redsync"
	"lockstep/peers/rueidislock"
	"lockstep/peers/zookeeper"
	"lockstep/report/sentence"
	"lockstep/scenarios/play"
	"lockstep/sim"
)

var locks = []locktest.Subject{
	redsync.Subject(1), redsync.Subject(5), redsync.SetOnExtend, rueidislock.Subject(1), rueidislock.Subject(2), rueidislock.Patient,
	memcached.Add, memcached.AddForever, memcached.CAS, zookeeper.Lock, zookeeper.Closing, etcd.Mutex, etcd.OneSession,
	nats.KV, nats.OnTime, nats.Blind, nats.KeyTTL, mysql.GetLock, mysql.GetLockPool, mysql.RowLock,
}

// recordings calls f for each recording in testdata, with the ID of the defect that it shows. found
// has the findings that must be this defect. The name of the file begins with their judge.
func recordings(t *testing.T, f func(t *testing.T, h *sim.Host, id string, v play.Verdict, found []judges.Finding)) {
	t.Helper()
	h := sim.NewHost(t)
	if err := locktest.Register(h, locks...); err != nil && !strings.Contains(err.Error(), "the name of another lock") {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/*/*.lockstep")
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(strings.TrimPrefix(filepath.ToSlash(file), "testdata/"), ".lockstep"), func(t *testing.T) {
			h := h.For(t)
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			rec, sc, lock, err := play.ReadRecording(file, text)
			if err != nil {
				t.Fatal(err)
			}
			v, _ := play.Replay(h, rec, sc, lock)
			judge, _, _ := strings.Cut(filepath.Base(file), ".")
			var found []judges.Finding
			for _, f := range v.Findings {
				if f.Judge == judge && f.Class == judges.ClassBug {
					found = append(found, f)
				}
			}
			if len(found) == 0 {
				t.Fatalf("the judge %s has found nothing: %v", judge, v.Findings)
			}
			f(t, h, filepath.Base(filepath.Dir(file)), v, found)
		})
	}
}

// Each defect has a recording that shows it, and each recording is of the defect whose folder it is
// in, whether the list is read from its beginning or from its end.
func TestARecordingIsOfItsDefect(t *testing.T) {
	backward := slices.Clone(Defects)
	slices.Reverse(backward)
	shown := map[string]bool{}
	recordings(t, func(t *testing.T, h *sim.Host, id string, v play.Verdict, found []judges.Finding) {
		for _, list := range [][]defect.Defect{Defects, backward} {
			n := root.NewNamer(h, v, list)
			if !slices.ContainsFunc(found, func(f judges.Finding) bool { return n.Name(f).ID == id }) {
				t.Errorf("no finding is %s: %q is named %q", id, sentence.Finding(found[0]), n.Name(found[0]).ID)
			}
		}
		shown[id] = true
	})
	for _, d := range Defects {
		if !shown[d.ID] {
			t.Errorf("no recording in testdata shows %s", d.ID)
		}
	}
}

// A lookalike is the same record without the effect of the cause. Its finding is the same, but must
// not be the defect.
func TestALookalikeIsNotTheDefect(t *testing.T) {
	recordings(t, func(t *testing.T, h *sim.Host, id string, v play.Verdict, found []judges.Finding) {
		alike := 0
		for _, f := range found {
			causes := map[string]bool{}
			for {
				named := root.NewNamer(h, v, Defects).Name(f)
				if named.ID != id || named.Cause.InReplay {
					break
				}
				if cause := named.Cause.String(); causes[cause] {
					t.Errorf("%s\nis %s still without %q", sentence.Finding(f), id, cause)
					break
				}
				causes[named.Cause.String()] = true
				v.Played.Record = without(v.Played.Record, *named.Cause)
				v.Played.Trace = trace.New(v.Played.Record)
				alike++
			}
		}
		if alike == 0 {
			t.Errorf("no finding in the record itself is %s, so that it has no lookalike", id)
		}
	})
}

// without returns a copy of a record that lacks the effect of a cause.
func without(rec *model.Record, c defect.Cause) *model.Record {
	run := trace.New(rec)
	out := &model.Record{Params: rec.Params}
	if c.Kind == revisionAgain { // the server kept its data
		out.Params.Faults = slices.Clone(rec.Params.Faults)
		for i := range out.Params.Faults {
			out.Params.Faults[i].KeepData = true
		}
		out.Events = rec.Events
		return out
	}
	for _, e := range rec.Events {
		mine := slices.Contains(c.Msgs, e.Msg)
		keep := true
		switch c.Kind {
		case cleansUp: // the call did not clean up
			m := run.Command(e.Msg)
			keep = !mine || m == nil || m.Command == "SET"
		case defect.KeptPlace, defect.UnlockFailed, setAnew: // the call is on another lock
			if e.Op == c.Op && e.Lock != "" {
				e.Lock = "elsewhere"
			}
			if e.Op == c.Op && e.Locks != nil {
				e.Locks = []string{"elsewhere"}
			}
		case markEnded: // the last request was not needed
			keep = !mine
		case unasked: // the holder did not unlock
			keep = e.Op != c.Op || e.Kind != model.KindInvoke && e.Kind != model.KindReturn
		case toldTaken, gaveUpTry, unconnected: // the command was answered at once, and an acquire found the key taken
			keep = !mine || e.Kind == model.KindState
			if c.Fault > 0 { // or no fault kept the client from connecting
				keep = e.Fault != c.Fault
				break
			}
			if mine && e.Kind == model.KindSend {
				ran, told := e, e
				ran.Kind, ran.Reply = model.KindExec, "nil"
				told.Kind, told.Dir = model.KindDeliver, "reply"
				out.Events = append(out.Events, e, ran, told)
			}
			if o := run.Call(e.Op); mine && o != nil && e.Kind == model.KindSend && o.AtNs < e.AtNs && o.Sent[0].Msg == e.Msg {
				call := slices.IndexFunc(out.Events, func(x model.Event) bool { return x.Kind == model.KindInvoke && x.Op == e.Op })
				out.Events[call].AtNs = e.AtNs // it was sent at once, too
			}
		case endsUnheard: // the client did not ask for a connection
			m := run.Command(e.Msg)
			keep = m == nil || m.Command != "CONNECT" || m.AtNs < c.AtNs
		default: // the command had no effect, or time did not end the hold
			keep = !(mine && e.Kind != model.KindSend) && !(len(c.Msgs) == 0 && e.Kind == model.KindState && e.AtNs == c.AtNs)
		}
		if keep {
			out.Events = append(out.Events, e)
		}
	}
	return out
}

// A waiter of rueidislock that asked again on a connection, and found the lock taken, waits for
// another reason than a try that was given up.
func TestAWaiterThatAskedAgainWasNotGivenUp(t *testing.T) {
	const id = "RUEIDISLOCK-gives-a-try-up"
	recordings(t, func(t *testing.T, h *sim.Host, of string, v play.Verdict, found []judges.Finding) {
		if of != id {
			t.Skip("of another defect")
		}
		rec := v.Played.Record
		for _, f := range found {
			call := v.Played.Trace.Calls[slices.IndexFunc(v.Played.Trace.Calls, func(o *trace.Call) bool { return o.Caller == f.Thread && o.AtNs == f.Ops[0].CallNs })]
			msg := 0
			for _, e := range rec.Events {
				msg = max(msg, e.Msg)
			}
			sent := model.Event{
				AtNs: f.AtNs - 1, Kind: model.KindSend, Process: call.Process, Op: call.Op, Msg: msg + 1, Command: "EVALSHA", Script: model.RoleAcquire,
				Owners: []string{f.Thread}, Locks: []string{f.Lock},
			}
			ran, told := sent, sent
			ran.Kind, ran.Reply = model.KindExec, "nil"
			told.Kind, told.Dir = model.KindDeliver, "reply"
			at := slices.IndexFunc(rec.Events, func(e model.Event) bool { return e.AtNs >= f.AtNs })
			again := v
			again.Played.Record = &model.Record{Params: rec.Params, Events: slices.Insert(slices.Clone(rec.Events), at, sent, ran, told)}
			again.Played.Trace = trace.New(again.Played.Record)
			if named := root.NewNamer(h, again, Defects).Name(f); named.ID != "" {
				t.Errorf("%s\nis %s still: %s", sentence.Finding(f), named.ID, named.Cause)
			}
		}
	})
}

// The list is complete, and no other defect has one of its IDs.
func TestTheList(t *testing.T) {
	ids := map[string]bool{}
	for _, d := range Defects {
		if d.ID == "" || d.Title == "" || d.Story == "" || len(d.Judges) == 0 || d.Applies == nil || d.Cause == nil || d.Since == 0 {
			t.Errorf("%s lacks something: %+v", d.ID, d)
		}
		if ids[d.ID] || root.Find(d.ID) != nil {
			t.Errorf("%s is the ID of two defects", d.ID)
		}
		ids[d.ID] = true
		if d.Row == "" {
			continue
		}
		if found, err := filepath.Glob(fmt.Sprintf("../*/testdata/peers-track-record/%s.yaml", d.Row)); err != nil || len(found) != 1 {
			t.Errorf("%s names the row %s, which is no scenario of the track record: %v, %v", d.ID, d.Row, found, err)
		}
	}
}
