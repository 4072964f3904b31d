package judges

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/linearizability"
	"lockstep/model"
	"lockstep/model/trace"
)

// judged is one rule of a judge: a record, and everything that the judges find in it.
type judged struct {
	rule string
	lock model.Params // zero: plainLock
	// finds has a line for each finding in the order of a judgement: judge, class (or undecided),
	// and text that its sentence must contain. There must be no other finding; empty: everything
	// held.
	finds  string
	record string
}

func testJudged(t *testing.T, cases []judged) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			p := c.lock
			if p.Lock == "" {
				p = plainLock
			}
			rec := recordOf(t, p, c.record)
			j := judgeRecord(rec, nil)
			expect(t, c.finds, j)
			countsAgree(t, trace.New(rec), j)
			answersAgree(t, rec, j)
			claimsAgree(t, rec, j)
		})
	}
}

// claimsAgree checks that the record contradicts no finding.
func claimsAgree(t *testing.T, rec *model.Record, j Judgement) {
	t.Helper()
	for _, f := range j.Findings {
		for _, c := range Untrue(trace.New(rec), f) {
			t.Errorf("%s\n\tsays what is not so: %+v", Sentence(f), c)
		}
	}
}

// countsAgree checks that Counted returns as many commands as each finding of traffic says.
func countsAgree(t *testing.T, r *trace.Run, j Judgement) {
	t.Helper()
	for _, f := range j.Findings {
		d, ok := f.Detail.(Traffic)
		if !ok {
			continue
		}
		i := slices.IndexFunc(r.Calls, func(o *trace.Call) bool { return refOf(o) == f.Ops[0] })
		if n := len(Counted(r, r.Calls[i], f.AtNs)); n != d.Sent {
			t.Errorf("Counted returns %d commands: %s", n, Sentence(f))
		}
	}
}

// answersAgree checks that the search finds an order of the calls on each lock whose answers and levels the
// judges find right.
func answersAgree(t *testing.T, rec *model.Record, j Judgement) {
	t.Helper()
	r := traced(rec)
	if slices.ContainsFunc(j.Findings, func(f Finding) bool { return f.Judge == model.JudgeLinearizable || f.Judge == model.JudgeHoldCount }) {
		return
	}
	for _, lock := range r.Locks {
		if r.resurrected(lock) || len(r.Changes(lock)) == 0 {
			continue
		}
		if res := r.search(lock); res.Verdict != linearizability.OK {
			t.Errorf("the judge finds the answers about %s right, and the search %s: %+v", lock, res.Verdict, res.Reason.Refused)
		}
	}
}

func expect(t *testing.T, finds string, j Judgement) {
	t.Helper()
	var want [][2]string
	for line := range strings.Lines(finds) {
		if line = strings.TrimSpace(line); line != "" {
			head, why, _ := strings.Cut(line, ": ")
			want = append(want, [2]string{head, why})
		}
	}
	var got []string
	ok := len(want) == len(j.Findings)
	for i, f := range j.Findings {
		head := f.Judge + " " + string(f.Class)
		if f.Verdict != Broken {
			head = f.Judge + " " + string(f.Verdict)
		}
		for _, e := range f.Excuses {
			head += " (" + string(e.Circumstance) + ")"
		}
		if !slices.ContainsFunc(Details, func(d Detail) bool { return reflect.TypeOf(d) == reflect.TypeOf(f.Detail) }) {
			t.Errorf("%T is not in Details", f.Detail)
		}
		got = append(got, head+": "+Sentence(f))
		ok = ok && head == want[i][0] && strings.Contains(Sentence(f), want[i][1])
	}
	if !ok {
		t.Errorf("the judges found\n\t%s\nand should have found\n\t%s", strings.Join(got, "\n\t"), strings.TrimSpace(finds))
	}
}

// To make two threads believe at once, the server gives the first a shorter lease than it asked
// for. The thread does not notice, and no other judge finds anything.

func TestMutualExclusion(t *testing.T) {
	testJudged(t, []judged{
		{rule: "holds that follow each other", record: `
			0    a/1 takes lease=3000
			1000 a/1 releases
			1100 b/1 takes lease=3000
			2000 b/1 releases
			9000 server leave`},
		{rule: "two threads believe at one instant",
			finds: "mutual-exclusion bug: b/1 was granted l at 2.502s while a/1 believed to hold it since 0.002s: its lease had ended at 2.002s",
			record: `
			0    a/1 takes lease=3000 -> a/1 1 2001
			2002 server expire -> free
			2500 b/1 takes lease=3000
			9000 server leave`},
		{rule: "two threads of one process are two owners", finds: "mutual-exclusion bug: a/2 was granted l", record: `
			0    a/1 takes lease=3000 -> a/1 1 2001
			2002 server expire -> free
			2500 a/2 takes lease=3000
			9000 server leave`},
		{rule: "who is giving up a level believes in the level before", record: `
			0    a/1 takes lease=1000
			500  a/1 takes lease=5000 -> a/1 2 5501
			900  a/1 invoke unlock
			900  a/1 send unlock
			901  a/1 exec unlock -> a/1 1 1001
			1002 server expire -> free
			1100 b/1 takes lease=3000
			1200 a/1 deliver unlock
			1200 a/1 return still_held
			9000 server leave`},
		{rule: "an earlier request of the call set the end of the lease", record: `
			0    a/1 invoke lock lease=3000
			0    a/1 send acquire
			1    a/1 exec acquire
			2    a/1 deliver acquire
			500  a/1 send acquire
			501  a/1 exec acquire -> a/1 1 3001
			700  a/1 deliver acquire
			700  a/1 return granted
			3002 server expire -> free
			3100 b/1 takes lease=3000
			4000 b/1 releases
			9000 server leave`},
		{rule: "no request of the call ran a lease before the end", finds: "mutual-exclusion bug: b/1 was granted l at 3.102s while a/1 believed to hold it since 0.700s: its lease had ended at 2.802s", record: `
			0    a/1 invoke lock lease=3000
			0    a/1 send acquire
			1    a/1 exec acquire
			2    a/1 deliver acquire
			500  a/1 send acquire
			501  a/1 exec acquire -> a/1 1 2801
			700  a/1 deliver acquire
			700  a/1 return granted
			2802 server expire -> free
			3100 b/1 takes lease=3000
			4000 b/1 releases
			9000 server leave`},
		{rule: "for as long as that one lasts", finds: "mutual-exclusion bug: b/1 was granted l at 1.102s while a/1 believed", record: `
			0    a/1 takes lease=3000
			500  a/1 takes lease=5000 -> a/1 2 5501
			900  a/1 invoke unlock
			900  a/1 send unlock
			901  a/1 exec unlock -> a/1 1 1001
			1002 server expire -> free
			1100 b/1 takes lease=3000
			1200 a/1 deliver unlock
			1200 a/1 return still_held
			9000 server leave`},
		{rule: "a failover took back what had made the lease longer",
			finds: "mutual-exclusion limit (hold removed by another hand): its lease had ended at 1.002s, which failover that loses the last 1 writes had shortened at 0.600s",
			record: `
			0    a/1 takes lease=1000
			500  a/1 takes lease=1000 -> a/1 2 1501
			600  server fault 1 failover that loses the last 1 writes -> a/1 1 1001
			1002 server expire -> free
			1100 b/1 takes lease=3000
			9000 server leave`},
		{rule: "a restart forgot what a failover brought back as it was before",
			finds: "mutual-exclusion limit (hold removed by another hand): its lease had ended at 1.002s, and server restart without its data had removed it at 0.600s",
			record: `
			0    a/1 takes lease=1000
			500  a/1 takes lease=1000 -> a/1 2 1501
			600  server fault 1 server restart without its data -> free
			700  server fault 2 failover that loses the last 2 writes -> a/1 1 1001
			1002 server expire -> free
			1100 b/1 takes lease=3000
			9000 server leave`},
		{rule: "two locks are two locks", record: `
			0    a/1 takes lease=3000
			2500 b/1 takes lease=3000 lock=m
			9000 server leave`},
		{rule: "a belief outlasts a shorter one that began later", finds: `
			mutual-exclusion bug: b/1 was granted l at 0.202s
			mutual-exclusion bug: c/1 was granted l at 2.502s while a/1 believed`, record: `
			0    a/1 takes lease=3000 -> a/1 1 101
			102  server expire -> free
			200  b/1 takes lease=1000
			1202 server expire -> free
			2500 c/1 takes lease=3000
			9000 server leave`},

		{rule: "a belief ends one lease after the attempt was sent", record: `
			0    a/1 takes lease=3000 -> a/1 1 2001
			2002 server expire -> free
			2998 b/1 takes lease=3000
			9000 server leave`},
		{rule: "and not a millisecond sooner", finds: "mutual-exclusion bug: b/1 was granted l at 2.999s", record: `
			0    a/1 takes lease=3000 -> a/1 1 2001
			2002 server expire -> free
			2997 b/1 takes lease=3000
			9000 server leave`},
		{rule: "it is the granted attempt that counts, not the call", finds: "mutual-exclusion bug: b/1 was granted l at 4.502s while a/1", record: `
			0    c/1 takes lease=1000
			100  a/1 waits lock lease=3000 # its belief does not end 3 s after this
			1002 server expire -> free
			2000 a/1 gets -> a/1 1 3001
			3002 server expire -> free
			4500 b/1 takes lease=3000
			9000 server leave`},
		{rule: "a belief begins when the grant returns, and not at all after its lease", record: `
			0    a/1 invoke lock lease=3000
			0    a/1 send acquire
			1    a/1 exec acquire -> a/1 1 3001
			3002 server expire -> free
			3100 b/1 takes lease=3000
			4000 a/1 deliver acquire
			4000 a/1 return granted
			9000 server leave`},
		{rule: "nor when it returns at the end of its lease", record: `
			0    a/1 invoke lock lease=3000
			0    a/1 send acquire
			1    a/1 exec acquire -> a/1 1 2001
			2002 server expire -> free
			2500 b/1 takes lease=3000
			3000 a/1 deliver acquire
			3000 a/1 return granted
			9000 server leave`},
		{rule: "with a watchdog a belief has no end of its own", finds: `
			mutual-exclusion bug: b/1 was granted l at 35.002s while a/1 believed to hold it since 0.002s
			lease bug`, record: `
			0     a/1 takes
			30002 server expire -> free
			35000 b/1 takes
			39000 server leave`},
		{rule: "a lock without a watchdog gives its default lease", lock: bareLock, record: `
			0     a/1 takes
			30002 server expire -> free
			35000 b/1 takes
			39000 server leave`},

		{rule: "a belief ends at the call of the release", record: `
			0    a/1 takes lease=9000
			1000 a/1 invoke unlock
			1000 a/1 send unlock
			1001 a/1 exec unlock -> free
			1100 b/1 takes lease=3000
			2500 a/1 deliver unlock
			2500 a/1 return released
			9000 server leave`},
		{rule: "the release of an inner level ends nothing", finds: "mutual-exclusion bug: b/1 was granted l at 2.502s while a/1", record: `
			0    a/1 takes lease=9000
			100  a/1 takes lease=9000 -> a/1 2 9101
			1000 a/1 invoke unlock
			1000 a/1 send unlock
			1001 a/1 exec unlock -> a/1 1 2001
			1002 a/1 deliver unlock
			1002 a/1 return still_held
			2002 server expire -> free
			2500 b/1 takes lease=3000
			9000 server leave`},
		{rule: "a not_held ends all levels", record: `
			0    a/1 takes lease=9000 -> a/1 1 9001
			100  a/1 takes lease=9000 -> a/1 2 1001
			1002 server expire -> free
			1200 a/1 invoke unlock
			1200 a/1 send unlock
			1201 a/1 exec unlock
			1202 a/1 deliver unlock
			1202 a/1 return not_held
			2500 b/1 takes lease=3000
			9000 server leave`},
		{rule: "an unknown release ends all levels", record: `
			0    a/1 takes lease=9000 -> a/1 1 9001
			100  a/1 takes lease=9000 -> a/1 2 1001
			1002 server expire -> free
			1200 a/1 invoke unlock
			1200 a/1 send unlock
			1202 a/1 return unknown
			2500 b/1 takes lease=3000
			9000 server leave`},
		{rule: "a failed release of an inner level does not", finds: "mutual-exclusion bug: b/1 was granted l at 2.502s while a/1", record: `
			0    a/1 takes lease=9000 -> a/1 1 9001
			100  a/1 takes lease=9000 -> a/1 2 1001
			1002 server expire -> free
			1200 a/1 invoke unlock
			1200 a/1 send unlock
			1202 a/1 return error
			2500 b/1 takes lease=3000
			9000 server leave`},
		{rule: "the dead believe nothing", record: `
			0     a/1 takes
			1000  server fault 1 crash of a
			30002 server expire -> free
			35000 b/1 takes
			39000 server leave`},
		{rule: "nor do those whose client was closed", record: `
			0     a/1 takes
			1000  a close
			30002 server expire -> free
			35000 b/1 takes
			39000 server leave`},

		{rule: "a belief in force when the pause begins lasts to its end",
			finds: "mutual-exclusion limit (holder paused past its lease): b/1 was granted l at 5.999s while a/1 believed", record: `
			0    a/1 takes lease=3000
			2000 server fault 1 pause of a for 4s
			3002 server expire -> free
			5997 b/1 takes lease=3000
			6000 server heal 1
			9000 server leave`},
		{rule: "and no longer", record: `
			0    a/1 takes lease=3000
			2000 server fault 1 pause of a for 4s
			3002 server expire -> free
			5998 b/1 takes lease=3000
			6000 server heal 1
			9000 server leave`},
		{rule: "a pause that begins when the belief is over lengthens nothing", record: `
			0    a/1 takes lease=3000
			3000 server fault 1 pause of a for 3s
			3002 server expire -> free
			4000 b/1 takes lease=3000
			6000 server heal 1
			9000 server leave`},
		{rule: "nor does the pause of another", record: `
			0    a/1 takes lease=3000
			2000 server fault 1 pause of b for 4s
			3002 server expire -> free
			4000 c/1 takes lease=3000
			6000 server heal 1
			9000 server leave`},
	})
}

