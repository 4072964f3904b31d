package model_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"lockstep/model"
	"lockstep/report/sentence"
)

func TestSpec(t *testing.T) {
	acquire := func(id int, owner string) model.Input {
		return model.Input{Do: model.DoAcquire, ID: id, Owner: owner, Answer: model.AnswerGranted, Lease: id}
	}
	call := func(do model.Do, owner, answer string) model.Input {
		return model.Input{Do: do, ID: 99, Owner: owner, Answer: answer, Lease: model.KeepLease}
	}
	expire := func(of int) model.Input { return model.Input{Do: model.DoExpire, Of: of} }
	arrive := func(of int, owner string, at int64) model.Input {
		return model.Input{Do: model.DoArrive, Of: of, Owner: owner, ArrivedNs: at, HasArrival: true, Ordered: true}
	}
	queued := func(in model.Input, at int64) model.Input {
		in.Queued, in.HasArrival, in.ArrivedNs = true, true, at
		return in
	}
	busy := func(id int, owner string, at int64) model.Input {
		in := queued(acquire(id, owner), at)
		in.Answer, in.Lease = model.AnswerBusy, model.KeepLease
		return in
	}
	token := func(in model.Input, token int64) model.Input {
		in.Token, in.HasToken = token, true
		return in
	}
	optional := func(in model.Input) model.Input { in.Optional = true; return in }
	tracked := func(in model.Input) model.Input { in.Tracked = true; return in }
	const free, a1 = "free", "held by a/1"

	for _, c := range []struct {
		rule, spec string
		steps      []model.Input
		state      string // after the steps
		refusal    string // of the last step; then state is the state before it
	}{
		{"a free lock is granted", "reentrant", []model.Input{acquire(1, "a/1")}, a1, ""},
		{"another's lock is not", "reentrant", []model.Input{acquire(1, "a/1"), acquire(2, "b/1")}, a1, "the lock was " + a1},
		{"one's own is, a level deeper", "reentrant", []model.Input{acquire(1, "a/1"), acquire(2, "a/1")}, "held by a/1 with 2 levels", ""},
		{"the last level frees", "reentrant", []model.Input{acquire(1, "a/1"), call(model.DoRelease, "a/1", "released")}, free, ""},
		{"a level above keeps", "reentrant", []model.Input{acquire(1, "a/1"), acquire(2, "a/1"), call(model.DoRelease, "a/1", "still_held")}, a1, ""},
		{"nobody releases another's hold", "reentrant", []model.Input{acquire(1, "a/1"), call(model.DoRelease, "b/1", "released")}, a1, "the lock was " + a1},
		{"and is told so", "reentrant", []model.Input{acquire(1, "a/1"), call(model.DoRelease, "b/1", "not_held")}, a1, ""},
		{"force_release does", "reentrant", []model.Input{acquire(1, "a/1"), call(model.DoForceRelease, "b/1", "released")}, free, ""},
		{"a lost key frees", "reentrant", []model.Input{acquire(1, "a/1"), {Do: model.DoLost}}, free, ""},
		{"busy while another holds", "reentrant", []model.Input{acquire(1, "a/1"), call(model.DoAcquire, "b/1", "busy")}, a1, ""},
		{"not busy when free", "reentrant", []model.Input{call(model.DoAcquire, "b/1", "busy")}, free, "the lock was free"},
		{"a read tells the truth", "reentrant", []model.Input{acquire(1, "a/1"), call(model.DoIsLocked, "b/1", "false")}, a1, "the lock was " + a1},

		{"the count is one's own", "reentrant", []model.Input{acquire(1, "a/1"), call(model.DoHoldCount, "b/1", "ok")}, a1, ""},
		{"and not another's", "reentrant", []model.Input{acquire(1, "a/1"), call(model.DoHoldCount, "a/1", "ok")}, a1, "the lock was " + a1 + " with 1 level"},
		{"the holder renews", "reentrant", []model.Input{acquire(1, "a/1"), call(model.DoRenew, "a/1", "renewed")}, a1, ""},
		{"nobody else does", "reentrant", []model.Input{acquire(1, "a/1"), call(model.DoRenew, "b/1", "renewed")}, a1, "the lock was " + a1},
		{"a free lock cannot be forced", "reentrant", []model.Input{call(model.DoForceRelease, "b/1", "released")}, free, "the lock was free"},
		{"released is not said of a level above", "reentrant", []model.Input{acquire(1, "a/1"), acquire(2, "a/1"), call(model.DoRelease, "a/1", "released")}, "held by a/1 with 2 levels", "the lock was held by a/1 with 2 levels"},
		{"nor still_held of the last", "reentrant", []model.Input{acquire(1, "a/1"), call(model.DoRelease, "a/1", "still_held")}, a1, "the lock was " + a1 + " with 1 level"},

		{"the running lease frees", "reentrant", []model.Input{acquire(1, "a/1"), expire(1)}, free, ""},
		{"it takes all levels", "reentrant", []model.Input{acquire(1, "a/1"), acquire(2, "a/1"), expire(2)}, free, ""},
		{"one that was replaced does nothing", "reentrant", []model.Input{acquire(1, "a/1"), acquire(2, "a/1"), expire(1)}, "held by a/1 with 2 levels", ""},
		{"one of an earlier hold does nothing", "reentrant", []model.Input{acquire(1, "a/1"), call(model.DoRelease, "a/1", "released"), acquire(2, "b/1"), expire(1)}, "held by b/1", ""},
		{"a release keeps the running lease", "reentrant", []model.Input{acquire(1, "a/1"), acquire(2, "a/1"), call(model.DoRelease, "a/1", "still_held"), expire(2)}, free, ""},
		{"a tracked lease does not end before it began", "reentrant", []model.Input{tracked(expire(1))}, free, "its lease was over before it could take effect: the lock was free"},
		{"nor twice", "reentrant", []model.Input{tracked(acquire(1, "a/1")), tracked(expire(1)), tracked(expire(1))}, free, "its lease was over before it could take effect: the lock was free"},

		{"an unknown release takes what there is", "reentrant", []model.Input{acquire(1, "a/1"), optional(call(model.DoRelease, "a/1", "unknown"))}, free, ""},
		{"it is no step where it changes nothing", "reentrant", []model.Input{optional(call(model.DoRelease, "a/1", "unknown"))}, free, "the lock was free"},
		{"unless the history is over", "reentrant", []model.Input{{Do: model.DoEnd}, optional(call(model.DoRelease, "a/1", "unknown"))}, free, ""},
		{"when nothing else happens any more", "reentrant", []model.Input{{Do: model.DoEnd}, acquire(1, "a/1")}, free, "the history was over"},

		{"who arrived first is first", "fair", []model.Input{arrive(1, "a/1", 5e9), arrive(2, "b/1", 6e9), queued(acquire(2, "b/1"), 6e9)}, "free, waiting: a/1 b/1", "a/1 arrived before it (5.000s, itself 6.000s) and still waited"},
		{"then the next", "fair", []model.Input{arrive(1, "a/1", 5), arrive(2, "b/1", 6), queued(acquire(1, "a/1"), 5)}, "held by a/1, waiting: b/1", ""},
		{"nobody holds before arriving", "fair", []model.Input{queued(acquire(1, "a/1"), 5)}, free, "its first try had not reached the lock"},
		{"who leaves is waited for no more", "fair", []model.Input{arrive(1, "a/1", 5), arrive(2, "b/1", 6), {Do: model.DoLeave, Of: 1}, queued(acquire(2, "b/1"), 6)}, "held by b/1", ""},
		{"busy while somebody waits", "fair", []model.Input{arrive(1, "a/1", 5), call(model.DoAcquire, "c/1", "busy")}, "free, waiting: a/1", ""},
		{"who was refused keeps its place until it says so", "fair", []model.Input{acquire(1, "a/1"), arrive(2, "b/1", 5), call(model.DoRelease, "a/1", "released"), call(model.DoAcquire, "c/1", "busy"), busy(2, "b/1", 5)}, free, ""},
		{"also whom a later holder refused", "fair", []model.Input{arrive(2, "b/1", 5), acquire(1, "a/1"), call(model.DoRelease, "a/1", "released"), busy(2, "b/1", 5)}, free, ""},
		{"nobody is refused by himself", "fair", []model.Input{acquire(1, "b/1"), arrive(2, "b/1", 5), call(model.DoRelease, "b/1", "released"), busy(2, "b/1", 5)}, "free, waiting: b/1", "the lock was free and no other acquire waited"},
		{"but not on the plain lock", "reentrant", []model.Input{arrive(1, "a/1", 5), call(model.DoAcquire, "c/1", "busy")}, "free, waiting: a/1", "the lock was free"},

		{"tokens grow", "fenced", []model.Input{token(acquire(1, "a/1"), 1), expire(1), token(acquire(2, "b/1"), 2)}, "held by b/1", ""},
		{"and do not repeat", "fenced", []model.Input{token(acquire(1, "a/1"), 2), expire(1), token(acquire(2, "b/1"), 2)}, free, "its token 2 is not greater than 2, which was given out before"},
		{"re-entry has no new token", "fenced", []model.Input{token(acquire(1, "a/1"), 2), token(acquire(2, "a/1"), 2)}, "held by a/1 with 2 levels", ""},
	} {
		t.Run(c.rule, func(t *testing.T) {
			spec, ok := model.SpecNamed(c.spec)
			if !ok || spec.Name() != c.spec {
				t.Fatalf("no specification %s", c.spec)
			}
			st := spec.Init()
			for i, in := range c.steps {
				refusal := spec.Refusal(st, in)
				next, ok := spec.Step(st, in)
				if ok != (refusal == model.Allowed) {
					t.Fatalf("step %d: %v, but refused with %d", i, ok, refusal)
				}
				why := ""
				if !ok {
					why = sentence.Refusal(refusal, st, in)
				}
				if last := i == len(c.steps)-1; last && why != c.refusal || !last && why != "" {
					t.Fatalf("step %d refused with %q, want %q", i, why, c.refusal)
				}
				if ok {
					st = next
				}
			}
			if st.String() != c.state {
				t.Errorf("the lock is %s, want %s", st, c.state)
			}
		})
	}
}