func TestWhatExcusesTwoBelievers(t *testing.T) {
	// unheard is a renewal whose reply is lost.
	unheard := func(at int) string {
		return fmt.Sprintf("\n%d a/1 send renew\n%d a/1 exec renew -> a/1 1 %d\n%d a/1 hit 1 renew\n%d a/1 lost renew reply dropped", at, at+1, at+30001, at+1, at+1)
	}
	testJudged(t, []judged{
		{rule: "a pause that is over before the lease ends excuses nothing", finds: "mutual-exclusion bug: its lease had ended at 2.002s", record: `
			0    a/1 takes lease=3000 -> a/1 1 2001
			1000 server fault 1 pause of a for 1ms
			1001 server heal 1
			2002 server expire -> free
			2500 b/1 takes lease=3000
			9000 server leave`},
		{rule: "nor does one that begins when the hold is gone", finds: "mutual-exclusion bug", record: `
			0    a/1 takes lease=3000 -> a/1 1 1501
			1502 server expire -> free
			1600 server fault 1 pause of a for 5s
			2500 b/1 takes lease=3000
			6600 server heal 1
			9000 server leave`},
		{rule: "nor the pause of the one who came", finds: "mutual-exclusion bug", record: `
			0    a/1 takes lease=3000 -> a/1 1 2001
			1000 server fault 1 pause of b for 1400ms
			2002 server expire -> free
			2400 server heal 1
			2500 b/1 takes lease=3000
			9000 server leave`},
		{rule: "nor a partition where no watchdog renews", finds: "mutual-exclusion bug", record: `
			0    a/1 takes lease=3000 -> a/1 1 2001
			1000 server fault 1 partition of a for 5s
			2002 server expire -> free
			2500 b/1 takes lease=3000
			6000 server heal 1
			9000 server leave`},
		{rule: "a watchdog cut off until its lease ended",
			finds: "mutual-exclusion limit (holder cut off until its lease ended): b/1 was granted l at 41.002s while a/1 believed", record: `
			0     a/1 takes
			10000 a/1 renews
			15000 server fault 1 partition of c, a for 40s
			20000 a/1 send renew
			20000 a/1 lost renew request partition
			40002 server expire -> free
			41000 b/1 takes
			55000 server heal 1
			59000 server leave`},
		{rule: "a grant that came back too late to be renewed in time",
			finds: "mutual-exclusion limit (holder cut off until its lease ended): its lease had ended at 30.002s", record: `
			0     a/1 invoke lock
			0     a/1 send acquire
			1     a/1 exec acquire -> a/1 1 30001
			1     a/1 hit 1 acquire
			25000 a/1 deliver acquire
			25000 a/1 return granted
			30002 server expire -> free
			31000 b/1 takes
			59000 server leave`},
		{rule: "the same, paused", finds: "mutual-exclusion limit (holder cut off until its lease ended): its lease had ended at 30.002s", record: `
			0     a/1 invoke lock
			0     a/1 send acquire
			1     a/1 exec acquire -> a/1 1 30001
			2     server fault 1 pause of a for 25s
			25002 server heal 1
			25002 a/1 deliver acquire
			25003 a/1 return granted
			30002 server expire -> free
			31000 b/1 takes
			59000 server leave`},
		{rule: "what another hand took before the grant came back",
			finds: "mutual-exclusion limit (hold removed by another hand): b/1 was granted l at 0.020s while c/1 believed to hold it since 0.012s; the hold of b/1 was over by then: delete of key l had removed it at 0.008s", record: `
			0    b/1 invoke lock
			0    b/1 send acquire
			1    b/1 exec acquire -> b/1 1 30001
			8    server fault 1 delete of key l -> free
			10   c/1 takes lease=9000
			20   b/1 deliver acquire
			20   b/1 return granted
			1000 c/1 releases
			1500 server leave`},
		{rule: "what another hand took before the thread entered again", finds: "mutual-exclusion limit (hold removed by another hand): delete of key l had removed it at 0.500s", record: `
			0    a/1 takes lease=9000
			500  server fault 1 delete of key l -> free
			1000 a/1 takes lease=9000
			1500 a/1 releases
			2000 b/1 takes lease=9000
			9000 server leave`},
		{rule: "a partition that was over a watchdog period before excuses nothing", finds: `
			mutual-exclusion bug
			lease bug: the last fault that met its messages was partition of a for 15s at 30.000s`, record: `
			0     a/1 takes
			10000 a/1 renews
			15000 server fault 1 partition of a for 15s
			30000 server heal 1
			40002 server expire -> free
			41000 b/1 takes
			59000 server leave`},
		{rule: "a client that has heard nothing for a lease may give up", finds: "mutual-exclusion limit (holder cut off until its lease ended)", record: `
			0     a/1 takes
			10000 a/1 renews` + unheard(20000) + unheard(30000) + unheard(40000) + `
			70002 server expire -> free
			79000 b/1 takes
			99000 server leave`},
		{rule: "and not before", finds: "mutual-exclusion bug\n lease bug: the last fault that met its messages was drop of renew at 30.001s", record: `
			0     a/1 takes
			10000 a/1 renews` + unheard(20000) + unheard(30000) + `
			60002 server expire -> free
			79000 b/1 takes
			99000 server leave`},
		{rule: "the partition of another excuses nothing", finds: "mutual-exclusion bug\n lease bug: no fault met its messages", record: `
			0     a/1 takes
			15000 server fault 1 partition of b for 20s
			30002 server expire -> free
			35000 server heal 1
			36000 b/1 takes
			59000 server leave`},
		{rule: "renewals behind a late message", finds: "mutual-exclusion limit (holder cut off until its lease ended)", record: `
			0     a/1 takes
			10000 a/1 send renew
			10001 a/1 exec renew -> a/1 1 40001
			10002 a/1 deliver renew
			15000 a/2 invoke lock lock=k
			15000 a/2 send acquire lock=k
			15000 a/2 hit 1 acquire delay
			20000 a/1 send renew
			30003 a/1 send renew
			40002 server expire -> free
			40003 a/2 exec acquire lock=k -> a/2 1 70003
			40004 a/2 deliver acquire
			40004 a/2 return granted
			40004 a/1 exec renew nth=2
			40004 a/1 exec renew nth=3
			41000 b/1 takes
			42000 b/1 releases
			42500 a/2 releases lock=k
			60000 server leave`},
		{rule: "lost renewals", finds: "mutual-exclusion limit (holder cut off until its lease ended)", record: `
			0     a/1 takes
			10000 a/1 send renew
			10000 a/1 hit 1 renew
			10000 a/1 lost renew request dropped
			20003 a/1 send renew
			20003 a/1 hit 1 renew
			20003 a/1 lost renew request dropped
			30002 server expire -> free
			31000 b/1 takes
			59000 server leave`},
		{rule: "a renewal that was lost long before the last one", finds: "mutual-exclusion bug\n lease bug", record: `
			0     a/1 takes
			10000 a/1 send renew
			10000 a/1 hit 1 renew
			10000 a/1 lost renew request dropped
			20000 a/1 renews
			50002 server expire -> free
			51000 b/1 takes
			59000 server leave`},
		{rule: "an operator deleted the key",
			finds: "mutual-exclusion limit (hold removed by another hand): delete of key l had removed it at 1.000s", record: `
			0    a/1 takes lease=3000
			1000 server fault 1 delete of key l -> free
			2000 b/1 takes lease=3000
			9000 server leave`},
		{rule: "a failover lost the hold", finds: "mutual-exclusion limit (hold removed by another hand): failover", record: `
			0    a/1 takes lease=3000
			1000 server fault 1 failover that loses the last 1 writes -> free
			2000 b/1 takes lease=3000
			9000 server leave`},
		{rule: "a failover lost a level, and its own release ended the hold", finds: "mutual-exclusion limit (hold removed by another hand): failover", record: `
			0    a/1 takes lease=9000
			100  a/1 takes lease=9000 -> a/1 2 9101
			500  server fault 1 failover that loses the last 1 writes -> a/1 1 9001
			1000 a/1 releases
			1100 b/1 takes lease=3000
			9000 server leave`},
		{rule: "an operator deleted the key of an earlier hold", finds: "mutual-exclusion bug: its lease had ended", record: `
			0    a/1 takes lease=3000
			100  server fault 1 delete of key l -> free
			200  a/1 takes lease=3000 -> a/1 1 1001
			1002 server expire -> free
			2000 b/1 takes lease=3000
			9000 server leave`},
		{rule: "an operator deleted the key, and it got another hold of which it does not know",
			finds: "mutual-exclusion limit (hold removed by another hand): b/1 was granted l at 1.602s while a/1 believed to hold it since 0.002s: delete of key l had removed it at 0.100s", record: `
			0    a/1 takes lease=3000
			100  server fault 1 delete of key l -> free
			200  a/1 invoke lock lease=800
			200  a/1 send acquire
			201  a/1 exec acquire -> a/1 1 1001
			201  a/1 lost acquire reply dropped
			1002 server expire -> free
			1600 b/1 takes lease=300
			1910 a/1 return unknown
			9000 server leave`},
		{rule: "a release by another is no excuse", lock: bareLock, finds: `
			mutual-exclusion bug: unlock of c/1 had ended it at 0.101s
			misdelete bug
			linearizable bug`, record: `
			0    a/1 takes lease=3000
			100  c/1 releases
			200  b/1 takes lease=3000
			9000 server leave`},
		{rule: "the server never knew of it", finds: "mutual-exclusion bug: the server never knew of the hold of a/1\n linearizable bug\n hold-count bug", record: `
			0    a/1 invoke lock lease=3000
			1    a/1 return granted
			200  b/1 takes lease=3000
			9000 server leave`},
	})
}

func TestMisdelete(t *testing.T) {
	// shared is a renewal of a/1, sent at a time, that comes in the next hold, which has a value.
	shared := func(next, value string, sent int) string {
		return fmt.Sprintf(`
			0    a/1 takes -> a/1 1 30001 value=v
			%[1]d a/1 send renew
			1000 a/1 releases
			1100 %[2]s takes -> %[2]s 1 31101 value=%[3]s
			1200 a/1 exec renew -> %[2]s 1 31200 value=%[3]s
			1201 a/1 deliver renew
			2000 %[2]s releases
			9000 server leave`, sent, next, value)
	}
	const handedOver = `
			0    a/1 takes lease=9000
			10   b/1 waits lock
			100  a/1 invoke unlock
			100  a/1 send unlock command=SEGMENT
			101  a/1 exec unlock -> word 1 9101
			102  a/1 deliver unlock
			102  a/1 return released
			200  b/1 send acquire command=SEGMENT
			201  b/1 exec acquire nth=2 -> free
			202  b/1 return unknown
			9000 server leave`
	testJudged(t, []judged{
		{rule: "on a stream a waiter that leaves may have been handed the lock, by a value that nobody could read", record: handedOver},
		{rule: "or the end of a lease has brought its ticket forward", record: `
			0    a/1 takes lease=1000
			10   b/1 waits lock
			1000 server expire -> word 1 9101
			1200 b/1 send acquire command=SEGMENT
			1201 b/1 exec acquire nth=2 -> free
			1202 b/1 return unknown
			9000 server leave`},
		{rule: "elsewhere its own value would be known", finds: "misdelete bug: acquire of b/1 (EVAL, sent at 0.200s) ended the hold of word", record: strings.ReplaceAll(handedOver, " command=SEGMENT", "")},
		{rule: "a late release ends the next owner's hold", lock: bareLock, finds: `
			misdelete bug: unlock of a/1 (EVAL, sent at 3.000s) ended the hold of b/1 on l at 3.001s
			linearizable bug`, record: `
			0    a/1 takes lease=2000
			2002 server expire -> free
			2500 b/1 takes lease=9000
			3000 a/1 releases
			9000 server leave`},
		{rule: "a late release that is refused", lock: bareLock, record: `
			0    a/1 takes lease=2000
			2002 server expire -> free
			2500 b/1 takes lease=9000
			3000 a/1 invoke unlock
			3000 a/1 send unlock
			3001 a/1 exec unlock
			3002 a/1 deliver unlock
			3002 a/1 return not_held
			9000 server leave`},
		{rule: "a release of one's own", record: `
			0    a/1 takes lease=2000
			1000 a/1 releases
			9000 server leave`},
		{rule: "force_unlock is not meant", record: `
			0    a/1 takes lease=9000
			1000 b/1 invoke force_unlock
			1000 b/1 send force_unlock
			1001 b/1 exec force_unlock -> free
			1002 b/1 deliver force_unlock
			1002 b/1 return released
			9000 server leave`},
		{rule: "nor is expiry, nor an operator", record: `
			0    a/1 takes lease=1000
			1002 server expire -> free
			2000 a/1 takes lease=1000
			2500 server fault 1 delete of key l -> free
			9000 server leave`},
		{rule: "a level taken away", finds: "misdelete bug: unlock of b/1 (EVAL, sent at 0.200s) changed to 1 level the hold of a/1\n hold-count bug", record: `
			0    a/1 takes lease=9000
			100  a/1 takes lease=9000 -> a/1 2 9101
			200  b/1 invoke unlock
			200  b/1 send unlock
			201  b/1 exec unlock -> a/1 1 9101
			202  b/1 deliver unlock
			202  b/1 return not_held
			9000 server leave`},
		{rule: "a try that shortens the hold", finds: "misdelete bug: acquire of b/1 (EVAL, sent at 0.100s) shortened the hold of a/1", record: `
			0    a/1 takes lease=9000
			100  b/1 waits try_lock -> a/1 1 5001
			102  b/1 return busy
			5002 server expire -> free
			9000 server leave`},
		{rule: "a try that prolongs the hold", finds: "misdelete bug: acquire of b/1 (EVAL, sent at 0.100s) prolonged the hold of a/1", record: `
			0    a/1 takes lease=3000
			100  b/1 waits try_lock -> a/1 1 5001
			102  b/1 return busy
			5002 server expire -> free
			9000 server leave`},
		{rule: "a try that makes it endless", finds: `
			misdelete bug: acquire of b/1 (EVAL, sent at 0.100s) prolonged the hold of a/1
			lease bug: has no time to live`, record: `
			0    a/1 takes lease=3000
			100  b/1 waits try_lock -> a/1 1 endless
			102  b/1 return busy
			9000 server leave`},
		{rule: "a try that only queues", record: `
			0    a/1 takes lease=9000
			100  b/1 waits lock -> a/1 1 9001 queue=b/1
			9000 server leave`},
		{rule: "a renewal for another's hold", finds: "misdelete bug: renew of b/1 (EVAL, sent at 0.100s) prolonged the hold of a/1\n lease bug", record: `
			0    a/1 takes lease=3000
			100  b/1 renews -> a/1 1 30101
			9000 server leave`},
		{rule: "a late renewal of the value that the threads of a process share", record: shared("a/2", "v", 900)},
		{rule: "one that is sent after the own hold", record: shared("a/2", "v", 1050), finds: "misdelete bug: renew of a/1 (EVAL, sent at 1.050s) prolonged the hold of a/2\n lease bug"},
		{rule: "of another value", record: shared("a/2", "w", 900), finds: "misdelete bug: renew of a/1 (EVAL, sent at 0.900s) prolonged the hold of a/2"},
		{rule: "of another process", record: shared("b/1", "v", 900), finds: "misdelete bug: renew of a/1 (EVAL, sent at 0.900s) prolonged the hold of b/1"},
		{rule: "a renewal for another's hold, by a part of a stream", finds: "misdelete bug: renew of b/1 (SEGMENT, sent at 0.100s) prolonged the hold of a/1", record: `
			0    a/1 takes lease=3000
			100  b/1 send renew command=SEGMENT
			101  b/1 exec renew -> a/1 1 5001
			5002 server expire -> free
			9000 server leave`},
		{rule: "it may be that of another stream which ran at the same time", record: `
			0    a/1 takes lease=3000
			100  a/1 send renew command=SEGMENT
			100  b/1 send renew command=SEGMENT
			101  a/1 exec renew
			101  b/1 exec renew -> a/1 1 5001
			5002 server expire -> free
			9000 server leave`},
		{rule: "one of the owner's process may set the lease of their session, which a restart had made longer", record: `
			0    a/1 takes lease=3000
			100  a/2 send renew command=SEGMENT
			101  a/2 exec renew -> a/1 1 2901
			2902 server expire -> free
			9000 server leave`},
		{rule: "also within a call, if it leaves a whole lease", record: `
			0    a/1 takes lease=90000
			100  a/2 invoke lock lock=k
			100  a/2 send acquire lock=k command=SEGMENT
			101  a/2 exec acquire -> a/1 1 30101
			102  a/2 return unknown lock=k
			30102 server expire -> free
			90000 server leave`},
		{rule: "and not if it leaves less", finds: "misdelete bug: acquire of a/2 (SEGMENT, sent at 0.100s) shortened the hold of a/1", record: `
			0    a/1 takes lease=90000
			100  a/2 invoke lock lock=k
			100  a/2 send acquire lock=k command=SEGMENT
			101  a/2 exec acquire -> a/1 1 30099
			102  a/2 return unknown lock=k
			30102 server expire -> free
			90000 server leave`},
		{rule: "one of another process has no such session", finds: "misdelete bug: renew of b/1 (SEGMENT, sent at 0.100s) shortened the hold of a/1", record: `
			0    a/1 takes lease=3000
			100  b/1 send renew command=SEGMENT
			101  b/1 exec renew -> a/1 1 2901
			2902 server expire -> free
			9000 server leave`},
		{rule: "but whose hold ended with it", finds: "misdelete bug: renew of b/1 (SEGMENT, sent at 0.100s) ended the hold of a/1", record: `
			0    a/1 takes lease=3000
			100  b/1 send renew command=SEGMENT
			101  b/1 exec renew -> free
			9000 server leave`},
		{rule: "a renewal by another process, of an unknown thread", finds: "misdelete bug: EVAL of b (sent at 0.100s) prolonged the hold of a/1", record: `
			0    a/1 takes lease=3000
			100  b/2 send PEXPIRE nobody=y
			101  b/2 exec PEXPIRE -> a/1 1 30101
			9000 server leave`},
		{rule: "a renewal by its own process, of an unknown thread", record: `
			0    a/1 takes lease=3000
			100  a/2 send PEXPIRE nobody=y
			101  a/2 exec PEXPIRE -> a/1 1 30101
			9000 server leave`},
		{rule: "a renewal for several of one process", record: `
			0     a/1 takes
			0     a/2 takes lock=m
			10000 a/1 send renew for=a/1,a/2
			10001 a/1 exec renew -> a/1 1 40001
			19000 server leave`},
	})
}

func TestLinearizable(t *testing.T) {
	// b stands in the queue, is thrown out, and comes back by a late command of its call, which
	// ends without an answer.
	const cameBack = `
			0    a/1 takes
			100  b/1 invoke try_lock_timed wait=3900
			100  b/1 send acquire
			101  b/1 exec acquire -> a/1 1 30001 queue=b/1
			102  b/1 deliver acquire
			200  b/1 send acquire
			3100 server expire -> a/1 1 30001
			3500 b/1 exec acquire nth=2 -> a/1 1 30001 queue=b/1
			3600 a/1 releases -> free queue=b/1
			3700 c/1 invoke try_lock
			3700 c/1 send acquire
			3701 c/1 exec acquire
			3702 c/1 deliver acquire
			3702 c/1 return busy`
	entryGivenBack := `
		0    a/1 takes lease=5000
		1000 a/1 invoke lock lease=5000
		1000 a/1 send acquire
		1001 a/1 exec acquire -> a/1 2 6001
		2000 a/1 send unlock
		2001 a/1 exec unlock -> a/1 1 7001
		2500 a/1 return unknown
	`
	const singleAttempt = `
		0    a/1 takes lease=9000
		100  b/1 invoke try_lock_timed
		100  b/1 send acquire
		101  b/1 exec acquire -> a/1 1 9001
		200  a/1 releases -> free
		300  c/1 takes lease=100 -> c/1 1 401
		350  c/1 releases -> free
		400  b/1 send acquire
		402  b/1 exec acquire -> b/1 1 9401
		402  b/1 return granted
		9000 server leave`
	const handedOver = `
		0    a/1 takes
		100  b/1 invoke lock lease=8000
		100  b/1 send acquire
		101  b/1 exec acquire -> a/1 1 30001 queue=b/1
		102  b/1 deliver acquire
		200  a/1 releases -> b/1 1 8200
		202  b/1 return granted`
	const tried = `
		0  b/1 takes
		5  a/1 invoke try_lock
		5  a/1 send acquire
		6  a/1 exec acquire -> b/1 1 30001 queue=a/1
		7  a/1 deliver acquire
		8  b/1 releases -> a/1 1 30009
		12 a/1 renews -> a/1 1 30013
		20 a/1 send unlock`
	const writtenWithOthers = `
		0    a/1 takes
		100  a/1 invoke unlock
		110  a/1 send unlock nobody=y
		111  a/1 exec unlock -> free
		120  a/1 return unknown
		200  a/1 takes
		300  a/1 releases
		9000 server leave`
	testJudged(t, []judged{
		{rule: "a renewal while an unlock waits is no effect of that unlock", lock: ourLock, record: `
			0     a/1 takes
			9000  a/1 invoke unlock
			9000  a/1 send unlock
			9001  a/1 lost unlock request dropped
			10000 a/1 send renew call=y
			10001 a/1 exec renew -> a/1 1 40001
			10002 a/1 deliver renew
			12000 a/1 return unknown
			40001 server expire -> free
			41000 b/1 takes
			42000 b/1 releases
			49000 server leave`},
		{rule: "a request that names no thread is that of the unlock under way", lock: ourLock, record: writtenWithOthers},
		{rule: "so it may say that it released", lock: anybodys, record: strings.Replace(writtenWithOthers, "return unknown", "return released", 1)},
		{rule: "unless the request is of another process", lock: anybodys, record: strings.NewReplacer("return unknown", "return released", "110  a/1 send", "110  b/1 send", "111  a/1 exec", "111  b/1 exec").Replace(writtenWithOthers),
			finds: `
				misdelete bug: EVAL of b
				linearizable bug: l: a/1 release`},
		{rule: "a hold that the end of another handed over ends with its lease", lock: ourFairLock, record: handedOver + `
			8201 server expire -> free
			9000 c/1 takes`},
		{rule: "and not before", lock: ourFairLock, record: handedOver + `
			5000 c/1 takes`,
			finds: `
				mutual-exclusion bug: c/1 was granted l at 5.002s
				misdelete bug: acquire of c/1`},
		{rule: "a try that ends its own hold and is refused had none to be renewed", lock: ourFairLock, record: tried + `
			21 a/1 exec unlock -> free
			22 a/1 deliver unlock
			23 a/1 return busy`},
		{rule: "a hold that the try leaves is renewed", lock: ourFairLock, record: tried + `
			22 a/1 deliver unlock
			23 a/1 return busy
			9000 server leave`,
			finds: `
				hold-count bug: the server counts 1 for a/1`},
		{rule: "who is thrown out after its call ended without an answer, and is granted the lock late, had no turn", lock: ourFairLock, record: `
			0    a/1 takes
			100  b/1 invoke lock
			100  b/1 send acquire
			101  b/1 exec acquire -> a/1 1 30001 queue=b/1
			102  b/1 deliver acquire
			200  a/1 releases -> free queue=b/1
			200  b/1 send acquire
			210  b/1 return unknown
			3200 c/1 takes
			3300 c/1 releases
			3400 b/1 exec acquire nth=2 -> b/1 1 33400
			33400 server expire -> free
			40000 server leave`},
		{rule: "who came back into the queue is in the way until it is out for good", lock: ourFairLock, record: cameBack + `
			3800 b/1 send leave
			3801 b/1 exec leave -> free
			4000 b/1 return unknown
			9000 server leave`},
		{rule: "an entry that is given back starts the lease anew, which ends", record: entryGivenBack + `
			7002 server expire -> free
			8000 a/1 invoke unlock
			8000 a/1 send unlock
			8001 a/1 exec unlock
			8002 a/1 deliver unlock
			8002 a/1 return not_held
			9000 server leave`},
		{rule: "and not before", finds: "linearizable bug: l: a/1 release (6.500s..6.502s) answered not_held, but the lock was held by a/1", record: entryGivenBack + `
			6500 a/1 invoke unlock
			6500 a/1 send unlock
			6501 a/1 exec unlock
			6502 a/1 deliver unlock
			6502 a/1 return not_held
			7002 server expire -> free
			9000 server leave`},
		{rule: "a lease that was replaced while its renewal was under way ends in the other order, too",
			finds: "linearizable bug: l: a/1 release (9.000s..9.002s) answered released, but the lock was free", record: `
			0    a/1 takes
			10   a/1 takes -> a/1 2 30011
			100  a/1 send renew
			101  a/1 exec renew -> a/1 2 1000
			103  a/1 invoke unlock
			103  a/1 send unlock
			104  a/1 exec unlock -> a/1 1 1100
			105  a/1 deliver renew
			106  a/1 deliver unlock
			106  a/1 return still_held
			1101 server expire -> free
			9000 a/1 invoke unlock
			9000 a/1 send unlock
			9001 a/1 exec unlock
			9002 a/1 deliver unlock
			9002 a/1 return released
			9003 server leave`},
		{rule: "the answers fit one order", record: `
			0    a/1 takes lease=3000
			100  b/1 waits try_lock
			102  b/1 return busy
			1000 a/1 releases
			2000 b/1 takes lease=3000
			9000 server leave`},
		{rule: "a grant while another holds", finds: `
			mutual-exclusion bug
			misdelete bug`, record: `
			0    a/1 takes lease=3000
			100  b/1 takes lease=3000
			9000 server leave`},
		{rule: "busy while nobody holds", finds: "linearizable bug: b/1 acquire (2.000s..2.002s) answered busy", record: `
			0    a/1 takes lease=3000
			1000 a/1 releases
			2000 b/1 waits try_lock
			2002 b/1 return busy
			9000 server leave`},
		{rule: "busy for its owner where re-entry is not counted", lock: bareLock, record: `
			0    a/1 takes lease=3000
			2000 a/1 waits try_lock
			2002 a/1 return busy
			9000 server leave`},
		{rule: "busy for its owner where it is", finds: "linearizable bug", record: `
			0    a/1 takes lease=3000
			2000 a/1 waits try_lock
			2002 a/1 return busy
			9000 server leave`},
		{rule: "a retried command that ran twice is one grant", finds: `
			hold-count bug`, record: `
			0    a/1 invoke lock lease=9000
			0    a/1 send acquire
			1    a/1 exec acquire -> a/1 1 9001
			1    a/1 lost acquire reply dropped
			100  a/1 send acquire
			101  a/1 exec acquire -> a/1 2 9101
			102  a/1 deliver acquire
			102  a/1 return granted
			1000 a/1 invoke unlock
			1000 a/1 send unlock
			1001 a/1 exec unlock -> a/1 1 9101
			1002 a/1 deliver unlock
			1002 a/1 return still_held
			9000 server leave`},
		{rule: "of a retried command that was granted two holds the caller has the second", record: `
			0    a/1 invoke lock lease=1000
			0    a/1 send acquire
			1    a/1 exec acquire -> a/1 1 1001
			1    a/1 lost acquire reply dropped
			1002 server expire -> free
			1100 b/1 takes lease=9000
			1200 b/1 releases
			3000 a/1 send acquire
			3001 a/1 exec acquire -> a/1 1 4001
			3002 a/1 deliver acquire
			3002 a/1 return granted
			3100 a/1 releases
			9000 server leave`},
		{rule: "the run that comes when the call is over is none of its own", finds: "hold-count bug: at 3.000s", record: `
			0    a/1 invoke lock lease=1000
			0    a/1 send acquire
			100  a/1 send acquire
			101  a/1 exec acquire -> a/1 1 1101
			102  a/1 deliver acquire
			102  a/1 return granted
			1102 server expire -> free
			3000 a/1 exec acquire nth=1 -> a/1 1 4000
			4001 server expire -> free
			4500 b/1 takes lease=1000
			5000 b/1 releases
			9000 server leave`},
		{rule: "and its lease is that of the later run", finds: "hold-count bug: counts 2 for a/1 on l, and its calls add up to 1", record: `
			0    a/1 invoke lock lease=1000
			0    a/1 send acquire
			1    a/1 exec acquire -> a/1 1 1001
			1    a/1 lost acquire reply dropped
			100  a/1 send acquire
			101  a/1 exec acquire -> a/1 2 1101
			102  a/1 deliver acquire
			102  a/1 return granted
			1102 server expire -> free
			1200 b/1 takes lease=1000
			1500 b/1 releases
			9000 server leave`},
		{rule: "a lease's end frees the lock", record: `
			0    a/1 takes lease=1000
			1002 server expire -> free
			1100 b/1 waits lock lease=1000 -> b/1 1 2101
			1102 b/1 return granted
			1200 a/1 invoke unlock
			1200 a/1 send unlock
			1201 a/1 exec unlock
			1202 a/1 deliver unlock
			1202 a/1 return not_held
			2102 server expire -> free
			9000 server leave`},
		{rule: "an operator's hand frees the lock", record: `
			0    a/1 takes lease=9000
			1000 server fault 1 delete of key l -> free
			1200 a/1 invoke unlock
			1200 a/1 send unlock
			1201 a/1 exec unlock
			1202 a/1 deliver unlock
			1202 a/1 return not_held
			9000 server leave`},
		{rule: "fair: busy while a dead waiter stands in front", lock: fairLock, finds: "tidy limit (waiter gone from the queue)", record: `
			0    a/1 takes lease=9000
			100  b/1 waits lock lease=9000 -> a/1 1 9001 queue=b/1
			200  server fault 1 crash of b
			300  a/1 releases -> free queue=b/1
			400  c/1 waits try_lock
			402  c/1 return busy
			500  server leave`},
		{rule: "fair: and one that waits in vain", lock: fairLock, finds: "tidy bug: b/1 stands in the queue", record: `
			0    a/1 takes lease=9000
			100  b/1 waits lock lease=9000 -> a/1 1 9001 queue=b/1
			300  a/1 releases -> free queue=b/1
			400  c/1 waits try_lock
			402  c/1 return busy
			450  b/1 return error
			9000 server leave`},
		{rule: "fair: a single attempt that did not queue, and is sent again, has no turn", lock: fairLock, finds: "wait-bound bug", record: singleAttempt},
		{rule: "fair: one that did queue has", lock: fairLock, finds: " wait-bound bug",
			record: strings.NewReplacer("9001", "9001 queue=b/1", "free", "free queue=b/1", "1 401", "1 401 queue=b/1").Replace(singleAttempt)},
		{rule: "fair: one that is granted past who waits has", lock: fairLock, finds: `
			fifo bug: c/1 was granted l at 0.251s before b/1`, record: `
			0    a/1 takes lease=9000
			100  b/1 waits lock lease=9000 -> a/1 1 9001 queue=b/1
			200  a/1 releases -> free queue=b/1
			250  c/1 takes try_lock_timed lease=1000 -> c/1 1 1251 queue=b/1
			300  c/1 releases -> free queue=b/1
			310  b/1 gets -> b/1 1 9311
			9000 server leave`},
		{rule: "fair: one that was refused keeps its place until it says so", lock: fairLock, record: `
			0    a/1 takes lease=9000
			100  b/1 waits try_lock_timed wait=310 lease=9000 -> a/1 1 9001 queue=b/1
			300  a/1 releases -> free queue=b/1
			400  c/1 waits try_lock
			410  b/1 send leave
			411  b/1 exec leave -> free
			412  b/1 return busy
			414  c/1 return busy
			9000 server leave`},
		{rule: "fair: not when it has gone", lock: fairLock, finds: `
			linearizable bug: c/1 acquire (0.400s..0.402s) answered busy, but the lock was free and no other acquire waited
			tidy bug: b/1 stands in the queue`, record: `
			0    a/1 takes lease=9000
			100  b/1 waits lock lease=9000 -> a/1 1 9001 queue=b/1
			300  a/1 releases -> free queue=b/1
			350  b/1 return error
			400  c/1 waits try_lock
			402  c/1 return busy
			9000 server leave`},
		{rule: "fair: the try that came first was not sent first", lock: fairLock, record: `
			0    a/1 takes lease=9000
			100  b/1 invoke lock lease=9000
			100  b/1 send acquire
			150  b/1 send acquire
			151  b/1 exec acquire -> a/1 1 9001 queue=b/1
			200  c/1 waits lock lease=9000 -> a/1 1 9001 queue=b/1,c/1
			1000 a/1 releases -> free queue=b/1,c/1
			1010 b/1 gets -> b/1 1 10011 queue=c/1
			1500 b/1 releases -> free queue=c/1
			1510 c/1 gets -> c/1 1 10511
			1600 b/1 exec acquire nth=1
			9000 server leave`},
		{rule: "fair: a later arrival is not placed before one that waits", lock: fairLock, finds: `
			fifo bug`, record: `
			0    a/1 takes lease=3000
			100  b/1 waits lock lease=3000 -> a/1 1 3001 queue=b/1
			200  c/1 waits lock lease=3000 -> a/1 1 3001 queue=b/1,c/1
			1000 a/1 releases -> free queue=b/1,c/1
			1100 c/1 gets -> c/1 1 4101 queue=b/1
			2000 c/1 releases -> free queue=b/1
			2100 b/1 gets
			9000 server leave`},
	})
}

// A hold that a failover brought back belongs to no call, so no history can show what was right.
// Without the failover the same answers are wrong.
func TestAHoldThatARestartTookFromACallUnderWay(t *testing.T) {
	testJudged(t, []judged{
		{rule: "it was there for others", record: `
			0    a/1 invoke lock lease=9000
			0    a/1 send acquire
			1    a/1 exec acquire -> a/1 1 9001
			100  b/1 waits try_lock
			102  b/1 return busy
			200  server fault 1 server restart without its data -> free
			300  a/1 send acquire
			301  a/1 exec acquire -> a/1 1 9301
			302  a/1 deliver acquire
			302  a/1 return granted
			400  a/1 releases
			9000 server leave`},
	})
}

func TestNoHistoryOfWhatAFailoverBroughtBack(t *testing.T) {
	for by, want := range map[string]int{"server fault 1 failover that loses the last 1 writes": 0, "b/1 exec other": 1} {
		record := `
			0    b/1 send other
			0    a/1 takes lease=9000
			1000 a/1 releases
			1100 ` + by + ` -> a/1 1 9001
			1200 b/1 waits try_lock
			1202 b/1 return granted
			9002 server expire -> free
			9100 server leave`
		if found := (answerJudge{traced(recordOf(t, plainLock, record))}).judge(); len(found) != want {
			t.Errorf("%s: found %v, want %d findings", by, found, want)
		}
	}
}

func TestHoldCount(t *testing.T) {
	anew := func(levels string) string {
		return `
			0    a/1 takes lease=9000
			100  a/1 invoke lock lease=9000
			100  a/1 send acquire
			101  a/1 exec acquire -> free
			102  a/1 deliver acquire
			110  a/1 send acquire
			111  a/1 exec acquire nth=2 -> a/1 ` + levels + ` 9111
			111  a/1 lost acquire reply dropped
			150  a/1 return unknown
			9000 server leave`
	}
	ownForce := `
		0    a/1 invoke force_unlock
		0    a/1 send force_unlock
		1000 a/1 return unknown
		2000 a/1 invoke lock
		2000 a/1 send acquire
		2001 a/1 exec acquire -> a/1 1 32001
	`
	testJudged(t, []judged{
		{rule: "grants less releases", record: `
			0    a/1 takes lease=9000
			100  a/1 takes lease=9000 -> a/1 2 9101
			200  a/1 invoke unlock
			200  a/1 send unlock
			201  a/1 exec unlock -> a/1 1 9101
			202  a/1 deliver unlock
			202  a/1 return still_held
			300  a/1 releases
			9000 server leave`},
		{rule: "a grant counted twice", finds: "hold-count bug: at 0.002s, after its lock, the server counts 2 for a/1 on l, and its calls add up to 1", record: `
			0    a/1 takes lease=9000 -> a/1 2 9001
			9000 server leave`},
		{rule: "a release that gives all levels up", finds: "linearizable bug: answered still_held, but the lock was free\nhold-count bug: at 0.202s, after its unlock, the server counts 0 for a/1 on l, and its calls add up to 1", record: `
			0    a/1 takes lease=9000
			100  a/1 takes lease=9000 -> a/1 2 9101
			200  a/1 invoke unlock
			200  a/1 send unlock
			201  a/1 exec unlock -> free
			202  a/1 deliver unlock
			202  a/1 return still_held
			9000 server leave`},
		{rule: "a release that gives nothing up", finds: "linearizable bug: answered released, but the lock was held by a/1\nhold-count bug: after its unlock, the server counts 1", record: `
			0    a/1 takes lease=9000
			200  a/1 releases -> a/1 1 9002
			9000 server leave`},
		{rule: "each owner has a count of its own", record: `
			0    a/1 takes lease=1000
			1002 server expire -> free
			1100 a/2 takes lease=9000
			1200 a/2 takes lease=9000 -> a/2 2 10201
			9000 server leave`},
		{rule: "counting begins anew when the key was lost", record: `
			0    a/1 takes lease=1000
			100  a/1 takes lease=1000 -> a/1 2 1101
			1102 server expire -> free
			1200 a/1 takes lease=1000
			1300 server fault 1 delete of key l -> free
			1400 a/1 takes lease=1000
			1500 b/1 invoke force_unlock
			1500 b/1 send force_unlock
			1501 b/1 exec force_unlock -> free
			1502 b/1 deliver force_unlock
			1502 b/1 return released
			1600 a/1 takes lease=9000
			9000 server leave`},
		{rule: "a force_unlock is nobody's release, also the thread's own that comes late", record: ownForce + `
			2003 a/1 exec force_unlock -> free
			2010 a/1 return unknown
			9000 server leave`},
		{rule: "and without it the level counts", finds: "hold-count bug: at 3.001s, after its lock, the server counts 2 for a/1 on l, and its calls add up to 1", record: ownForce + `
			2010 a/1 return unknown
			3000 a/1 send acquire
			3001 a/1 exec acquire -> a/1 2 33001
			9000 server leave`},
		{rule: "a grant whose hold was lost before it returned adds nothing", record: `
			0    a/1 invoke lock lease=1000
			0    a/1 send acquire
			1    a/1 exec acquire -> a/1 1 1001
			1002 server expire -> free
			2000 a/1 deliver acquire
			2000 a/1 return granted
			9000 server leave`},
		{rule: "unless it was given another when it was sent again", record: `
			0    a/1 invoke lock lease=1000
			0    a/1 send acquire
			1    a/1 exec acquire -> a/1 1 1001
			1    a/1 lost acquire reply dropped
			1002 server expire -> free
			3000 a/1 send acquire
			3001 a/1 exec acquire -> a/1 1 4001
			3002 a/1 deliver acquire
			3002 a/1 return granted
			9000 server leave`},
		{rule: "while a call of the owner is open nothing is compared", record: `
			0    a/1 takes lease=9000
			100  a/1 invoke lock lease=9000
			100  a/1 send acquire
			101  a/1 exec acquire -> a/1 3 9101
			900  server leave`},
		{rule: "nor of the dead", record: `
			0    a/1 invoke lock lease=9000
			0    a/1 send acquire
			1    server fault 1 crash of a
			2    a/1 exec acquire -> a/1 1 9002
			9000 server leave`},
		{rule: "an unknown acquire that ran counts", record: `
			0    a/1 takes lease=9000
			100  a/1 invoke lock lease=9000
			100  a/1 send acquire
			101  a/1 exec acquire -> a/1 2 9101
			101  a/1 lost acquire reply dropped
			150  a/1 return unknown
			200  a/1 invoke unlock
			200  a/1 send unlock
			201  a/1 exec unlock -> a/1 1 9101
			202  a/1 deliver unlock
			202  a/1 return still_held
			9000 server leave`},
		{rule: "once, however often it ran", finds: "hold-count bug: at 0.150s, after its lock, the server counts 3 for a/1 on l, and its calls add up to 2", record: `
			0    a/1 takes lease=9000
			100  a/1 invoke lock lease=9000
			100  a/1 send acquire
			101  a/1 exec acquire -> a/1 2 9101
			101  a/1 lost acquire reply dropped
			110  a/1 send acquire
			111  a/1 exec acquire -> a/1 3 9111
			111  a/1 lost acquire reply dropped
			150  a/1 return unknown
			9000 server leave`},
		{rule: "an unknown acquire that first ends a level that was left", record: anew("1")},
		{rule: "and which takes two for it", finds: "hold-count bug: at 0.150s, after its lock, the server counts 2 for a/1 on l, and its calls add up to 1", record: anew("2")},
		{rule: "an unknown acquire that never ran does not", record: `
			0    a/1 takes lease=9000
			100  a/1 invoke lock lease=9000
			100  a/1 send acquire
			100  a/1 lost acquire request dropped
			150  a/1 return unknown
			200  a/1 releases
			9000 server leave`},
		{rule: "an unknown acquire that runs after it returned counts then", record: `
			0    a/1 takes lease=9000
			100  a/1 invoke lock lease=9000
			100  a/1 send acquire
			150  a/1 return unknown
			160  a/1 exec acquire -> a/1 2 9160
			9000 server leave`},
		{rule: "an unknown release that ran counts", record: `
			0    a/1 takes lease=9000
			100  a/1 takes lease=9000 -> a/1 2 9101
			200  a/1 invoke unlock
			200  a/1 send unlock
			201  a/1 exec unlock -> a/1 1 9101
			201  a/1 lost unlock reply dropped
			250  a/1 return unknown
			300  a/1 releases
			9000 server leave`},
	})
}