// Step must not change the state that it is given: a search returns to it.
func TestStepsLeaveTheirStateAlone(t *testing.T) {
	spec, _ := model.SpecNamed("fair")
	st := spec.Init()
	st.Waiting = append(make([]model.Waiter, 0, 8), model.Waiter{ID: 1, Owner: "a/1"}, model.Waiter{ID: 2, Owner: "b/1"})
	st.Begun = append(make([]int, 0, 8), 3, 4)
	st.Owner, st.Count, st.Lease = "a/1", 1, 3
	before := fmt.Sprintf("%+v", st)
	var nexts []model.State
	for _, in := range []model.Input{
		{Do: model.DoArrive, Of: 5, Owner: "c/1"}, {Do: model.DoArrive, Of: 6, Owner: "d/1"},
		{Do: model.DoLeave, Of: 1}, {Do: model.DoLeave, Of: 2},
		{Do: model.DoExpire, Of: 3, Tracked: true}, {Do: model.DoExpire, Of: 4, Tracked: true},
		{Do: model.DoAcquire, ID: 7, Owner: "a/1", Answer: "granted", Lease: 7, Tracked: true},
		{Do: model.DoAcquire, ID: 8, Owner: "a/1", Answer: "granted", Lease: 8, Tracked: true},
	} {
		next, ok := spec.Step(st, in)
		if !ok {
			t.Fatalf("%+v refused", in)
		}
		nexts = append(nexts, next)
	}
	if after := fmt.Sprintf("%+v", st); after != before {
		t.Errorf("the state was %s and is %s", before, after)
	}
	if !slices.ContainsFunc(nexts[0].Waiting, func(w model.Waiter) bool { return w.ID == 5 }) || !slices.Equal(nexts[6].Begun, []int{3, 4, 7}) {
		t.Errorf("a later step overwrote an earlier one: %+v", nexts)
	}
}