// order is a queue of two behind a holder. The cases differ in which of them comes next.
const order = `
	0    a/1 takes lease=9000
	100  b/1 waits lock lease=9000 -> a/1 1 9001 queue=b/1
	200  c/1 waits lock lease=9000 -> a/1 1 9001 queue=b/1,c/1
	9000 server leave
`

// overtaken is order when the later of the two comes first.
const overtaken = order + `
	1000 a/1 releases -> free queue=b/1,c/1
	1010 c/1 gets -> c/1 1 10011 queue=b/1
	1500 c/1 releases -> free queue=b/1
	1510 b/1 gets
`

// evicted is the same after the server took b out of its queue.
const evicted = order + `
	600  c/1 send acquire
	601  c/1 exec acquire -> a/1 1 9001 queue=c/1
	1000 a/1 releases -> free queue=c/1
	1010 c/1 gets
	1500 c/1 releases
	1510 b/1 gets
`

// outOfTurn is a run in which a single try takes the lock before the waiters.
const outOfTurn = order + `
	1000 a/1 releases -> free queue=b/1,c/1
	1005 d/1 takes try_lock lease=3000 -> d/1 1 4006 queue=b/1,c/1
	1500 d/1 releases -> free queue=b/1,c/1
	1510 b/1 gets -> b/1 1 10011 queue=c/1`

// skewed is the fair lock with the clock of b apart.
func skewed(by time.Duration) model.Params {
	p := fairLock
	p.Processes = []model.ProcessParams{{Name: "a"}, {Name: "b", Skew: by}}
	return p
}

func TestFIFO(t *testing.T) {
	const held = `
			0    b/1 invoke lock
			1    b/1 send acquire
			1    b/1 hit 1 acquire request
			2    b/1 lost acquire request dropped
			10   b/1 send acquire
			11   b/1 exec acquire nth=2
			12   c/1 takes lease=9000
			20   c/1 releases
			25   b/1 gets
			9000 server leave`
	reset := strings.NewReplacer("1    b/1 hit 1 acquire request", "2    server fault 1 failover of server", "2    b/1 lost acquire request dropped", "3    b/1 lost acquire request connection reset").Replace(held)
	const anew = `
			0    a/1 takes -> a/1 1 30001
			100  c/1 invoke lock
			100  c/1 send acquire
			150  c/1 return unknown
			160  c/1 waits lock -> a/1 1 30001 queue=c/1`
	testJudged(t, []judged{
		{rule: "waiters get it in the order of their first try", lock: fairLock, record: order + `
			1000 a/1 releases -> free queue=b/1,c/1
			1010 b/1 gets -> b/1 1 10011 queue=c/1
			1500 b/1 releases -> free queue=c/1
			1510 c/1 gets`},
		{rule: "the later comes first", lock: fairLock,
			finds: " fifo bug: c/1 was granted l at 1.011s before b/1, which had first tried at 0.101s and still waited", record: overtaken},
		{rule: "with wall clocks apart it is a limit", lock: skewed(time.Second),
			finds: " fifo limit (wall clocks apart)", record: overtaken},
		{rule: "but not what is wrong in any order", lock: skewed(time.Second), finds: "linearizable bug", record: `
			0    a/1 takes -> a/1 1 30001
			1000 a/1 releases -> free
			1100 b/1 waits try_lock
			1101 b/1 return busy
			9000 server leave`},
		{rule: "a fault that met an earlier request of its call is an excuse", lock: fairLock, finds: " fifo limit (waiter away when its turn came): c/1 was granted l at 0.013s before b/1", record: held},
		{rule: "one that met an earlier call is none", lock: fairLock, finds: " fifo bug: c/1 was granted l at 0.013s before b/1", record: strings.Replace(held, "2    b/1 lost", "2    b/1 return unknown\n2    b/1 invoke lock\n2    b/1 lost", 1)},
		{rule: "a failover that ended the connection of an earlier request of its call is one, too", lock: fairLock, finds: " fifo limit (waiter away when its turn came): c/1 was granted l at 0.013s before b/1", record: reset},
		{rule: "and none for a request of an earlier call", lock: fairLock, finds: " fifo bug: c/1 was granted l at 0.013s before b/1", record: strings.Replace(reset, "3    b/1 lost", "3    b/1 return unknown\n3    b/1 invoke lock\n3    b/1 lost", 1)},
		{rule: "order on the plain lock is not promised", record: overtaken},
		{rule: "nor on a bare one", lock: bareLock, record: overtaken},
		{rule: "a fair one that waives it", record: evicted,
			lock: model.Params{Lock: "mine", Traits: model.Traits{Fair: true}, Timing: timing(0), Promises: model.Promises{model.JudgeFIFO: {Waived: true}, model.JudgeLinearizable: {Waived: true}}}},
		{rule: "a fair one that nobody knows, by its trait alone", record: evicted, finds: "fifo bug",
			lock: model.Params{Lock: "mine", Traits: model.Traits{Fair: true}, Timing: timing(0)}},
		{rule: "whoever was evicted still waits for its caller, not for the server", lock: fairLock,
			finds: "fifo bug: it had lost its place in the queue at 0.601s", record: evicted},
		{rule: "re-entry overtakes nobody", lock: fairLock, record: order + `
			300  a/1 takes lease=9000 -> a/1 2 9301 queue=b/1,c/1
			400  a/1 invoke unlock
			400  a/1 send unlock
			401  a/1 exec unlock -> a/1 1 9301 queue=b/1,c/1
			402  a/1 deliver unlock
			402  a/1 return still_held
			1000 a/1 releases -> free queue=b/1,c/1
			1010 b/1 gets -> b/1 1 10011 queue=c/1`},
		{rule: "what is late of a call that is over takes the turn of the thread that waits anew", lock: fairLock, record: anew + `
			200  b/1 waits lock -> a/1 1 30001 queue=c/1,b/1
			1000 a/1 releases -> free queue=c/1,b/1
			1010 c/1 exec acquire nth=1 -> c/1 1 31010 queue=b/1
			9000 server leave`},
		{rule: "and not that of one who had waited before", lock: fairLock,
			finds: "fifo bug: c/1 was granted l at 1.010s before b/1, which had first tried at 0.051s and still waited", record: `
			0    a/1 takes -> a/1 1 30001
			50   b/1 waits lock -> a/1 1 30001 queue=b/1
			100  c/1 invoke lock
			100  c/1 send acquire
			150  c/1 return unknown
			160  c/1 waits lock -> a/1 1 30001 queue=b/1,c/1
			1000 a/1 releases -> free queue=b/1,c/1
			1010 c/1 exec acquire nth=1 -> c/1 1 31010 queue=b/1
			9000 server leave`},
		{rule: "leavers do not count", lock: fairLock, record: `
			0    a/1 takes lease=9000
			100  b/1 waits try_lock_timed wait=3000 lease=9000 -> a/1 1 9001 queue=b/1
			200  c/1 waits lock lease=9000 -> a/1 1 9001 queue=b/1,c/1
			300  b/1 send leave
			301  b/1 exec leave -> a/1 1 9001 queue=c/1
			302  b/1 deliver leave
			302  b/1 return error
			1000 a/1 releases -> free queue=c/1
			1010 c/1 gets
			9000 server leave`},
		{rule: "nor do the interrupted, though they have not returned", lock: fairLock, record: evicted + `
			900  a/2 interrupts b/1`},
		{rule: "nor those whom the server has refused with an error, though they have not heard", lock: fairLock, record: `
			100 b/1 invoke lock
			100 b/1 send acquire
			101 b/1 exec acquire (error) ERR NON_REENTRANT_REACQUIRE
			110 c/1 takes
			200 b/1 deliver acquire
			200 b/1 return error
			900 c/1 releases
			999 server leave`},
		{rule: "unless they ask again", lock: fairLock, finds: " fifo bug: c/1 was granted l at 0.111s before b/1", record: `
			100 b/1 invoke lock
			100 b/1 send acquire
			101 b/1 exec acquire (error) ERR NON_REENTRANT_REACQUIRE
			110 c/1 takes
			200 b/1 deliver acquire
			201 b/1 send acquire
			202 b/1 exec acquire -> c/1 1 30111 queue=b/1
			203 b/1 deliver acquire
			300 c/1 releases -> free queue=b/1
			310 b/1 gets
			999 server leave`},
		{rule: "the dead do not count", lock: fairLock, record: `
			0    a/1 takes lease=9000
			100  b/1 waits lock lease=9000 -> a/1 1 9001 queue=b/1
			200  c/1 waits lock lease=9000 -> a/1 1 9001 queue=b/1,c/1
			500  server fault 1 crash of b
			1000 a/1 releases -> free queue=c/1
			1010 c/1 gets
			9000 server leave`},
		{rule: "the timed out do not count", lock: fairLock, record: `
			0    a/1 takes lease=9000
			100  b/1 waits try_lock_timed wait=500 lease=9000 -> a/1 1 9001 queue=b/1
			200  c/1 waits lock lease=9000 -> a/1 1 9001 queue=b/1,c/1
			1000 a/1 releases -> free queue=c/1
			1010 c/1 gets
			9000 server leave`},
		{rule: "within its own wait a timed one counts", lock: fairLock, finds: "fifo bug: c/1 was granted l at 1.011s before b/1", record: `
			0    a/1 takes lease=9000
			100  b/1 waits try_lock_timed wait=1000 lease=9000 -> a/1 1 9001 queue=b/1
			200  c/1 waits lock lease=9000 -> a/1 1 9001 queue=b/1,c/1
			1000 a/1 releases -> free queue=c/1
			1010 c/1 gets
			1100 b/1 return busy
			9000 server leave`},
		{rule: "a single attempt is no waiter", lock: fairLock, record: `
			0    a/1 takes lease=9000
			100  b/1 invoke try_lock
			100  b/1 send acquire
			101  b/1 exec acquire
			200  c/1 waits lock lease=9000 -> a/1 1 9001 queue=c/1
			1000 a/1 releases -> free queue=c/1
			1010 c/1 gets
			1100 b/1 deliver acquire
			1100 b/1 return busy
			9000 server leave`},
		{rule: "and may not overtake one", lock: fairLock, finds: "fifo bug: d/1 was granted l at 1.006s before b/1", record: outOfTurn},
		{rule: "it is the first try at the server that counts, not the call", lock: fairLock, record: `
			0    a/1 takes lease=9000
			100  b/1 invoke lock lease=9000
			100  b/1 send acquire
			200  c/1 waits lock lease=9000 -> a/1 1 9001 queue=c/1
			300  b/1 exec acquire -> a/1 1 9001 queue=c/1,b/1
			301  b/1 deliver acquire
			1000 a/1 releases -> free queue=c/1,b/1
			1010 c/1 gets -> c/1 1 10011 queue=b/1
			1500 c/1 releases -> free queue=b/1
			1510 b/1 gets -> b/1 1 10511
			9000 server leave`},

		{rule: "wall clocks apart excuse it", lock: skewed(250 * time.Millisecond), finds: "fifo limit (wall clocks apart)", record: evicted},
		{rule: "wall clocks less than a millisecond apart do not", lock: skewed(999 * time.Microsecond), finds: "fifo bug", record: evicted},
		{rule: "a waiter paused when it lost its place", lock: fairLock, finds: "fifo limit (waiter away when its turn came)", record: evicted + `
			400  server fault 1 pause of b for 300ms
			700  server heal 1`},
		{rule: "a waiter cut off when its turn came", lock: fairLock, finds: "fifo limit (waiter away when its turn came)", record: evicted + `
			900  server fault 1 partition of b for 300ms
			1200 server heal 1`},
		{rule: "a waiter paused at another time", lock: fairLock, finds: "fifo bug", record: evicted + `
			700  server fault 1 pause of b for 1ms
			701  server heal 1`},
		{rule: "a waiter whose first try lay in a server that stood still", lock: fairLock, finds: "fifo limit (waiter away when its turn came)", record: outOfTurn + `
			100  server fault 1 server stall for 1ms
			101  server heal 1`},
		{rule: "the server stood still before", lock: fairLock, finds: "fifo bug", record: outOfTurn + `
			50   server fault 1 server stall for 5ms
			55   server heal 1`},
		{rule: "another paused", lock: fairLock, finds: "fifo bug", record: evicted + `
			400  server fault 1 pause of c for 300ms
			700  server heal 1`},
		{rule: "a waiter whose message was lost", lock: fairLock, finds: "fifo limit (waiter away when its turn came)", record: evicted + `
			500  b/1 send acquire
			500  b/1 hit 1 acquire
			500  b/1 lost acquire request dropped`},
		{rule: "a waiter whose process has a connection that carries nothing", lock: fairLock, finds: "fifo limit (waiter away when its turn came)", record: evicted + `
			500  b/2 invoke unlock
			500  b/2 send unlock
			500  b/2 hit 1 unlock half_open
			500  b/2 lost unlock request dropped`},
		{rule: "a message of another thread was lost", lock: fairLock, finds: "fifo bug", record: evicted + `
			500  b/2 invoke unlock
			500  b/2 send unlock
			500  b/2 hit 1 unlock
			500  b/2 lost unlock request dropped`},
		{rule: "a failover gave back a place in front", lock: fairLock, finds: `
			fifo limit (hold removed by another hand)
			tidy bug: c/1 stands in the queue`, record: `
			0    a/1 takes lease=3000 -> a/1 1 3001 queue=c/1
			50   server fault 1 failover that loses the last 1 writes -> a/1 1 3001
			60   server fault 2 failover that loses the last 1 writes -> a/1 1 3001 queue=c/1
			100  b/1 waits lock lease=3000 -> a/1 1 3001 queue=c/1,b/1
			900  c/1 waits lock lease=3000 -> a/1 1 3001 queue=c/1,b/1
			1000 a/1 releases -> free queue=c/1,b/1
			1100 c/1 gets -> c/1 1 4101 queue=b/1
			2000 c/1 releases -> free queue=b/1
			2100 b/1 gets
			9000 server leave`},
		{rule: "an operator removed the hold", lock: fairLock, finds: `
			mutual-exclusion limit (hold removed by another hand)
			mutual-exclusion limit (hold removed by another hand)
			fifo limit (hold removed by another hand)`, record: order + `
			900  server fault 1 delete of key l -> free
			1010 c/1 gets
			1500 c/1 releases
			1510 b/1 gets`},
		{rule: "an operator removed what our server remembers of a waiter", lock: ourFairLock, finds: `
			fifo limit (memory of a call removed by another hand)`, record: overtaken + `
			500  server fault 1 delete of key reference_memory:{l}:b:1`},
		{rule: "but not before it waited", lock: ourFairLock, finds: " fifo bug", record: overtaken + `
			50   server fault 1 delete of key reference_memory:{l}:b:1`},
		{rule: "nor on the lock of Redisson, where nothing is remembered of waiters", lock: fairLock, finds: " fifo bug", record: overtaken + `
			500  server fault 1 delete of key reference_memory:{l}:b:1`},
	})
}

// A place that its owner could not give up makes a free lock busy until a heartbeat has passed: a
// limit if a fault caused that, else a bug.
func TestAPlaceThatCouldNotBeGivenUp(t *testing.T) {
	const waitsBehind = `
		0     a/1 takes lease=900
		100   b/1 waits try_lock_timed wait=500 lease=900 -> a/1 1 901 queue=b/1
		200   c/1 waits lock lease=900 -> a/1 1 901 queue=b/1,c/1 deadlines=b/1:18500,c/1
		602   b/1 return busy
		800   a/1 releases -> free queue=b/1,c/1 deadlines=b/1:18500,c/1
		19000 c/1 gets -> c/1 1 19901
		19500 c/1 releases
		29000 server leave`
	const ghost = `
		0    a/1 takes lease=9000
		100  b/1 waits try_lock_timed wait=500 lease=9000 -> a/1 1 9001 queue=b/1
		600  b/1 return unknown
		1000 a/1 releases -> free queue=b/1
		1100 c/1 invoke try_lock
		1100 c/1 send acquire
		1101 c/1 exec acquire
		1102 c/1 deliver acquire
		1102 c/1 return busy
		9000 server leave`
	const broughtBack = `
			liveness limit (hold removed by another hand)
			tidy limit (hold removed by another hand)`
	failover := func(granted, released, ends string) string {
		return strings.NewReplacer("GRANTED", granted, "RELEASED", released, "ENDS", ends).Replace(`
		0     a/1 takes lease=900
		100   b/1 waits try_lock_timed wait=500 lease=900 -> a/1 1 901 queue=b/1
		600   b/1 send leave
		601   b/1 exec leave -> a/1 1 901
		602   b/1 return busy
		650   c/1 waits lock lease=900 -> a/1 1 901 queue=c/1
		800   a/1 releases -> free queue=c/1
		850   server fault 1 failover that loses the last 2 writes -> free queue=b/1,c/1 deadlines=b/1:18500,c/1
		GRANTED  c/1 gets -> c/1 1 ENDS
		RELEASED c/1 releases
		29000 server leave`)
	}
	testJudged(t, []judged{
		{rule: "cut off", lock: ourFairLock, finds: `
			linearizable limit (waiter away when its turn came)
			tidy limit (waiter away when its turn came)`, record: ghost + `
			550  server fault 1 partition of b for 2s
			2550 server heal 1`},
		{rule: "for no reason", lock: ourFairLock, finds: "linearizable bug\n tidy bug", record: ghost},
		{rule: "what it sent to leave is held", lock: ourFairLock, finds: "linearizable limit (waiter away when its turn came)", record: ghost + `
			550  b/1 send leave
			550  b/1 hit 1 leave`},
		{rule: "what it sent to leave is under way for long", lock: ourFairLock, finds: "linearizable bug", record: ghost + `
			550  b/1 send leave`},
		{rule: "cut off, and another waits for a heartbeat", lock: ourFairLock, finds: `
			liveness limit (waiter away when its turn came)
			tidy limit (waiter away when its turn came)`, record: waitsBehind + `
			550  server fault 1 partition of b for 2s
			2550 server heal 1`},
		{rule: "but no longer", lock: ourFairLock, finds: `
			liveness bug
			tidy limit (waiter away when its turn came)`, record: strings.NewReplacer("19000", "28000", "19901", "28901", "19500", "28500").Replace(waitsBehind) + `
			550  server fault 1 partition of b for 2s
			2550 server heal 1`},
		{rule: "brought back, and another waits for a heartbeat", lock: ourFairLock, finds: broughtBack, record: failover("19000", "19500", "19901")},
		{rule: "nor then any longer", lock: ourFairLock, finds: strings.Replace(broughtBack, "liveness limit (hold removed by another hand)", "liveness bug", 1),
			record: failover("28000", "28500", "28901")},
		{rule: "for no reason, and another waits", lock: ourFairLock, finds: "liveness bug\n tidy bug", record: waitsBehind},
		{rule: "as on the lock of Redisson, which promises none", lock: fairLock, finds: "liveness bug\n tidy limit (waiter away when its turn came)", record: waitsBehind + `
			550  server fault 1 partition of b for 2s
			2550 server heal 1`},
		{rule: "cut off later", lock: ourFairLock, finds: "linearizable bug\n tidy bug", record: ghost + `
			700  server fault 1 partition of b for 2s
			2700 server heal 1`},
	})
}

func TestLease(t *testing.T) {
	// oneAfterAnother is a watchdog with two holds, of which a fault meets the renewal of the one, and at an instant that of the other.
	oneAfterAnother := func(ms string) string {
		return `
			0     a/2 takes lease=60000 lock=m
			0     a/1 takes
			10000 a/1 renews -> a/1 1 40001
			20000 a/1 send renew
			20000 a/1 hit 1 renew hold
			` + ms + ` a/2 send renew lock=m conn=2
			` + ms + ` a/2 hit 1 renew hold
			40002 server expire -> free
			49000 server leave`
	}
	// broughtBack is a hold, the second of its thread, after which a failover brings back the value of a hold.
	broughtBack := func(value string) string {
		return `
			0     a/1 takes -> a/1 1 30001 value=first
			5000  a/1 releases -> free
			8000  a/1 takes -> a/1 1 38001 value=second
			9000  server fault 1 failover that loses the last 2 writes -> a/1 1 38000 value=` + value + `
			38001 server expire -> free
			49000 server leave`
	}
	const unheard = `
			0     a/1 takes
			1000  server fault 1 delete of key l -> free
			10000 a/1 invoke try_lock
			10000 a/1 send acquire
			10001 a/1 exec acquire -> a/1 1 40001
			10500 a/1 return unknown`
	const putBack = `
			0    a/1 takes -> a/1 1 30001 token=7
			500  a/1 releases -> free token=7
			600  a/1 takes -> a/1 1 30601 token=8
			700  server fault 1 failover that loses the last 2 writes -> a/1 1 30001`
	testJudged(t, []judged{
		{rule: "a failover brought back an earlier hold of the same owner, which nobody renews", lock: ourLock, record: putBack + " token=7" + `
			30002 server expire -> free token=8
			40000 server leave`},
		{rule: "it is the same hold, and is to be renewed", lock: ourLock, finds: "lease bug: the hold of a/1 on l ended with its lease at 30.002s while a/1 believed to hold it", record: putBack + " token=8" + `
			30002 server expire -> free token=8
			40000 server leave`},
		{rule: "of a hold that it was given unheard, after another hand had ended the one it believes in, a client knows nothing", record: unheard + `
			40002 server expire -> free
			49000 server leave`},
		{rule: "until it enters it again", finds: "lease bug: the hold of a/1 on l ended with its lease at 40.002s while a/1 believed to hold it", record: unheard + `
			11000 a/1 takes -> a/1 2 40001
			40002 server expire -> free
			49000 server leave`},
		{rule: "an orphan ends with its lease", record: `
			0     a/1 takes
			10000 server fault 1 crash of a
			30002 server expire -> free
			39000 server leave`},
		{rule: "an orphan prolonged", finds: "lease bug: the hold of a/1 on l was prolonged at 20.001s, although it had died at 10.000s", record: `
			0     a/1 takes
			10000 server fault 1 crash of a
			20000 a/1 renews
			50002 server expire -> free
			59000 server leave`},
		{rule: "a restart may keep the renewals from the server for a period and 7.5 s", record: `
			0     a/1 takes
			15000 server fault 1 server restart with its data
			30002 server expire -> free
			39000 server leave`},
		{rule: "and no longer", finds: "lease bug: the last fault that met its messages was server restart with its data at 18.500s", record: `
			0     a/1 takes
			1000  server fault 1 server restart with its data
			30002 server expire -> free
			39000 server leave`},
		{rule: "nor after one was sent", finds: "lease bug: at 10.000s", record: `
			0     a/1 takes
			5000  server fault 1 server restart with its data
			10000 a/1 send renew
			30002 server expire -> free
			39000 server leave`},
		{rule: "a hold that is lost while a level is given up is renewed until its thread hears of it", record: `
			0     a/1 takes
			100   a/1 takes -> a/1 2 30101
			9990  a/1 invoke unlock
			9990  a/1 send unlock
			9991  a/1 exec unlock -> a/1 1 39991
			9994  b/1 invoke force_unlock
			9994  b/1 send force_unlock
			9995  b/1 exec force_unlock -> free
			9996  b/1 deliver force_unlock
			9996  b/1 return released
			9998  a/1 deliver unlock
			9998  a/1 return still_held
			10000 a/1 renews -> free
			39000 server leave`},
		{rule: "by a renewal that it sent while it lived", record: `
			0     a/1 takes
			10000 a/1 renews
			10000 server fault 1 crash of a
			40002 server expire -> free
			59000 server leave`},
		{rule: "by two, of which one was sent later", finds: "lease bug: the hold of a/1 on l was prolonged at 10.003s", record: `
			0     a/1 takes
			10000 a/1 renews
			10000 server fault 1 crash of a
			10002 a/1 renews
			40004 server expire -> free
			59000 server leave`},

		{rule: "a renewal behind a held message of a connection that ended", record: `
			0     a/1 takes
			10000 a/1 renews -> a/1 1 40001
			19000 a push hit hold
			20000 a/1 send renew
			20001 a/1 exec renew -> a/1 1 50001
			42000 a push lost connection reset
			42000 a/1 lost renew reply connection reset
			50002 server expire -> free
			59000 server leave`},
		{rule: "a renewal without an answer on a connection that carried no held message", finds: "lease bug: the hold of a/1 on l ended with its lease at 50.002s while a/1 believed to hold it and its watchdog should have renewed it; no fault met its messages", record: `
			0     a/1 takes
			10000 a/1 renews -> a/1 1 40001
			20000 a/1 send renew
			20001 a/1 exec renew -> a/1 1 50001
			21000 a push hit hold
			42000 a push lost connection reset
			42000 a/1 lost renew reply connection reset
			50002 server expire -> free
			59000 server leave`},
		{rule: "a connection that does not come about carries no renewal", record: `
			0     a/1 takes
			10000 a/1 renews -> a/1 1 40001
			20000 a/1 send ping nobody=y
			20000 a/1 hit 1 ping reset
			20000 a/1 lost ping request connection reset
			35000 a/1 send hello nobody=y
			35000 a/1 hit 1 hello reset
			35000 a/1 lost hello request connection reset
			40002 server expire -> free
			49000 server leave`},
		{rule: "but one that came about long ago does", finds: "lease bug: the hold of a/1 on l ended with its lease at 40.002s while a/1 believed to hold it and its watchdog should have renewed it; the last fault that met its messages was reset of ping at 20.000s", record: `
			0     a/1 takes
			10000 a/1 renews -> a/1 1 40001
			20000 a/1 send ping nobody=y
			20000 a/1 hit 1 ping reset
			20000 a/1 lost ping request connection reset
			20001 a/1 send hello nobody=y
			20001 a/1 exec hello
			20001 a/1 deliver hello
			40002 server expire -> free
			49000 server leave`},
		{rule: "a watchdog may renew one hold after another, so what meets the renewal of another hold keeps it", record: oneAfterAnother("35000")},
		{rule: "but not for longer than a period", finds: "lease bug: the hold of a/1 on l ended with its lease at 40.002s while a/1 believed to hold it and its watchdog should have renewed it; " +
			"the last fault that met its messages was hold of renew at 25.000s", record: oneAfterAnother("25000")},
		{rule: "a failover that brings back an earlier hold of the thread, which nobody renews", record: broughtBack("first")},
		{rule: "but if it is the same hold, the watchdog renews it", finds: "lease bug: the hold of a/1 on l ended with its lease at 38.001s while a/1 believed to hold it and its watchdog should have renewed it",
			record: broughtBack("second")},
		{rule: "a watchdog that renews nothing", finds: "lease bug: the hold of a/1 on l ended with its lease at 30.002s while a/1 believed to hold it and its watchdog should have renewed it; no fault met its messages", record: `
			0     a/1 takes
			30002 server expire -> free
			39000 server leave`},
		{rule: "a watchdog that renews", record: `
			0     a/1 takes
			10000 a/1 renews
			20000 a/1 renews
			49000 server leave`},
		{rule: "a lease of one's own is not renewed", record: `
			0    a/1 takes lease=3000
			3002 server expire -> free
			9000 server leave`},
		{rule: "nor is one that the server ended early", record: `
			0     a/1 takes lease=29000 -> a/1 1 15001
			15002 server expire -> free
			39000 server leave`},
		{rule: "a hold without a believer may end", record: `
			0     a/1 takes
			25000 a/1 invoke unlock
			25000 a/1 send unlock
			25001 a/1 return unknown
			30002 server expire -> free
			39000 server leave`},
		{rule: "a watchdog period after the last fault that met a renewal", finds: "lease bug: the last fault that met its messages was drop of renew at 20.002s", record: `
			0     a/1 takes
			20002 a/1 send renew
			20002 a/1 hit 1 renew
			20002 a/1 lost renew request dropped
			30002 server expire -> free
			39000 server leave`},
		{rule: "a millisecond less", record: `
			0     a/1 takes
			20003 a/1 send renew
			20003 a/1 hit 1 renew
			20003 a/1 lost renew request dropped
			30002 server expire -> free
			39000 server leave`},
		{rule: "a renewal of another's hold met by a fault", finds: "lease bug: no fault met its messages", record: `
			0     a/1 takes
			25000 b/1 send renew lock=m for=a/1
			25000 b/1 hit 1 renew
			30002 server expire -> free
			39000 server leave`},

		{rule: "a renewal sent after the last release returned", finds: "lease bug: a renewal of l for a/1 was sent at 2.000s, although its unlock had returned released at 1.002s", record: `
			0    a/1 takes
			1000 a/1 releases
			2000 a/1 send renew
			2001 a/1 exec renew
			9000 server leave`},
		{rule: "a part of a stream may be of another session", record: `
			0    a/1 takes
			1000 a/1 releases
			2000 a/1 send renew command=SEGMENT
			2001 a/1 exec renew
			9000 server leave`},
		{rule: "before it returned", record: `
			0    a/1 takes
			1000 a/1 releases
			1001 a/1 send renew
			1002 a/1 exec renew
			9000 server leave`},
		{rule: "while an acquire is open, which may have been granted", record: `
			0    a/1 invoke lock
			0    a/1 send acquire
			1    a/1 exec acquire -> a/1 1 30001
			50   a/1 send renew
			51   a/1 exec renew -> a/1 1 30051
			60   a/1 return granted
			9000 server leave`},
		{rule: "after the release of an inner level", record: `
			0    a/1 takes
			100  a/1 takes -> a/1 2 30101
			1000 a/1 invoke unlock
			1000 a/1 send unlock
			1001 a/1 exec unlock -> a/1 1 31001
			1002 a/1 deliver unlock
			1002 a/1 return still_held
			2000 a/1 renews
			9000 server leave`},
		{rule: "after a release that failed", finds: "lease bug: its unlock had returned error", record: `
			0    a/1 takes
			1000 a/1 invoke unlock
			1001 a/1 return error
			2000 a/1 renews
			9000 server leave`},
		{rule: "after a release of unknown outcome", finds: "lease bug: its unlock had returned unknown", record: `
			0    a/1 takes
			1000 a/1 invoke unlock
			1000 a/1 send unlock
			1001 a/1 return unknown
			2000 a/1 renews
			9000 server leave`},
		{rule: "after a release that found nothing, at whatever level", finds: "lease bug: its unlock had returned not_held", record: `
			0    a/1 takes
			10   a/1 takes -> a/1 2 30011
			1000 server fault 1 delete of key l -> free
			2000 a/1 invoke unlock
			2000 a/1 send unlock
			2001 a/1 exec unlock
			2002 a/1 return not_held
			3000 a/1 send renew
			9000 server leave`},
		{rule: "for an acquire that returned without a grant", finds: "lease bug: its try_lock_timed had returned busy", record: `
			0    a/1 takes lease=9000
			100  b/1 waits try_lock_timed wait=500
			600  b/1 return busy
			700  b/1 send renew
			701  b/1 exec renew
			8000 a/1 releases
			9000 server leave`},
		{rule: "for one who never held it", finds: "lease bug: a renewal of l for b/1 was sent at 0.700s", record: `
			0    a/1 takes lease=9000
			700  b/1 send renew
			701  b/1 exec renew
			9000 server leave`},
		{rule: "in the leaving no renewal is judged", record: `
			0    a/1 takes
			1000 a/1 releases
			9000 server leave
			9000 a/1 send renew`},

		{rule: "a key without time to live", finds: "lease bug: the hold of a/1 on l has no time to live since 0.001s", record: `
			0    a/1 takes -> a/1 1 endless
			9000 server leave`},
		{rule: "a lease longer than granted", finds: "lease bug: at 0.001s the hold of a/1 on l got a lease of 3.001s, and asked for 3s at most", record: `
			0    a/1 takes lease=3000 -> a/1 1 3002
			9000 server leave`},
		{rule: "a lease as granted", record: `
			0    a/1 takes lease=3000 -> a/1 1 3001
			9000 server leave`},
		{rule: "longer than the watchdog's", finds: "lease bug: got a lease of 30.001s, and asked for 30s at most", record: `
			0    a/1 takes -> a/1 1 30002
			9000 server leave`},
		{rule: "a renewal of a lease that nobody asked to renew", finds: "lease bug: at 1.001s the hold of a/1 on l got a lease of 30s, and asked for 3s at most", record: `
			0    a/1 takes lease=3000
			1000 a/1 renews
			9000 server leave`},
		{rule: "a level with a longer lease than the one below", record: `
			0    a/1 takes lease=3000
			100  a/1 takes lease=8000 -> a/1 2 8101
			9000 server leave`},
		{rule: "a release puts the lease back", record: `
			0    a/1 takes lease=3000
			100  a/1 takes lease=8000 -> a/1 2 8101
			200  a/1 invoke unlock
			200  a/1 send unlock
			201  a/1 exec unlock -> a/1 1 8201
			202  a/1 deliver unlock
			202  a/1 return still_held
			9000 server leave`},
		{rule: "an attempt that came to nothing does not tell of a hold that was lost", record: `
			0    a/1 takes
			100  a/1 invoke try_lock
			100  a/1 send acquire
			100  a/1 lost acquire request dropped
			500  server fault 1 delete of key l -> free
			3100 a/1 return unknown
			10002 a/1 send renew
			10003 a/1 exec renew
			10004 a/1 deliver renew
			11000 server leave`},
	})
}

// idle is a lock that a releases at 1 s, with b waiting; the release returned
// at 1.002 s, and from then on nobody believes to hold.
const idle = `
	0    a/1 takes
	100  b/1 waits lock
	1000 a/1 releases
`