func TestEqualStatesHaveEqualHashes(t *testing.T) {
	a := model.State{Owner: "a/1", Count: 1, Lease: 3, Begun: []int{3}}
	b := model.State{Owner: "a/1", Count: 1, Lease: 3, Begun: []int{3}, Waiting: []model.Waiter{}}
	if !a.Equal(b) || a.Hash() != b.Hash() {
		t.Errorf("%+v and %+v differ", a, b)
	}
	for _, other := range []model.State{
		{Owner: "a/2", Count: 1, Lease: 3, Begun: []int{3}}, {Owner: "a/1", Count: 2, Lease: 3, Begun: []int{3}},
		{Owner: "a/1", Count: 1, Lease: 4, Begun: []int{3}}, {Owner: "a/1", Count: 1, Lease: 3},
		{Owner: "a/1", Count: 1, Lease: 3, Begun: []int{3}, Token: 1}, {Owner: "a/1", Count: 1, Lease: 3, Begun: []int{3}, Ended: true},
	} {
		if a.Equal(other) {
			t.Errorf("%+v and %+v are equal", a, other)
		}
	}
}

func TestSpecsAreNamed(t *testing.T) {
	for _, name := range model.Specs {
		if _, ok := model.SpecNamed(name); !ok {
			t.Errorf("%s is listed and not known", name)
		}
	}
	if _, ok := model.SpecNamed("mutex"); ok {
		t.Error("mutex is no specification")
	}
}

func TestSeconds(t *testing.T) {
	for ns, want := range map[int64]string{
		0: "0.000s", 5: "0.000000005s", 2_104_000_000: "2.104s", 61_000_100_000: "61.0001s", -1_500_000_000: "-1.500s", math.MinInt64: "-9223372036.854775808s",
	} {
		if got := model.Seconds(ns); got != want {
			t.Errorf("%d: %s, want %s", ns, got, want)
		}
	}
}