func TestLiveness(t *testing.T) {
	deadWaiters := `
		0    a/1 takes
		100  b/1 waits lock -> a/1 1 30001 queue=b/1
		200  c/1 waits lock -> a/1 1 30001 queue=b/1,c/1
		300  d/1 waits lock -> a/1 1 30001 queue=b/1,c/1,d/1
		500  server fault 1 crash of b
		1000 a/1 releases -> free queue=b/1,c/1,d/1
		19000 server leave
	`
	givenBack := `
		0    b/1 invoke try_lock_timed wait=1150
		20   b/1 send acquire
		46   b/1 exec acquire -> b/1 1 30046
		1169 b/1 send unlock
		1180 b/1 exec unlock -> free
	`
	const ranLate = `
			0     c/1 takes
			100   b/1 waits lock
			200   a/1 invoke lock
			200   a/1 send acquire
			500   a/1 return unknown
			20000 c/1 releases
			20100 a/1 exec acquire -> a/1 1 50100
			50102 server expire -> free`
	const partlyReleased = `
			100   b/1 waits lock
			200   a/1 invoke unlock
			200   a/1 send unlock
			201   a/1 exec unlock -> a/1 1 30201
			202   a/1 return still_held
			10000 a/1 renews -> a/1 1 40001
			20000 a/1 renews -> a/1 1 50001
			30000 a/1 renews -> a/1 1 60001
			40000 a/1 renews -> a/1 1 70001
			49000 server leave`
	const connects = `
			0    a/1 invoke lock
			0    a/1 send connect nobody=y
			0    a/1 hit 1 connect
			5000 a/1 exec connect
			5001 a/1 deliver connect
			5001 a/1 send acquire
			5002 a/1 exec acquire -> a/1 1 35002
			5003 a/1 deliver acquire
			5003 a/1 return granted
			5010 a/1 releases
			9000 server leave`
	slow := ourLock
	slow.Latency = 100 * time.Millisecond
	const fiveTrips = `
			0    a/1 invoke lock
			1000 a/1 send acquire
			1100 a/1 exec acquire -> a/1 1 31100
			1200 a/1 deliver acquire
			1200 a/1 return granted
			1300 a/1 releases`
	backsOff := ourLock
	backsOff.Reconnect = 2 * time.Minute
	connectsLate := func(fault string) string {
		return `
			1000   server fault 1 ` + fault + `
			1500   a/1 invoke lock
			2000   server heal 1
			60000  a/1 send acquire
			60001  a/1 exec acquire -> a/1 1 90001
			60002  a/1 deliver acquire
			60002  a/1 return granted
			61000  a/1 releases
			90000  server leave`
	}
	greeted := strings.NewReplacer("1500   a/1", "1001   a greeting hit hold\n1500   a/1", "2000   server heal 1", "2000   server heal 1\n2001   a greeting lost nobody waits for it").
		Replace(connectsLate("drop of y for 1s"))
	endlessLock := model.Params{Lock: "endless", Traits: model.Traits{NoWatchdog: true, Uncounted: true, Endless: true, PerGrant: true, Extends: true}, Timing: timing(0)}
	const doubted = `
			0    a/1 takes -> a/1 1 endless
			100  b/1 waits lock
			1000 a/1 invoke extend
			1000 a/1 send renew call=y
			2000 a/1 return unknown`
	const givesUp = `
			0    a/1 takes -> a/1 1 endless
			100  b/1 waits lock
			1000 a/1 invoke extend
			1000 a/1 send renew call=y
			1001 a/1 exec renew call=y -> free
			1500 b/1 gets -> b/1 1 endless`
	polls := ourLock
	polls.Waits = 2 * time.Second
	repeats := ourLock
	repeats.Reconnect = 2 * time.Second
	answers := func(how string) string {
		return `
			0    a/1 invoke lock
			0    a/1 send acquire
			1    a/1 exec acquire (error) TRYAGAIN
			2    a/1 hit 1 acquire reply ` + how + `
			2    a/1 deliver acquire
			1100 a/1 send acquire
			1101 a/1 exec acquire nth=2 -> a/1 1 31101
			1102 a/1 deliver acquire
			1102 a/1 return granted
			9000 server leave`
	}
	everySecond := ourLock
	everySecond.Latency = 2 * time.Millisecond
	slowlyPolls := slow
	slowlyPolls.Waits = 2 * time.Second
	const outlived = `
			0     a/1 takes -> a/1 1 endless
			500   a/1 invoke unlock
			500   a/1 send unlock
			600   server fault 1 crash of a
			1000  b/1 waits lock
			80000 a/1 exec unlock -> free`
	testJudged(t, []judged{
		{rule: "a waiter that asks once in each second gets the lock a round trip later", lock: everySecond, record: idle + `
			2005 b/1 gets
			9000 server leave`},
		{rule: "and not later than that", lock: everySecond, finds: "liveness bug: b/1 waited for l", record: idle + `
			2009 b/1 gets
			9000 server leave`},
		{rule: "a client waits before it repeats a request that met an error", lock: repeats, record: answers("error")},
		{rule: "and not before one that was late", lock: repeats, finds: "liveness bug: a/1 waited for l", record: answers("delay")},
		{rule: "a waiter that asks every two seconds, by design", lock: polls, record: idle + `
			4001 b/1 gets
			9000 server leave`},
		{rule: "and not a millisecond later", lock: polls, finds: "liveness bug: b/1 waited for l from 1.002s to 4.003s while nobody believed to hold it; the bound is 3s (a second, and 2s by the lock's design)", record: idle + `
			4002 b/1 gets
			9000 server leave`},
		{rule: "the design of a lock adds to the round trips of a slow network", lock: slowlyPolls, finds: "liveness bug: the bound is 3.6s (8 round trips of 200ms, and 2s by the lock's design)", record: idle + `
			4603 b/1 gets
			9000 server leave`},
		{rule: "and to a lease that a call left behind", lock: polls, record: ranLate + `
			53000 b/1 gets
			90000 server leave`},
		{rule: "which another lock's waiter does not outwait", lock: ourLock, finds: "liveness bug: b/1 waited for l from 20.002s to 53.001s while nobody believed to hold it; the bound is 31.098s (a second and 30s, after a call of unknown outcome)", record: ranLate + `
			53000 b/1 gets
			90000 server leave`},
		{rule: "whose extension failed, a holder without a lease keeps others waiting until it unlocks", lock: endlessLock, record: doubted + `
			20000 a/1 releases
			20500 b/1 gets
			30000 server leave`},
		{rule: "and no longer", lock: endlessLock, finds: "liveness bug: b/1 waited for l from 20.002s", record: doubted + `
			20000 a/1 releases
			90000 server leave`},
		{rule: "an extension that gives the hold up, and whose answer is late", lock: endlessLock, record: givesUp + `
			2000 a/1 return unknown
			3000 b/1 releases
			9000 server leave`},
		{rule: "and one whose answer comes after the lease", lock: bareLock, record: `
			0    a/1 takes lease=3000
			1000 a/1 invoke extend
			1000 a/1 send renew call=y
			1001 a/1 exec renew call=y -> free
			1500 b/1 takes lease=9000
			4000 a/1 return unknown
			5000 b/1 releases
			9000 server leave`},
		{rule: "and one that says that the hold was extended", lock: endlessLock, finds: `
			mutual-exclusion bug: b/1 was granted l at 1.502s while a/1 believed to hold it
			hold-count bug: the server counts 0 for a/1 on l, and its calls add up to 1`, record: givesUp + `
			2000 a/1 return extended
			3000 b/1 releases
			9000 server leave`},
		{rule: "a hold without a lease that a failover brings back ends for nobody", lock: endlessLock, finds: "liveness limit (holder gone from a hold without a lease): b/1 waited for l from 2.000s", record: `
			0    a/1 takes -> a/1 1 endless
			500  a/1 releases
			1000 b/1 waits lock -> free
			2000 server fault 1 failover of server -> a/1 1 endless
			90000 server leave`},
		{rule: "one that the late request of its dead holder ended may be had again", lock: endlessLock, finds: "liveness limit (holder gone from a hold without a lease): b/1 waited for l from 1.000s to 80.101s", record: outlived + `
			80100 b/1 gets -> b/1 1 endless
			81000 b/1 releases
			90000 server leave`},
		{rule: "soon", lock: endlessLock, finds: "liveness bug: b/1 waited for l from 1.000s to 83.001s", record: outlived + `
			83000 b/1 gets -> b/1 1 endless
			84000 b/1 releases
			90000 server leave`},
		{rule: "a client that gave up the connection whose greeting did not come", lock: backsOff, record: greeted},
		{rule: "connects in its time", lock: ourLock, record: greeted, finds: "liveness bug: a/1 waited for l from"},
		{rule: "and keeps one that is greeted", lock: backsOff, record: strings.Replace(greeted, "greeting lost nobody waits for it", "woken", 1), finds: "liveness bug: a/1 waited for l from"},
		{rule: "a client may be slow to connect again", lock: backsOff, record: connectsLate("partition of a for 1s")},
		{rule: "if it says so", lock: ourLock, record: connectsLate("partition of a for 1s"),
			finds: "liveness bug: a/1 waited for l from 2.000s to 60.001s while nobody believed to hold it; the bound is 8.5s"},
		{rule: "and lost its connection", lock: backsOff, record: connectsLate("pause of a for 1s"),
			finds: "liveness bug: a/1 waited for l from"},
		{rule: "eight round trips of a slow network may pass before a grant", lock: slow, record: fiveTrips},
		{rule: "and no more", lock: slow, finds: "liveness bug: the bound is 1.6s (8 round trips of 200ms)", record: `
			0    a/1 invoke lock
			2000 a/1 send acquire
			2100 a/1 exec acquire -> a/1 1 32100
			2200 a/1 deliver acquire
			2200 a/1 return granted
			2300 a/1 releases`},
		{rule: "of a fast one a second", lock: ourLock, finds: "liveness bug: the bound is 1s", record: fiveTrips},
		{rule: "a call waits for the beginning of a connection that a fault held up", lock: ourLock, record: connects},
		{rule: "but for no other request of nobody", lock: ourLock, finds: "liveness bug: a/1 waited for l from 0.000s",
			record: strings.Replace(connects, "0    a/1 hit 1 connect", "", 1)},
		{rule: "a late answer that refused a call is no reason to wait for a lease", lock: anybodys, finds: "liveness bug: b/1 waited for l from 0.400s to 9.000s while nobody believed to hold it; the bound is 1.001s", record: `
			0    a/1 takes
			100  b/1 invoke lock
			100  b/1 send acquire
			101  b/1 exec acquire
			102  b/1 hit 1 acquire reply delay
			300  a/1 releases
			400  b/1 deliver acquire
			9000 server leave`},
		{rule: "a lost one is", lock: anybodys, record: `
			0    a/1 takes
			100  b/1 invoke lock
			100  b/1 send acquire
			101  b/1 exec acquire
			102  b/1 hit 1 acquire reply
			102  b/1 lost acquire reply dropped
			300  a/1 releases
			9000 server leave`},
		{rule: "nor is a late request that was refused", lock: anybodys, finds: "liveness bug: b/1 waited for l from 0.400s to 9.000s while nobody believed to hold it; the bound is 1.001s", record: `
			0    a/1 takes
			100  b/1 invoke lock
			100  b/1 send acquire
			101  b/1 hit 1 acquire request delay
			300  a/1 releases
			399  b/1 exec acquire
			400  b/1 deliver acquire
			9000 server leave`},
		{rule: "a lost one is, too", lock: anybodys, record: `
			0    a/1 takes
			100  b/1 invoke lock
			100  b/1 send acquire
			101  b/1 hit 1 acquire request
			300  a/1 releases
			399  b/1 lost acquire request dropped
			9000 server leave`},
		{rule: "nor for a channel, once a call has asked for something", lock: ourLock, finds: "liveness bug: a/1 waited for l from 0.000s",
			record: strings.NewReplacer("nobody=y", "nobody=y listens=start", "0    a/1 invoke lock", "0    a/1 invoke lock\n0 a/1 send acquire\n0 a/1 exec acquire\n0 a/1 deliver acquire",
				"5002 a/1 exec acquire", "5002 a/1 exec acquire nth=2", "5003 a/1 deliver acquire", "5003 a/1 deliver acquire nth=2").Replace(connects)},
		{rule: "before, it waits until the client is open", lock: ourLock, record: strings.Replace(connects, "nobody=y", "nobody=y listens=start", 1)},
		{rule: "and no longer than the fault holds it up", lock: ourLock, finds: "liveness bug: a/1 waited for l from 0.003s",
			record: strings.NewReplacer("5000 a/1 exec connect", "2    a/1 exec connect", "5001 a/1 deliver connect", "3    a/1 deliver connect").Replace(connects)},
		{rule: "a level without a lease that is not given up is waited for, whatever the lease of a later one", lock: ourLock, record: `
			0  a/1 takes
			10 a/1 takes lease=10 -> a/1 2 30001
			30 a/1 takes -> a/1 3 30031` + strings.ReplaceAll(partlyReleased, "a/1 1", "a/1 2")},
		{rule: "without a watchdog no level is without a lease", lock: model.Params{Lock: "own", Traits: model.Traits{NoWatchdog: true}, Timing: timing(0)},
			finds: "liveness bug: b/1 waited for l from 30.201s", record: `
			0  a/1 takes
			30 a/1 takes -> a/1 2 30031` + partlyReleased},
		{rule: "a level of a hold before is none of this one", lock: ourLock,
			finds: strings.Repeat("lease bug\n", 5) + "liveness bug: b/1 waited for l from 9.201s", record: `
			0  a/1 takes
			5  server fault 1 delete of key l -> free
			20 a/1 takes lease=9000 -> a/1 1 9021
			40 a/1 takes lease=9000 -> a/1 2 9041` + partlyReleased},
		{rule: "one with a lease is not, when that is over", lock: ourLock, finds: "liveness bug: b/1 waited for l from 30.201s", record: `
			0  a/1 takes lease=20
			10 a/1 takes -> a/1 2 30011` + partlyReleased},
		{rule: "a second when nothing went wrong", record: idle + `
			2001 b/1 gets
			9000 server leave`},
		{rule: "and not a millisecond more", finds: "liveness bug: b/1 waited for l from 1.002s to 2.003s while nobody believed to hold it; the bound is 1s", record: idle + `
			2002 b/1 gets
			9000 server leave`},
		{rule: "still open at the end", finds: "liveness bug: b/1 waited for l from 1.002s to 9.000s", record: idle + `
			9000 server leave`},
		{rule: "that all clients close at the end is no reason to wait till then", finds: "liveness bug: b/1 waited for l from 1.002s to 9.000s", record: idle + `
			9000 server leave
			9000 a close
			9000 b close`},
		{rule: "a call that asks for nothing, since its process has closed its client", record: `
			0     b close
			41000 b/1 invoke lock
			60000 server leave`},
		{rule: "also if it had asked for nothing before", record: `
			40900 b/1 invoke lock
			41000 b close
			60000 server leave`},
		{rule: "but not before all clients close", finds: "liveness bug: b/1 waited for l from 40.900s to 60.000s", record: `
			40900 b/1 invoke lock
			60000 server leave
			60000 b close`},
		{rule: "a call that asks for nothing on an open client is forgotten", finds: "liveness bug: b/1 waited for l from 41.000s to 60.000s", record: `
			0     a close
			41000 b/1 invoke lock
			60000 server leave`},
		{rule: "and so is one that asks although its client is closed", finds: "liveness bug: b/1 waited for l from 41.002s to 60.000s", record: `
			0     b close
			30000 a/1 takes
			40100 b/1 waits lock
			41000 a/1 releases
			60000 server leave`},
		{rule: "as it is that one closes before, for a lease", record: idle + `
			1500 a close
			20000 server leave`},
		{rule: "still open at the end, within its second", record: idle + `
			2002 server leave`},
		{rule: "whoever gives up a level whose lease is over holds the level before it still", record: `
			0    a/1 takes
			100  a/1 takes lease=500 -> a/1 2 30001
			200  b/1 waits lock
			3000 a/1 invoke unlock
			3000 a/1 send unlock
			3001 a/1 exec unlock -> a/1 1 30001
			3002 a/1 deliver unlock
			3002 a/1 return still_held
			9000 server leave`},
		{rule: "waiting for somebody is no fault", record: `
			0    a/1 takes
			100  b/1 waits lock
			9000 server leave`},
		{rule: "whoever gives up one level of two holds on, though its own time for it is over", record: `
			0    a/1 takes lease=500
			300  a/1 takes lease=4000 -> a/1 2 4300
			400  b/1 waits lock -> a/1 2 4300
			1000 a/1 invoke unlock
			1000 a/1 send unlock
			1001 a/1 exec unlock -> a/1 1 5000
			1002 a/1 return still_held
			4900 a/1 releases
			5000 b/1 gets
			9000 server leave`},
		{rule: "but no longer than it asked for", finds: "lease bug\n liveness bug: b/1 waited for l from 5.001s", record: `
			0    a/1 takes lease=500
			300  a/1 takes lease=4000 -> a/1 2 4300
			400  b/1 waits lock -> a/1 2 4300
			1000 a/1 invoke unlock
			1000 a/1 send unlock
			1001 a/1 exec unlock -> a/1 1 31000
			1002 a/1 return still_held
			19000 server leave`},
		{rule: "nor with a level that it knows nothing of", finds: " hold-count bug\n liveness bug: b/1 waited for l from 1.002s", record: `
			0    a/1 takes -> a/1 2 30001
			100  b/1 waits lock
			1000 a/1 invoke unlock
			1000 a/1 send unlock
			1001 a/1 exec unlock -> a/1 1 30999
			1002 a/1 return still_held
			9000 server leave`},
		{rule: "a timed wait that ends within the second", record: `
			0    a/1 takes
			100  b/1 waits try_lock_timed wait=1900
			1000 a/1 releases
			2000 b/1 return busy
			9000 server leave`},
		{rule: "a timed wait that lasts longer", finds: "liveness bug: b/1 waited for l from 1.002s to 2.100s", record: `
			0    a/1 takes
			100  b/1 waits try_lock_timed wait=2000
			1000 a/1 releases
			2102 b/1 return error
			9000 server leave`},
		{rule: "waiting until the bound of another lock is no matter", finds: "liveness bug: the bound is 1s", record: idle + `
			0    c/1 takes lock=m
			1500 c/1 invoke unlock lock=m
			1600 c/1 return unknown
			9000 server leave`},
		{rule: "the interrupted do not wait", record: idle + `
			1500 a/2 interrupts b/1
			9000 server leave`},
		{rule: "the dead do not wait", record: idle + `
			1500 server fault 1 crash of b
			9000 server leave`},
		{rule: "nobody waits for a server that does not answer", record: idle + `
			1500 server fault 1 server stall for 3s
			4500 server heal 1
			5400 b/1 gets
			9000 server leave`},

		{rule: "a client that finds its connection dead after a restart asks again within 7.5 s", record: idle + `
			500  server fault 1 server restart with its data
			9501 b/1 gets
			9900 server leave`},
		{rule: "and no later", finds: "liveness bug: the bound is 8.5s (a second and 7.5s, after failover)", record: idle + `
			500  server fault 1 failover
			9502 b/1 gets
			9900 server leave`},
		{rule: "a request that is lost on a connection which ended long ago is a reason of its own", record: idle + `
			500  server fault 1 server restart with its data
			1700 b/1 send acquire
			1700 b/1 lost acquire request connection reset nth=2
			9902 b/1 gets
			9990 server leave`},
		{rule: "and without one the restart costs nothing long after", finds: "liveness bug: the bound is 1s", record: strings.NewReplacer("1000 a/1 releases", "20000 a/1 releases").Replace(idle) + `
			500   server fault 1 server restart with its data
			22000 b/1 gets
			29900 server leave`},
		{rule: "a second and a lease after a lost wake-up", record: idle + `
			1002  b push lost dropped
			32001 b/1 gets
			39000 server leave`},
		{rule: "and no more", finds: "liveness bug: the bound is 31s (a second and 30s, after a lost wake-up)", record: idle + `
			1002  b push lost dropped
			32002 b/1 gets
			39000 server leave`},
		{rule: "a second after a late wake-up has come", record: idle + `
			1002  b push hit
			6002  b woken
			7001  b/1 gets
			39000 server leave`},
		{rule: "and no more", finds: "liveness bug: the bound is 6s (a second and 5s, after a late wake-up)", record: idle + `
			1002  b push hit
			6002  b woken
			7002  b/1 gets
			39000 server leave`},
		{rule: "a wake-up that never comes is late for a lease", record: idle + `
			1002  b push hit
			32001 b/1 gets
			39000 server leave`},
		{rule: "and so is one that comes after that", finds: "liveness bug: the bound is 31s (a second and 30s, after a late wake-up)", record: idle + `
			1002  b push hit
			35000 b woken
			35002 b/1 gets
			39000 server leave`},
		{rule: "a late wake-up that is lost is a lost one", finds: "liveness bug: the bound is 31.001s (a second and 30s, after a lost wake-up)", record: idle + `
			1002  b push hit
			1003  b push lost dropped
			32003 b/1 gets
			39000 server leave`},
		{rule: "a wake-up that nobody waits for is not lost", finds: "liveness bug: the bound is 1s", record: idle + `
			1002  a push lost nobody waits for it
			32001 b/1 gets
			39000 server leave`},
		{rule: "a lease longer than the watchdog's counts", record: `
			0     a/1 takes lease=50000
			100   b/1 waits lock
			1000  a/1 releases
			1002  b push lost dropped
			52001 b/1 gets
			59000 server leave`},
		{rule: "a second and a lease after the crash of the holder", record: `
			0     a/1 takes
			100   b/1 waits lock
			1000  server fault 1 crash of a
			30002 server expire -> free
			31999 b/1 gets
			39000 server leave`},
		{rule: "and no more after that", finds: "liveness bug: b/1 waited for l from 1.000s to 32.001s while nobody believed to hold it; the bound is 31s (a second and 30s, after a crash)", record: `
			0     a/1 takes
			100   b/1 waits lock
			1000  server fault 1 crash of a
			30002 server expire -> free
			32000 b/1 gets
			39000 server leave`},
		{rule: "the crash of one who does not hold costs nothing", finds: "liveness bug: the bound is 1s", record: idle + `
			500  server fault 1 crash of c
			2002 b/1 gets
			9000 server leave`},
		{rule: "a second and a lease after an unknown release, from its return", record: `
			0     a/1 takes
			100   b/1 waits lock
			1000  a/1 invoke unlock
			1000  a/1 send unlock
			4000  a/1 return unknown
			30002 server expire -> free
			34999 b/1 gets
			39000 server leave`},
		{rule: "and no more after that release", finds: "liveness bug: to 35.001s while nobody believed to hold it; the bound is 31s (a second and 30s, after a call of unknown outcome)", record: `
			0     a/1 takes
			100   b/1 waits lock
			1000  a/1 invoke unlock
			1000  a/1 send unlock
			4000  a/1 return unknown
			30002 server expire -> free
			35000 b/1 gets
			39000 server leave`},
		{rule: "a second and a lease after an unknown acquire", record: `
			0     a/1 invoke lock
			0     a/1 send acquire
			1     a/1 exec acquire -> a/1 1 30001
			1     a/1 lost acquire reply dropped
			100   b/1 waits lock
			500   a/1 return unknown
			30002 server expire -> free
			31499 b/1 gets
			39000 server leave`},
		{rule: "and no more after that acquire", finds: "liveness bug: to 31.501s while nobody believed to hold it; the bound is 31s", record: `
			0     a/1 invoke lock
			0     a/1 send acquire
			1     a/1 exec acquire -> a/1 1 30001
			1     a/1 lost acquire reply dropped
			100   b/1 waits lock
			500   a/1 return unknown
			30002 server expire -> free
			31500 b/1 gets
			39000 server leave`},
		{rule: "a second and a lease after it ran, when that was after its return", record: ranLate + `
			51099 b/1 gets
			59000 server leave`},
		{rule: "and no more after it ran", finds: "liveness bug: while nobody believed to hold it; the bound is 31", record: ranLate + `
			51200 b/1 gets
			59000 server leave`},
		{rule: "an unknown acquire counts from its return, not from its call", record: idle + `
			0     c/1 waits lock
			1500  b/1 send acquire
			1501  b/1 exec acquire
			1502  b/1 deliver acquire
			1900  c/1 return unknown
			32899 b/1 gets
			39000 server leave`},
		{rule: "and no more after that return", finds: "liveness bug: b/1 waited for l from 1.002s to 32.901s while nobody believed to hold it; the bound is 31.898s", record: idle + `
			0     c/1 waits lock
			1500  b/1 send acquire
			1501  b/1 exec acquire
			1502  b/1 deliver acquire
			1900  c/1 return unknown
			32900 b/1 gets
			39000 server leave`},
		{rule: "a fault ends the waiter's connection again and again", record: idle + `
			1900 b/1 send hello nobody=y
			1900 b/1 lost hello request connection reset
			2800 b/1 send renew lock=m nobody=y
			2800 b/1 lost renew request connection reset
			3700 b/1 gets
			9000 server leave`},
		{rule: "that of another process does not matter", finds: "liveness bug: b/1 waited for l from 1.002s to 3.701s while nobody believed to hold it; the bound is 1s", record: idle + `
			1900 c/1 send hello nobody=y
			1900 c/1 lost hello request connection reset
			2800 c/1 send hello nobody=y
			2800 c/1 lost hello request connection reset
			3700 b/1 gets
			9000 server leave`},
		{rule: "it excuses no wait that was too long already", finds: `
			liveness bug: c/1 waited for l from 1.002s to 3.000s while nobody believed to hold it; the bound is 1s
			liveness bug: b/1 waited for l from 1.002s to 4.001s while nobody believed to hold it; the bound is 1s`, record: idle + `
			0     c/1 waits lock
			3000  c/1 return unknown
			4000  b/1 gets
			9000 server leave`},
		{rule: "unless the fault that made it so came in time", record: idle + `
			0     c/1 takes lock=m
			1010  c/1 releases lock=m
			1100  c/1 invoke try_lock
			1100  c/1 send acquire
			1100  c/1 hit 1 acquire hold
			4000  c/1 return unknown
			34999 b/1 gets
			39000 server leave`},

		{rule: "a waiter is served while it waits for the replicas of a grant that it gives back", record: givenBack + `
			9000 server leave`},
		{rule: "and others wait for it", record: givenBack + `
			100  c/1 waits lock
			2178 c/1 gets
			9000 server leave`},
		{rule: "but no longer", finds: "liveness bug: c/1 waited for l from 1.180s to 2.181s while nobody believed to hold it; the bound is 1s", record: givenBack + `
			100  c/1 waits lock
			2180 c/1 gets
			9000 server leave`},
		{rule: "fair: two waits and a second behind a dead waiter", lock: fairLock, record: deadWaiters + `
			12001 c/1 gets -> c/1 1 42002 queue=d/1`},
		{rule: "fair: and no more", lock: fairLock, finds: `
			liveness bug: c/1 waited for l from 1.002s to 12.003s while nobody believed to hold it; the bound is 11s (two waits of this lock and a second, with dead waiters in front)
			liveness bug: d/1`, record: deadWaiters + `
			12002 c/1 gets -> c/1 1 42003 queue=d/1`},
		{rule: "fair: several dead waiters make a limit of it", lock: fairLock,
			finds: "liveness limit (several dead waiters in the queue) (several dead waiters in the queue): d/1 waited for l from 1.002s to 12.003s", record: deadWaiters + `
			500   server fault 2 crash of c
			12002 d/1 gets`},
		{rule: "fair: clocks apart make a limit of it", lock: skewed(4 * time.Second), finds: `
			liveness limit (wall clocks apart): c/1 waited for l from 1.002s to 16.002s
			liveness limit (wall clocks apart): d/1`, record: deadWaiters + `
			16001 c/1 gets -> c/1 1 46002 queue=d/1`},
		{rule: "fair: but only of what they are apart", lock: skewed(4 * time.Second), finds: `
			liveness bug: c/1 waited for l from 1.002s to 16.003s
			liveness bug: d/1`, record: deadWaiters + `
			16002 c/1 gets -> c/1 1 46003 queue=d/1`},
		{rule: "fair: nor do they excuse it where nobody is dead", lock: skewed(4 * time.Second), finds: "liveness bug: b/1 waited for l from 1.002s to 2.003s", record: idle + `
			2002 b/1 gets
			9000 server leave`},
		{rule: "fair: what a dead waiter had sent comes after its death", lock: fairLock, record: `
			0    a/1 takes
			200  c/1 waits lock -> a/1 1 30001 queue=c/1
			1000 a/1 releases -> free queue=b/1,c/1
			300  b/1 invoke lock
			300  b/1 send acquire
			998  server fault 1 crash of b
			999  b/1 exec acquire -> a/1 1 30001 queue=b/1,c/1
			5001 c/1 gets -> c/1 1 35001
			9000 server leave`},
		{rule: "fair: who closed its client is as good as dead", lock: fairLock, record: `
			0    a/1 takes
			100  b/1 waits lock -> a/1 1 30001 queue=b/1
			200  c/1 waits lock -> a/1 1 30001 queue=b/1,c/1
			500  b close
			510  b/1 return error
			1000 a/1 releases -> free queue=b/1,c/1
			11001 c/1 gets -> c/1 1 41001
			19000 server leave`},
		{rule: "a second and a lease after a failover brought a hold back", record: idle + `
			1500 server fault 1 failover that loses the last 1 writes -> a/1 1 30001
			30002 server expire -> free
			31001 b/1 gets
			39000 server leave`},
		{rule: "and no more after that failover", finds: "liveness bug: the bound is", record: idle + `
			1500 server fault 1 failover that loses the last 1 writes -> a/1 1 30001
			30002 server expire -> free
			32600 b/1 gets
			39000 server leave`},
		{rule: "fair: a dead thread that is not in the queue costs nothing", lock: fairLock, finds: "liveness bug: the bound is 1s", record: idle + `
			500  server fault 1 crash of c
			2002 b/1 gets
			9000 server leave`},
	})
}

func TestWorkload(t *testing.T) {
	stock := Resource{Name: "stock", Start: 100, NeverBelow: new(int64(0)), End: new(int64(98))}
	twice := `
		1000 a/1 read stock 100
		1500 a/1 write stock 99 1
		2600 b/1 read stock 99
		4000 b/1 write stock 98 1
		9000 server leave
	`
	lostUpdate := `
		1000 a/1 read stock 100
		2600 b/1 read stock 100
		3000 a/1 write stock 99 1
		4000 b/1 write stock 99 1
		9000 server leave
	`
	refused := func(fault string) string {
		return `
		0    a/1 takes lease=9000 -> a/1 1 9001 token=7
		1000 a/1 read stock 100
		1500 a/1 write stock 99 1
		1700 a/1 releases -> free token=7
		` + fault + `
		2500 b/1 takes lease=6000 -> b/1 1 8501 token=5
		2600 b/1 refused stock 5
		3000 b/1 releases -> free token=5
		9000 server leave`
	}
	for _, c := range []struct {
		rule, finds string
		res         Resource
		record      string
	}{
		{"one after the other", "", stock, twice},
		{"whoever works without the lock", "workload limit (caller worked without the lock): b/1 wrote 99 to stock at 4.000s, although 2 of 100 were taken; a/1 worked from 1.000s to 3.000s, b/1 from 2.600s: they held no lock in common", stock, `
			0    a/1 takes
			900  a/1 releases
			2500 b/1 takes` + lostUpdate},
		{"whoever begins to work past its lease", "workload limit (caller worked past its own lease): the lease that b/1 asked for had ended", stock, `
			0    b/1 takes lease=500
			502  server expire -> free
			900  a/1 takes` + lostUpdate},
		{"two who held it after one who worked past its lease", "mutual-exclusion bug\n workload bug: c/1 worked from 2.800s to 3.500s, d/1 from 2.900s", stock, `
			0    a/1 takes lease=2000
			2002 server expire -> free
			2500 b/1 takes lease=100
			2602 server expire -> free
			2650 c/1 takes lease=9000 -> c/1 1 2690
			2691 server expire -> free
			2700 d/1 takes lease=9000
			2800 c/1 read stock 100
			2900 d/1 read stock 100
			3500 c/1 write stock 99 1
			3600 d/1 write stock 99 1` + lostUpdate},
		{"another's resource", "", Resource{Name: "other"}, lostUpdate},
		{"below what it must never be", "workload bug: b/1 wrote 98 to stock", Resource{Name: "stock", Start: 100, NeverBelow: new(int64(99))}, twice},
		{"not at its end", "workload bug: stock ended at 98, not at 97", Resource{Name: "stock", Start: 100, End: new(int64(97))}, twice},
		{"a waiter to the end leaves work undone", "liveness bug\n workload bug: stock ended at 99, not at 98; b/1 waited for l from 2.000s to the end", stock, `
			0    a/1 takes
			1000 a/1 read stock 100
			1500 a/1 write stock 99 1
			1900 a/1 releases
			2000 b/1 invoke lock
			9000 b/1 return waiting
			9000 server leave`},
		{"a holder whose token fell back is refused", "fencing bug\n workload bug: stock ended at 99, not at 98; at 2.600s it had refused b/1, whose token was smaller than an earlier one", stock, refused("")},
		{"the clock from which tokens come was set back", "fencing limit (wall clock of a server stepped)\n workload limit (wall clock of a server stepped): stock ended at 99, not at 98; at 2.600s it had refused b/1",
			stock, refused("1800 server fault 1 wall clock of the server steps by -40s")},
		{"a holder whose token grew is refused", "workload bug: stock ended at 99, not at 98", stock, strings.ReplaceAll(refused("1800 server fault 1 wall clock of the server steps by -40s"), "token=5", "token=8")},
		{"the same holder is refused with a later token, which grew", "fencing limit (wall clock of a server stepped)\n workload bug: stock ended at 99, not at 98", stock, strings.NewReplacer("b/1 refused stock 5", "b/1 check met", "9000 server leave", `
		3100 b/1 takes lease=3000 -> b/1 1 6101 token=9
		3200 b/1 refused stock 9
		3300 b/1 releases -> free token=9
		9000 server leave`).Replace(refused("1800 server fault 1 wall clock of the server steps by -40s"))},
		{"nobody worked", "workload bug: stock ended at 100, not at 98", stock, "9000 server leave"},
		{"the dead leave work undone", "", stock, "5 server fault 1 crash of a\n 9000 server leave"},
		{"whoever works past the lease that it asked for", "workload limit (caller worked past its own lease): the lease that a/1 asked for had ended", stock, `
			0    a/1 takes lease=2000
			2002 server expire -> free
			2500 b/1 takes lease=9000` + lostUpdate},
		{"a lease that ended while it was still believed in", "mutual-exclusion bug\n workload bug: its lease had ended at 2.002s", stock, `
			0    a/1 takes lease=3000 -> a/1 1 2001
			2002 server expire -> free
			2500 b/1 takes lease=9000` + lostUpdate},
		{"a holder paused past its lease", "mutual-exclusion limit (holder paused past its lease)\n workload limit (holder paused past its lease)", stock, `
			0    a/1 takes lease=2000
			1100 server fault 1 pause of a for 1800ms
			2002 server expire -> free
			2500 b/1 takes lease=9000
			2900 server heal 1` + lostUpdate},
		{"an operator removed the hold", "mutual-exclusion limit (hold removed by another hand)\n workload limit (hold removed by another hand)", stock, `
			0    a/1 takes lease=8000
			1100 server fault 1 delete of key l -> free
			2500 b/1 takes lease=6000` + lostUpdate},
	} {
		t.Run(c.rule, func(t *testing.T) {
			lock := plainLock
			lock.Fenced = strings.Contains(c.record, "token=")
			expect(t, c.finds, judgeRecord(recordOf(t, lock, c.record), []Resource{c.res}))
		})
	}
}

// Of a lock without State, a fault that may have removed a hold has.
func TestWorkloadOfALockThatNobodySees(t *testing.T) {
	lock := anybodys
	lock.Promises = model.Promises{}
	for _, judge := range model.Judges {
		if judge != model.JudgeWorkload {
			lock.Promises[judge] = model.Promise{Waived: true, Unjudged: true}
		}
	}
	const record = `
		0    a/1 invoke lock lease=8000
		2    a/1 return granted
		10   a/1 read stock 100
		1000 server fault 1 delete of key *
		1022 b/1 invoke lock lease=8000
		1024 b/1 return granted
		1030 b/1 read stock 100
		2000 a/1 write stock 99 1
		2010 b/1 write stock 99 1
		9000 server leave`
	stock := []Resource{{Name: "stock", Start: 100}}
	expect(t, "workload limit (hold removed by another hand): b/1 wrote 99 to stock at 2.010s, although 2 of 100 were taken; a/1 worked from 0.010s to 2.000s, b/1 from 1.030s: delete of key * had removed it at 1.000s",
		judgeRecord(recordOf(t, lock, record), stock))
	expect(t, "workload bug: b/1 wrote 99 to stock at 2.010s", judgeRecord(recordOf(t, lock, strings.Replace(record, "1000 server fault", "5000 server fault", 1)), stock))
}

func TestWantAndDefects(t *testing.T) {
	testJudged(t, []judged{
		{rule: "a want that was met", record: "5 a/1 check met the reply was nil"},
		{rule: "a want that was not", finds: "want bug: a/1 at 0.005s: the reply was nil, not 5", record: "5 a/1 check unmet the reply was nil, not 5"},
		{rule: "a defect of the harness decides nothing", finds: "harness undecided: the lock panicked", record: "5 server defect the lock panicked"},
	})
}

func TestReached(t *testing.T) {
	for _, c := range []struct {
		rule, reached string
		record        string
	}{
		{"nothing", "", "0 a/1 takes\n 1000 a/1 releases\n 9000 server leave"},
		{"a renewal that prolonged", "renewed", "0 a/1 takes\n 10000 a/1 renews"},
		{"a renewal that found nothing", "", "0 a/1 takes\n 1000 a/1 releases\n 1001 a/1 send renew\n 1002 a/1 exec renew"},
		{"a renewal that shortened", "", "0 a/1 takes\n 10000 a/1 renews -> a/1 1 20001"},
		{"a lease that ended", "lease_expired", "0 a/1 takes lease=1000\n 1002 server expire -> free"},
		{"a key that an operator deleted did not expire", "", "0 a/1 takes lease=1000\n 500 server fault 1 delete of key l -> free"},
		{"a lock entered again", "reentered", "0 a/1 takes\n 100 a/1 takes -> a/1 2 30101"},
		{"a lock taken again", "", "0 a/1 takes\n 50 a/1 releases\n 100 a/1 takes"},
		{"the release of one who holds no more", "lease_expired stale_unlock", "0 a/1 takes lease=1000\n 1002 server expire -> free\n 2000 a/1 invoke unlock\n 2000 a/1 send unlock\n 2001 a/1 exec unlock"},
		{"the release of one who holds no more, that never ran", "lease_expired", "0 a/1 takes lease=1000\n 1002 server expire -> free\n 2000 a/1 invoke unlock\n 2000 a/1 send unlock"},
		{"a lost wake-up", "wakeup_lost", "5 b push lost dropped"},
		{"a wake-up that nobody waits for", "", "5 b push lost nobody waits for it"},
		{"a reply lost after its command ran", "reply_lost_after_run", "0 a/1 send acquire\n 1 a/1 exec acquire\n 1 a/1 lost acquire reply dropped"},
		{"a reply lost before", "", "0 a/1 send acquire\n 0 a/1 lost acquire reply dropped"},
		{"a command lost", "", "0 a/1 send acquire\n 0 a/1 lost acquire request dropped"},
		{"a script that the server did not know did not run", "", "0 a/1 send acquire\n 1 a/1 exec acquire (error) NOSCRIPT\n 1 a/1 lost acquire reply dropped"},
		{"a waiter evicted by another", "waiter_evicted", "0 b/1 waits lock -> free queue=b/1\n 100 c/1 waits lock -> free queue=c/1"},
		{"a waiter that left", "", "0 b/1 waits lock -> free queue=b/1\n 100 b/1 send leave\n 101 b/1 exec leave -> free"},
		{"a waiter served", "handed_over", idle + "1010 b/1 gets"},
		{"one who came after the release", "", "0 a/1 takes\n 1000 a/1 releases\n 2000 b/1 takes"},
		{"one who waited for a lease's end", "lease_expired", "0 a/1 takes lease=1000\n 100 b/1 waits lock\n 1002 server expire -> free\n 1100 b/1 gets"},
		{"a failover", "failed_over", "5 server fault 1 failover that loses the last 1 writes"},
		{"a restart", "", "5 server fault 1 server restart, keeping its data"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			got := judgeRecord(recordOf(t, plainLock, c.record), nil).Reached
			if strings.Join(got, " ") != c.reached {
				t.Errorf("reached %v, want %s", got, c.reached)
			}
		})
	}
}

func TestReachedIsInOrder(t *testing.T) {
	got := judgeRecord(recordOf(t, plainLock, `
		0    server fault 1 failover that loses the last 1 writes
		1    b push lost dropped
		100  a/1 takes lease=1000
		1102 server expire -> free`), nil).Reached
	if want := []string{"lease_expired", "wakeup_lost", "failed_over"}; !slices.Equal(got, want) {
		t.Errorf("reached %v, want %v", got, want)
	}
}

func TestFindingsAreInOrder(t *testing.T) {
	j := judgeRecord(recordOf(t, plainLock, `
		0    a/1 check unmet first
		0    a/1 takes lease=1000 -> a/1 1 endless
		100  b/1 takes lease=1000
		200  c/1 takes lease=1000`), nil)
	got := make([]int, 0, len(j.Findings))
	for i, f := range j.Findings {
		got = append(got, slices.Index(model.Judges, f.Judge))
		if i > 0 && got[i] == got[i-1] && f.AtNs < j.Findings[i-1].AtNs {
			t.Errorf("%s at %d stands after one at %d", f.Judge, f.AtNs, j.Findings[i-1].AtNs)
		}
	}
	if !slices.IsSorted(got) || len(slices.Compact(got)) < 3 {
		t.Errorf("findings of judges %v, want them in the order of model.Judges", got)
	}
	if broken, bug := j.Has(model.JudgeWant); !broken || !bug {
		t.Error("the want that was not met is no bug")
	}
	if broken, bug := j.Has(model.JudgeFIFO); broken || bug {
		t.Error("order on the plain lock was judged")
	}
}

func TestForceUnlockIsMeant(t *testing.T) {
	testJudged(t, []judged{
		{rule: "one's own: the caller holds no longer, and the count begins anew", record: `
			0    a/1 takes
			500  a/1 invoke force_unlock
			500  a/1 send force_unlock
			501  a/1 exec force_unlock -> free
			502  a/1 deliver force_unlock
			502  a/1 return released
			1000 b/1 takes
			2000 b/1 releases
			9000 server leave`},
		{rule: "another's: two may believe at once, and it is nobody's bug",
			finds: "mutual-exclusion limit (hold removed by another hand): b/1 had forced it open", record: `
			0    a/1 takes
			500  b/1 invoke force_unlock
			500  b/1 send force_unlock
			501  b/1 exec force_unlock -> free
			502  b/1 deliver force_unlock
			502  b/1 return released
			1000 b/1 takes
			2000 b/1 releases
			9000 server leave`},
		{rule: "a level that it took is believed in also when the lease of a later one was over", finds: `
			mutual-exclusion limit (hold removed by another hand): while a/1 believed to hold it since 1.720s: b/1 had forced it open at 0.501s`, record: `
			0    a/1 takes
			500  b/1 invoke force_unlock
			500  b/1 send force_unlock
			501  b/1 exec force_unlock -> free
			502  b/1 deliver force_unlock
			502  b/1 return released
			1000 a/1 takes
			1100 a/1 takes lease=600 -> a/1 2 1701
			1650 a/1 invoke unlock
			1650 a/1 send unlock
			1690 a/1 exec unlock -> a/1 1 31690
			1720 a/1 deliver unlock
			1720 a/1 return still_held
			1800 a/1 releases
			2000 b/1 takes
			3000 b/1 releases
			9000 server leave`},
	})
}

func TestAnInterruptExcusesOnlyWhatComesAfter(t *testing.T) {
	testJudged(t, []judged{
		{rule: "starved before it was interrupted", finds: "liveness bug: the bound is 1s", record: idle + `
			5000 a/2 interrupts b/1
			9000 server leave`},
		{rule: "interrupted before it starved", record: idle + `
			1900 a/2 interrupts b/1
			9000 server leave`},
		{rule: "the interrupted call ends at the interrupt", finds: "liveness bug: b/1 waited for l from 1.002s to 4.000s while nobody believed to hold it; the bound is 1s", record: idle + `
			4000 a/2 interrupts b/1
			4000 b/1 return error
			9000 server leave`},
		{rule: "or a millisecond later", finds: "liveness bug: b/1 waited for l from 1.002s to 4.000s while nobody believed to hold it; the bound is 1s", record: idle + `
			4000 a/2 interrupts b/1
			4001 b/1 return error
			9000 server leave`},
		{rule: "an interrupt that its call outlives excuses nobody else", finds: "liveness bug: c/1 waited for l from 1.002s to 5.001s while nobody believed to hold it; the bound is 1s", record: idle + `
			1000 c/1 waits lock
			1900 a/2 interrupts b/1
			5000 c/1 gets
			5100 b/1 return error
			9000 server leave`},
		{rule: "another waits after an interrupt that came in time", record: idle + `
			1000 c/1 waits lock
			1900 a/2 interrupts c/1
			1901 c/1 return error
			1950 b/1 send acquire
			1951 b/1 exec acquire
			1952 b/1 deliver acquire
			5000 b/1 gets
			9000 server leave`},
		{rule: "unless the other has no answer, and so meets nothing that the call may have left", finds: "liveness bug: b/1 waited for l from 1.002s to 5.001s while nobody believed to hold it; the bound is 1s", record: idle + `
			1000 c/1 waits lock
			1900 a/2 interrupts c/1
			1901 c/1 return error
			5000 b/1 gets
			9000 server leave`},
	})
}

// A waiter takes the wake-up of a release with it when its answer is lost, and another sleeps on.
func TestAnAcquireOfUnknownOutcomeExcusesNobodyWhoMeetsNothingOfIt(t *testing.T) {
	const finds = "liveness bug: b/1 waited for l from 1.002s to 6.001s while nobody believed to hold it; the bound is 1s"
	const lost = idle + `
		200  c/1 waits lock
		203  c/1 send pop
		1001 c/1 exec pop
		1002 c/1 lost pop reply its connection ended
		1010 c/1 return unknown
		6000 b/1 gets
		9000 server leave`
	several := plainLock
	several.Parts = 3
	unseen := plainLock
	unseen.Promises = model.Promises{model.JudgeMutualExclusion: {Unjudged: true}}
	testJudged(t, []judged{
		{rule: "the server holds nothing of it", finds: finds, record: lost},
		{rule: "the server shows the place of the waiter, but none of it", lock: fairLock, finds: finds, record: strings.Replace(lost, "b/1 waits lock", "b/1 waits lock -> a/1 1 30001 queue=b/1", 1)},
		{rule: "the server shows a hold of it that is over", record: strings.Replace(lost, "1001 c/1 exec pop", "1001 c/1 exec pop -> c/1 1 1005\n1006 server expire -> free", 1)},
		{rule: "or one of which nobody knows the owner", record: strings.Replace(lost, "1001 c/1 exec pop", "1001 c/1 exec pop -> ? 1 1005\n1006 server expire -> free", 1)},
		{rule: "or its place in the queue", lock: fairLock, record: strings.Replace(lost, "c/1 waits lock", "c/1 waits lock -> a/1 1 30001 queue=c/1", 1)},
		{rule: "or one from before the call", lock: fairLock, finds: "tidy bug: c/1 stands in the queue of l at 0.101s, and does not wait", record: `
		0    a/1 takes
		100  b/1 waits lock -> a/1 1 30001 queue=c/1,b/1
		1000 a/1 releases -> free queue=c/1,b/1
		1005 c/1 waits lock
		1010 c/1 return unknown
		6000 b/1 gets
		9000 server leave`},
		{rule: "or no queue at all, and there may be one", lock: fairLock, record: lost},
		{rule: "or only who has most of several parts", lock: several, record: lost},
		{rule: "or nothing", lock: unseen, record: lost},
		{rule: "a request of it is under way", record: strings.NewReplacer("1001 c/1 exec pop", "", "1002 c/1 lost pop reply its connection ended", "").Replace(lost)},
		{rule: "nobody knows what it asked", record: strings.NewReplacer("200  c/1 waits lock", "200  c/1 invoke lock", "203  c/1 send pop", "", "1001 c/1 exec pop", "", "1002 c/1 lost pop reply its connection ended", "").Replace(lost)},
		{rule: "the waiter asked and got nothing", record: strings.Replace(lost, "1010", "1100 b/1 send acquire\n1101 b/1 exec acquire\n1102 b/1 deliver acquire\n1010", 1)},
		{rule: "the waiter asked just before, and got the answer then", record: strings.Replace(lost, "1010", "999 b/1 send acquire\n1000 b/1 exec acquire\n1003 b/1 deliver acquire\n1010", 1)},
		{rule: "the waiter asked too late", finds: finds, record: strings.Replace(lost, "1010", "2100 b/1 send acquire\n2101 b/1 exec acquire\n2102 b/1 deliver acquire\n1010", 1)},
		{rule: "it is of the waiter's own process", record: strings.ReplaceAll(lost, "c/1", "b/2")},
	})
}

func TestALeaseOfBeforeLicensesNothing(t *testing.T) {
	longer := "lease bug: got a lease of 8s, and asked for 1s at most"
	testJudged(t, []judged{
		{rule: "the lease of a hold that was given up", finds: longer, record: `
			0    a/1 takes lease=9000
			1000 a/1 releases
			2000 a/1 takes lease=1000 -> a/1 1 10001
			2500 a/1 releases
			9000 server leave`},
		{rule: "the lease of the level before", record: `
			0    a/1 takes lease=9000
			1000 a/1 takes lease=1000 -> a/1 2 10001 # nine seconds from here
			5000 server leave`},
	})
}

func TestAnOrphanThatWasGrantedAfterTheDeath(t *testing.T) {
	base := `
		0     a/1 invoke lock
		0     a/1 send acquire
		1     server fault 1 crash of a
		2     a/1 exec acquire -> a/1 1 30002
		`
	testJudged(t, []judged{
		{rule: "it ends with its lease", record: base + `
			30003 server expire -> free
			39000 server leave`},
		{rule: "nobody prolongs it", finds: "lease bug: was prolonged at 10.001s, although it had died", record: base + `
			10000 a/1 renews -> a/1 1 40001
			40002 server expire -> free
			49000 server leave`},
	})
}

func TestOnePauseOfAMillisecondExcusesNoMissingRenewal(t *testing.T) {
	hold := `
		0     a/1 takes
		30002 server expire -> free
		31000 b/1 takes
		32000 b/1 releases
		39000 server leave
		`
	testJudged(t, []judged{
		{rule: "a millisecond at which nothing was due", finds: `
			mutual-exclusion bug: its lease had ended
			lease bug: its watchdog should have renewed it`, record: hold + `
			25000 server fault 1 pause of a for 1ms
			25001 server heal 1`},
		{rule: "a period and more", finds: `
			mutual-exclusion limit (holder cut off until its lease ended): its lease had ended`, record: hold + `
			12000 server fault 1 pause of a for 16s
			28000 server heal 1`},
	})
}

func TestReenteredIsTheHoldersOwn(t *testing.T) {
	queued := judgeRecord(recordOf(t, fairLock, `
		0    a/1 takes
		100  b/1 waits lock -> a/1 1 30001 queue=b/1
		1000 a/1 releases -> free queue=b/1
		1003 b/1 gets
		9000 server leave`), nil)
	if slices.Contains(queued.Reached, "reentered") {
		t.Error("a waiter that queues does not enter again")
	}
	again := judgeRecord(recordOf(t, fairLock, `
		0    a/1 takes
		100  a/1 takes -> a/1 2 30101
		9000 server leave`), nil)
	if !slices.Contains(again.Reached, "reentered") {
		t.Error("a second entry was not noticed")
	}
}

func TestACallThatNeverReturns(t *testing.T) {
	backsOff := ourLock
	backsOff.Reconnect = 2 * time.Minute
	dials := func(leave string) string {
		return `
			0     a/1 invoke try_lock
			0     a/1 send connect nobody=y
			0     a/1 hit 1 connect
			0     a/1 lost connect request dropped
			69900 a/1 send connect nobody=y
			69900 a/1 hit 1 connect
			69900 a/1 lost connect request dropped
			71000 server calm
			` + leave + ` server leave`
	}
	testJudged(t, []judged{
		{rule: "an unlock, long after calm", finds: "liveness bug: unlock of l by a/1, called at 1.000s, had not returned at 99.000s", record: `
			0     a/1 takes
			1000  a/1 invoke unlock
			2000  server calm
			99000 server leave`},
		{rule: "an unlock that may still be given up", record: `
			0     a/1 takes
			1000  a/1 invoke unlock
			2000  server calm
			26000 server leave`},
		{rule: "a timed try whose time is long over", finds: "liveness bug: try_lock_timed of l by b/1", record: `
			0     a/1 takes
			1000  b/1 waits try_lock_timed wait=500
			2000  server calm
			99000 server leave`},
		{rule: "a lock() waits for as long as somebody holds", record: `
			0     a/1 takes
			1000  b/1 waits lock
			2000  server calm
			99000 server leave`},
		{rule: "a timed try of a lock without a bound waits as long",
			lock: model.Params{Lock: "mine", Timing: timing(0), Promises: model.Promises{model.JudgeWaitBound: {Waived: true}}}, record: `
			0     a/1 takes
			1000  b/1 waits try_lock_timed wait=500
			2000  server calm
			99000 server leave`},
		{rule: "the dead return nothing", record: `
			0     a/1 takes
			1000  a/1 invoke unlock
			1001  server fault 1 crash of a
			2000  server calm
			99000 server leave`},
		{rule: "a client waits before it connects again", lock: backsOff, record: dials("192000")},
		{rule: "and not for longer than it says", lock: backsOff, record: dials("192001"),
			finds: "liveness bug: try_lock of l by a/1, called at 0.000s, had not returned at 192.001s, although every fault was over at 71.000s"},
		{rule: "another connects within seconds", lock: ourLock, record: dials("102000"), finds: "liveness bug: try_lock of l by a/1, called at 0.000s, had not returned at 102.000s"},
		{rule: "and so does one that no fault met", lock: backsOff, record: strings.NewReplacer("a/1 send", "c/1 send", "a/1 hit", "c/1 hit", "a/1 lost", "c/1 lost").Replace(dials("102000")),
			finds: "liveness bug: try_lock of l by a/1, called at 0.000s, had not returned at 102.000s"},
	})
}

func TestWhatAFailoverLeavesIsTheTruth(t *testing.T) {
	// A request is sent twice, and the second runs as if it were another.
	const forgotten = `
			0    a/1 takes
			50   a/1 invoke unlock
			50   a/1 send unlock
			60   a/1 send unlock
			70   a/1 exec unlock nth=1 -> free
			71   a/1 deliver unlock nth=1
			71   a/1 return released
			100  a/1 takes
			200  a/1 exec unlock nth=2 -> free
			9000 server leave`
	testJudged(t, []judged{
		{rule: "a level of re-entry lost", record: `
			0    a/1 takes
			100  a/1 takes -> a/1 2 30101
			200  server fault 1 failover that loses the last 1 writes -> a/1 1 30001
			300  a/1 releases
			9000 server leave`},
		{rule: "our server's memory of a call is removed before the last of what it sent runs", lock: ourLock,
			finds: "hold-count limit (memory of a call removed by another hand)", record: forgotten + `
			150  server fault 1 delete of key reference_memory:{l}:a:1`},
		{rule: "but not when all had run", lock: ourLock, finds: "hold-count bug", record: forgotten + `
			250  server fault 1 delete of key reference_memory:{l}:a:1`},
		{rule: "a level given up, which it brought back before the call returned", record: `
			0    a/1 takes
			100  a/1 invoke unlock
			100  a/1 send unlock
			101  a/1 exec unlock -> free
			102  server fault 1 failover that loses the last 1 writes -> a/1 1 30001
			103  a/1 lost unlock reply connection reset
			3100 a/1 return unknown
			9000 server leave`},
		{rule: "without the failover it is a level too few", finds: `
			linearizable bug: answered released, but the lock was free
			hold-count bug: the server counts 0 for a/1`, record: `
			0    a/1 takes
			100  a/1 takes -> a/1 2 30101
			300  a/1 releases
			9000 server leave`},
	})
}

// search looks for an order of the history of a lock.
func (r *run) search(lock string) linearizability.LockResult {
	res := linearizability.Check(r.history(lock), linearizability.Options{LeaseGrainNs: millisecond})
	if len(res.Locks) == 0 {
		return linearizability.LockResult{Lock: lock, Verdict: linearizability.OK}
	}
	return res.Locks[0]
}

// A lock may round the instant from which a lease counts up to a whole millisecond.
func TestALeaseOfARoundedInstant(t *testing.T) {
	for _, c := range []struct {
		ends string
		want int
	}{{"3002", 0}, {"3003", 1}} {
		rec := recordOf(t, plainLock, "0 a/1 takes lease=3000 -> a/1 1 "+c.ends+"\n9000 server leave")
		for i := range rec.Events {
			rec.Events[i].AtNs += 801_000
		}
		found := slices.DeleteFunc(Judge(trace.New(rec), nil).Findings, func(f Finding) bool { return f.Judge != model.JudgeLease })
		if len(found) != c.want {
			t.Errorf("a lease of 3s that begins at 1.801ms and ends at %sms: %v", c.ends, found)
		}
	}
}
