package report_test

import (
	"encoding/xml"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/model/trace"
	"lockstep/report"
	"lockstep/scenarios"
)

func TestTheTextTellsTheStory(t *testing.T) {
	text := report.Text(played(t, "unlock-reply-lost", "redisson@3.21.3"))
	// These texts follow in this order. A change of the owner is in the server's column.
	rest := text
	for _, want := range []string{
		"a/1                          b/1                          server",
		"calls lock orders, lease 60.000s",
		"held by a/1 ×2, until",
		"LOST: the reply of unlock (dropped)",
		"lock orders: granted",
		"▶ 4.699s mutual-exclusion (bug)",
		"a/1 and b/1 both believed to hold orders for",
	} {
		_, after, ok := strings.Cut(rest, want)
		if !ok {
			t.Fatalf("%q is missing, or comes too soon, in\n%s", want, text)
		}
		rest = after
	}
}

// A wall clock that is wrong stands above the timeline.
func TestTheTextTellsOfWrongClocks(t *testing.T) {
	sc, err := scenarios.Find("misdelete")
	if err != nil {
		t.Fatal(err)
	}
	const told = "the wall clock of b is up to 10s wrong\n"
	for _, offset := range []time.Duration{0, -10 * time.Second} {
		for i, p := range sc.Processes {
			if p.Name == "b" {
				sc.Processes[i].WallOffset = scenarios.Duration(offset)
			}
		}
		v := verdictOf(t, sc, "setnx-del")
		r := report.Run{Scenario: sc.Name, Record: v.Played.Record, Findings: v.Findings}
		for _, text := range []string{report.Text(r), report.Shortened(r, 12)} {
			if n := strings.Count(text, "the wall clock of "); n != map[bool]int{true: 1}[offset != 0] || n == 1 && !strings.Contains(text, told) {
				t.Errorf("with a clock that is %v wrong:\n%s", offset, text)
			}
		}
	}
}

func TestTheTextFitsAHundredColumns(t *testing.T) {
	runs := []report.Run{long(3000)}
	for _, s := range stories {
		runs = append(runs, played(t, s.scenario, s.lock))
	}
	runs = append(runs, played(t, "inventory-small", "redisson@3.4.2")) // six threads
	for _, r := range runs {
		for _, text := range []string{report.Text(r), report.Shortened(r, 12)} {
			for _, line := range strings.Split(text, "\n") {
				if n := utf8.RuneCountInString(line); n > 100 {
					t.Errorf("%s: %d columns: %s", r.Scenario, n, line)
				}
			}
		}
	}
}

// The repeated attempts of a waiter are folded into one line.
func TestRepeatsAreFolded(t *testing.T) {
	text := report.Text(played(t, "misdelete", "setnx-del"))
	if !strings.Contains(text, "SET) 17 times more from 1.103s until 2.806s,") {
		t.Errorf("the polls are not folded:\n%s", text)
	}
	if n := strings.Count(text, "acquire (SET) of b/1 → nil"); n != 2 {
		t.Errorf("%d polls are left, want the first and the last", n)
	}
	if !strings.Contains(text, "held by b/1") {
		t.Error("the acquire that was granted was folded too")
	}
}

// The attempts of a waiter may consist of several commands. Those that a finding of traffic counts are folded
// apart, so that the lines add up to the number in its sentence.
func TestGroupsOfCommandsAreFolded(t *testing.T) {
	type command struct{ name, reply string }
	set, pttl := command{"SET", "nil"}, command{"PTTL", "%d"}
	times := func(n int, group ...command) []command { return slices.Repeat(group, n) }
	for _, c := range []struct {
		rule    string
		sent    []command // one every 25 ms from 1 s on; %d is a number that differs from command to command
		counted int       // by a finding of traffic at 1 s
		want    []string  // the lines in place of several commands
		shown   int       // commands with lines of their own
	}{
		{rule: "two commands", sent: times(30, set, pttl), want: []string{"SET, PTTL 28 times more, 56 commands from 1.050s until 2.426s, with nothing changed"}, shown: 4},
		{rule: "two commands of which a finding counts some", sent: times(30, set, pttl), counted: 40,
			want: []string{"SET, PTTL 18 times more, 36 commands from 1.050s until 1.926s, with nothing changed", "SET, PTTL 8 times more, 16 commands from 2.050s until 2.426s"}, shown: 8},
		{rule: "a count that ends within a group", sent: times(20, set, pttl, command{"GET", "a"}), counted: 40,
			want: []string{"SET, PTTL, GET 11 times more, 33 commands from 1.075s until", "PTTL, GET, SET 4 times more, 12 commands from 2.075s until"}, shown: 6 + 1 + 6 + 2},
		{rule: "one command", sent: times(30, set), want: []string{"SET 28 times more from 1.025s until 1.701s, with nothing changed"}, shown: 2},
		{rule: "one command of which each attempt sends two", sent: times(5, set, set), want: []string{"SET 8 times more from"}, shown: 2},
		{rule: "others before and after", sent: slices.Concat(times(1, command{"HELLO", "ok"}), times(10, set, pttl), times(2, command{"GET", "a"})),
			want: []string{"SET, PTTL 8 times more, 16 commands from"}, shown: 1 + 4 + 2},
		{rule: "an incomplete group at the end", sent: append(times(10, set, pttl), set), want: []string{"SET, PTTL 8 times more, 16 commands from"}, shown: 5},
		{rule: "another answer", sent: slices.Concat(times(6, set, pttl), times(6, set, command{"PTTL", "-%d"})),
			want: []string{"SET, PTTL 4 times more, 8 commands from", "SET, PTTL 4 times more, 8 commands from"}, shown: 8},
		{rule: "too few", sent: times(4, set, pttl), shown: 8},
		{rule: "another order each time", sent: slices.Concat(times(2, set, pttl), times(2, pttl, set), times(2, set, pttl), times(2, pttl, set)), shown: 16},
	} {
		rec := &model.Record{Params: model.Params{Lock: "any", Processes: []model.ProcessParams{{Name: "b", Threads: 1}}}}
		rec.Add(model.Event{AtNs: 1e9, Kind: model.KindInvoke, Process: "b", Thread: 1, Op: 1, Action: model.ActLock, Lock: "x"})
		for i, m := range c.sent {
			e := model.Event{AtNs: 1e9 + int64(i)*25e6, Kind: model.KindSend, Process: "b", Op: 1, Msg: i + 1, Conn: 1, Command: m.name, Locks: []string{"x"}}
			rec.Add(e)
			e.Kind, e.Reply = model.KindExec, strings.ReplaceAll(m.reply, "%d", strconv.Itoa(5000-i*25))
			rec.Add(e)
			rec.Add(model.Event{AtNs: e.AtNs + 1e6, Kind: model.KindDeliver, Process: "b", Msg: e.Msg, Dir: "reply", Conn: 1})
		}
		r := report.Run{Scenario: "polls", Lock: "any", Verdict: "bug", Record: rec}
		text := report.Text(r)
		if c.counted > 0 {
			r.Findings = []judges.Finding{{Judge: model.JudgeTraffic, Verdict: judges.Broken, Class: judges.ClassBug, AtNs: 1e9, Detail: judges.Traffic{Sent: c.counted},
				Facts: model.Facts{Lock: "x", Thread: "b/1"}, Ops: []judges.OpRef{{Process: "b", Thread: 1, Op: string(model.ActLock), CallNs: 1e9, ReturnNs: -1}}}}
			text = report.Text(r)
			// The short story ends with the last command that counts.
			story := strings.Join(strings.Fields(report.Shortened(r, 40)), " ")
			sum := strings.Count(story, " → ")
			for _, n := range regexp.MustCompile(`(\d+) commands from`).FindAllStringSubmatch(story, -1) {
				folded, _ := strconv.Atoi(n[1])
				sum += folded
			}
			if sum != c.counted {
				t.Errorf("%s: the lines of the short story add up to %d commands, want %d:\n%s", c.rule, sum, c.counted, report.Shortened(r, 40))
			}
		}
		rest := strings.Join(strings.Fields(text), " ")
		if folded := strings.Count(rest, "times more"); folded != len(c.want) {
			t.Errorf("%s: %d lines stand for several commands, want %d:\n%s", c.rule, folded, len(c.want), text)
		}
		for _, want := range c.want {
			_, after, ok := strings.Cut(rest, want)
			if !ok {
				t.Errorf("%s: %q is missing, or comes too soon, in\n%s", c.rule, want, text)
			}
			rest = after
		}
		if shown := strings.Count(text, " → "); shown != c.shown {
			t.Errorf("%s: %d commands are shown, want %d:\n%s", c.rule, shown, c.shown, text)
		}
	}
}

// Renewals that prolong a hold, or change nothing, are folded, as long as nothing else happens to the
// hold. A renewal about which a judge found something is shown.
func TestRenewalsAreFolded(t *testing.T) {
	for _, c := range []struct {
		rule    string
		between []model.Event // after 10 of 20 renewals, at 10.5s
		found   int64         // when a judge found something, in seconds
		segment bool          // the renewals are segments, which have no answer
		asked   []string      // the words for which the segments were asked
		idle    bool          // the last 10 renewals change nothing
		gone    bool          // they are about no lock, since the hold is gone
		want    []string      // the lines of the watchdog; it renews once a second
		shown   int           // renewals with lines of their own
	}{
		{rule: "nothing happens", want: []string{"renew 18 times more from 2.000s until 19.002s, which prolonged the hold"}, shown: 2},
		{rule: "another process calls", between: []model.Event{{Kind: model.KindInvoke, Process: "b", Thread: 1, Op: 2, Action: model.ActLock, Lock: "x"}},
			want: []string{"renew 18 times more from 2.000s until 19.002s, which"}, shown: 2},
		{rule: "a fault", between: []model.Event{{Kind: model.KindFault, Fault: 1, Process: "b", Text: "pause of b"}},
			want: []string{"renew 8 times more from 2.000s until 9.002s, which", "renew 8 times more from 12.000s until 19.002s, which"}, shown: 4},
		{rule: "its process calls", between: []model.Event{{Kind: model.KindInvoke, Process: "a", Thread: 2, Op: 2, Action: model.ActLock, Lock: "x"}},
			want: []string{"renew 8 times more from 2.000s until 9.002s, which", "renew 8 times more from 12.000s until 19.002s, which"}, shown: 4},
		{rule: "its process calls for another lock", between: []model.Event{{Kind: model.KindInvoke, Process: "a", Thread: 2, Op: 2, Action: model.ActLock, Lock: "y"}},
			want: []string{"renew 18 times more from 2.000s until 19.002s, which"}, shown: 2},
		{rule: "a renewal that does nothing", between: []model.Event{{Kind: model.KindSend, Process: "a", Msg: 100, Script: model.RoleRenew, Locks: []string{"x"}},
			{Kind: model.KindExec, Process: "a", Msg: 100, Script: model.RoleRenew, Locks: []string{"x"}, Reply: "0"}},
			want: []string{"renew 8 times more from 2.000s until 9.002s, which", "renew 8 times more from 12.000s until 19.002s, which"}, shown: 5},
		{rule: "the hold ends, and its owner gets another", between: []model.Event{{Kind: model.KindState, Lock: "x", State: &model.LockState{}}, {Kind: model.KindState, Lock: "x", State: &model.LockState{Owner: "a/1", Count: 1, ExpiresMs: 13_500}}},
			want: []string{"renew 8 times more from 2.000s until 9.002s, which", "renew 8 times more from 12.000s until 19.002s, which"}, shown: 4},
		{rule: "a judge found something", found: 15,
			want: []string{"renew 12 times more from 2.000s until 13.002s, which", "renew 3 times more from 17.000s until 19.002s, which"}, shown: 5},
		{rule: "too few after it", found: 17, want: []string{"renew 14 times more from 2.000s until 15.002s, which"}, shown: 6},
		{rule: "segments", segment: true, want: []string{"renew (SEGMENT) 18 times more from 2.000s until 19.001s, which prolonged the hold"}, shown: 2},
		{rule: "segments that were asked for", segment: true, asked: []string{"KV/Txn"}, want: []string{"renew (KV/Txn) 18 times more from 2.000s until 19.001s, which prolonged the hold"}, shown: 2},
		{rule: "the last ones change nothing", idle: true,
			want: []string{"renew 8 times more from 2.000s until 9.002s, which prolonged the hold", "renew 8 times more from 12.000s until 19.002s, with nothing changed"}, shown: 4},
		{rule: "segments that change nothing", segment: true, idle: true,
			want: []string{"renew (SEGMENT) 8 times more from 2.000s until 9.001s, which prolonged the hold", "renew (SEGMENT) 8 times more from 12.000s until 19.001s, with nothing changed"}, shown: 4},
		{rule: "segments of a hold that is gone", segment: true, asked: []string{"KV/Txn"}, idle: true, gone: true, between: []model.Event{{Kind: model.KindState, Lock: "x", State: &model.LockState{}}},
			want: []string{"renew (KV/Txn) 8 times more from 2.000s until 9.001s, which prolonged the hold", "renew (KV/Txn) 8 times more from 12.000s until 19.001s, with nothing changed"}, shown: 4},
	} {
		rec := &model.Record{Params: model.Params{Lock: "any", Faults: []model.FaultSpec{{Kind: model.FaultPause, Processes: []string{"b"}}},
			Processes: []model.ProcessParams{{Name: "a", Threads: 2}, {Name: "b", Threads: 1}}}}
		rec.Add(model.Event{Kind: model.KindInvoke, Process: "a", Thread: 1, Op: 1, Action: model.ActLock, Lock: "x"})
		rec.Add(model.Event{Kind: model.KindState, Lock: "x", State: &model.LockState{Owner: "a/1", Count: 1, ExpiresMs: 3000}})
		rec.Add(model.Event{Kind: model.KindReturn, Process: "a", Thread: 1, Op: 1, Action: model.ActLock, Lock: "x", Outcome: model.Granted})
		for i := range int64(20) {
			for _, e := range c.between {
				if i == 10 {
					e.AtNs = 10_500e6
					rec.Add(e)
				}
			}
			e := model.Event{AtNs: (i + 1) * 1000e6, Kind: model.KindSend, Process: "a", Msg: int(i) + 1, Conn: 1, Script: model.RoleRenew, Owners: []string{"a/1"}, Locks: []string{"x"}}
			if c.segment {
				e.Command, e.Args, e.Asked = model.SegmentCommand, []string{"24 bytes"}, c.asked
			}
			if c.gone && i >= 10 {
				e.Locks = nil
			}
			rec.Add(e)
			e.AtNs, e.Kind = e.AtNs+1e6, model.KindExec
			if !c.segment {
				e.Reply = "1"
			}
			rec.Add(e)
			if !c.idle || i < 10 {
				rec.Add(model.Event{AtNs: e.AtNs, Kind: model.KindState, Lock: "x", Msg: e.Msg, State: &model.LockState{Owner: "a/1", Count: 1, ExpiresMs: e.AtNs/1e6 + 3000}})
			}
			if !c.segment {
				rec.Add(model.Event{AtNs: e.AtNs + 1e6, Kind: model.KindDeliver, Process: "a", Msg: e.Msg, Dir: "reply", Conn: 1})
			}
		}
		r := report.Run{Scenario: "renewals", Lock: "any", Verdict: "held", Record: rec}
		if c.found > 0 {
			r.Findings = []judges.Finding{{Judge: model.JudgeLease, Verdict: judges.Broken, Class: judges.ClassBug, Detail: judges.Defect{Text: "it is so"}, AtNs: c.found*1000e6 + 1e6}}
		}
		text := report.Text(r)
		flat := strings.Join(strings.Fields(text), " ")
		rest := flat
		for _, want := range c.want {
			_, after, ok := strings.Cut(rest, want)
			if !ok {
				t.Errorf("%s: %q is missing, or comes too soon, in\n%s", c.rule, want, text)
			}
			rest = after
		}
		if folded := strings.Count(flat, "times more"); folded != len(c.want) {
			t.Errorf("%s: %d lines stand for several renewals, want %d:\n%s", c.rule, folded, len(c.want), text)
		}
		if shown := strings.Count(text, " → ") + strings.Count(text, "renew (24 bytes) of a/1\n") + strings.Count(text, "renew (KV/Txn) of a/1\n"); shown != c.shown {
			t.Errorf("%s: %d renewals are shown, want %d:\n%s", c.rule, shown, c.shown, text)
		}
	}
}

// A segment without a part in the story has no line: it is of no call, is about no lock and changes nothing.
func TestHousekeepingHasNoLine(t *testing.T) {
	for name, c := range map[string]struct {
		change func(e *model.Event)
		shown  bool
	}{
		"of nothing":      {func(*model.Event) {}, false},
		"of a call":       {func(e *model.Event) { e.Op = 1 }, true},
		"a renewal":       {func(e *model.Event) { e.Script = model.RoleRenew }, true},
		"a whole command": {func(e *model.Event) { e.Command = "PING" }, true},
	} {
		rec := &model.Record{Params: model.Params{Lock: "any", Processes: []model.ProcessParams{{Name: "a", Threads: 1}}}}
		rec.Add(model.Event{Kind: model.KindInvoke, Process: "a", Thread: 1, Op: 1, Action: model.ActLock, Lock: "x"})
		e := model.Event{AtNs: 1e6, Kind: model.KindSend, Process: "a", Thread: 1, Msg: 1, Conn: 1, Command: model.SegmentCommand, Says: "PING; WINDOW_UPDATE"}
		c.change(&e)
		rec.Add(e)
		e.AtNs, e.Kind = 2e6, model.KindExec
		rec.Add(e)
		text := report.Text(report.Run{Scenario: "housekeeping", Lock: "any", Verdict: "held", Record: rec})
		if strings.Contains(text, "WINDOW_UPDATE") != c.shown {
			t.Errorf("%s: want it shown: %v\n%s", name, c.shown, text)
		}
	}
}

func TestTheTextSaysWhichLimitEndedARun(t *testing.T) {
	for atNs, want := range map[int64]string{1e9: "the run is ended after 500 events", int64(model.LongestRun): "the run is ended after 200 years"} {
		rec := &model.Record{Params: model.Params{Lock: "any", Processes: []model.ProcessParams{{Name: "a", Threads: 1}}}}
		rec.Add(model.Event{AtNs: atNs, Kind: model.KindDefect, Limit: 500})
		if text := report.Text(report.Run{Scenario: "endless", Lock: "any", Verdict: "undecided", Record: rec}); !strings.Contains(text, want) {
			t.Errorf("want %q:\n%s", want, text)
		}
	}
}

func TestTheShortStoryEndsAtTheFinding(t *testing.T) {
	r := played(t, "misdelete", "setnx-del")
	lines := strings.Split(strings.TrimSpace(report.Shortened(r, 5)), "\n")
	if len(lines) != 6 || !strings.Contains(lines[1], "events before") || !strings.HasSuffix(lines[4], "free") || !strings.HasSuffix(lines[5], "5.017s  unlock orders: released") {
		t.Errorf("the last line is not the return of the call that the finding names:\n%s", strings.Join(lines, "\n"))
	}
	r.Findings = nil
	if s := report.Shortened(r, 5); s != "" {
		t.Errorf("a run that held has a story: %s", s)
	}
}

// A long story shows what the finding rests on and the end, in at most so many lines.
func TestTheShortStoryKeepsWhatTheFindingRestsOn(t *testing.T) {
	rec := &model.Record{Params: model.Params{Lock: "any", Processes: []model.ProcessParams{{Name: "a", Threads: 1}, {Name: "b", Threads: 1}},
		Faults: []model.FaultSpec{{Kind: model.FaultPartition, Processes: []string{"a"}}}}}
	msg := 0
	renew := func(ms int64, lost bool) {
		msg++
		e := model.Event{AtNs: ms * 1e6, Kind: model.KindSend, Process: "a", Msg: msg, Conn: 1, Command: "PEXPIRE", Script: model.RoleRenew, Owners: []string{"a/1"}, Locks: []string{"x"}}
		rec.Add(e)
		if lost {
			rec.Add(model.Event{AtNs: e.AtNs, Kind: model.KindLost, Process: "a", Msg: msg, Dir: "request", Why: "partition"})
			return
		}
		e.Kind, e.Reply = model.KindExec, "1"
		rec.Add(e)
		rec.Add(model.Event{AtNs: e.AtNs, Kind: model.KindState, Lock: "x", State: &model.LockState{Owner: "a/1", Count: 1, ExpiresMs: ms + 3000}})
	}
	rec.Add(model.Event{Kind: model.KindInvoke, Process: "a", Thread: 1, Op: 1, Action: model.ActLock, Lock: "x"})
	rec.Add(model.Event{AtNs: 1e6, Kind: model.KindState, Lock: "x", State: &model.LockState{Owner: "a/1", Count: 1, ExpiresMs: 3000}})
	rec.Add(model.Event{AtNs: 2e6, Kind: model.KindReturn, Process: "a", Thread: 1, Op: 1, Action: model.ActLock, Lock: "x", Outcome: model.Granted})
	for i := range int64(40) {
		renew(1000+i*100, false)
	}
	rec.Add(model.Event{AtNs: 5000e6, Kind: model.KindFault, Fault: 1, Process: "a", Text: "partition of a"})
	renew(5000, true)
	rec.Add(model.Event{AtNs: 5500e6, Kind: model.KindFaultEnd, Fault: 1, Process: "a", Text: "partition of a"})
	for i := range int64(40) { // those of another lock explain nothing
		op := 2 + int(i)
		rec.Add(model.Event{AtNs: (5600 + i) * 1e6, Kind: model.KindInvoke, Process: "b", Thread: 1, Op: op, Action: model.ActLock, Lock: "y"})
		rec.Add(model.Event{AtNs: (5600 + i) * 1e6, Kind: model.KindReturn, Process: "b", Thread: 1, Op: op, Action: model.ActLock, Lock: "y", Outcome: model.Failed})
	}
	rec.Add(model.Event{AtNs: 7900e6, Kind: model.KindState, Lock: "x", State: &model.LockState{}})
	renew(9000, true)
	r := report.Run{Lock: "any", Record: rec, Findings: []judges.Finding{{Judge: model.JudgeLease, Verdict: judges.Broken, Class: judges.ClassBug, AtNs: 7900e6,
		Facts: model.Facts{Lock: "x", Thread: "a/1"}, Detail: judges.Defect{Text: "it is so"}, Ops: []judges.OpRef{{Process: "a", Thread: 1, Op: string(model.ActLock)}}}}}
	const most = 20
	story := report.Shortened(r, most)
	rest := story
	for _, want := range []string{
		"0.000s  calls lock x\n", "held by a/1 ×1, until 3.000s", "lock x: granted\n", "events left out\n", "── fault: partition of a ──\n",
		"LOST: the request of renew (PEXPIRE) (partition); the next is sent at 9.000s\n", "── over: partition of a ──\n", "7.900s", " free\n",
	} {
		_, after, ok := strings.Cut(strings.Join(strings.Fields(rest), " "), strings.Join(strings.Fields(want), " "))
		if !ok {
			t.Fatalf("%q is missing, or comes too soon, in\n%s", want, story)
		}
		rest = after
	}
	left := 0
	for _, n := range regexp.MustCompile(`…  (\d+) events? `).FindAllStringSubmatch(story, -1) {
		one, _ := strconv.Atoi(n[1])
		left += one
	}
	rows := len(regexp.MustCompile(`(?m)^ +\d+\.\d+s  `).FindAllString(story, -1))
	gaps := strings.Count(story, "…")
	if rows+gaps > most || rows+left != 3+2*40+3+2*40+1 {
		t.Errorf("%d lines of events, %d gaps, %d events left out, in\n%s", rows, gaps, left, story)
	}
	if whole := report.Shortened(r, 1000); strings.Contains(whole, "…") {
		t.Errorf("a story that fits is cut:\n%s", whole)
	}
}

// A finding about a command that was sent is shown with the command, which the server runs later.
func TestTheShortStoryHasTheCommandThatIsAccused(t *testing.T) {
	r := played(t, "interrupted-trylock-renewed-forever", "redisson@3.11.0")
	i := slices.IndexFunc(r.Findings, func(f judges.Finding) bool { return f.Form == model.FormLateRenewal })
	if i < 0 {
		t.Fatalf("no renewal is late: %v", r.Findings)
	}
	r.Findings = r.Findings[i : i+1]
	story := strings.TrimSpace(report.Shortened(r, 5))
	if last := story[strings.LastIndex(story, "\n")+1:]; !strings.Contains(last, "renew of ") {
		t.Errorf("the story ends without the renewal:\n%s", story)
	}
}

// A name cannot send a command to the terminal.
func TestControlCharactersDoNotReachTheTerminal(t *testing.T) {
	r := long(20)
	r.Record.Add(model.Event{Kind: model.KindInvoke, Process: "a", Thread: 1, Op: 1, Action: model.ActLock, Lock: "x\x1b[2J\ny"})
	if text := report.Text(r); strings.Contains(text, "\x1b") || !strings.Contains(text, "calls lock x\\u001b[2J\\ny") {
		t.Errorf("got %q", text)
	}
}

func TestMermaid(t *testing.T) {
	r := played(t, "unlock-reply-lost", "redisson@3.21.3")
	r.Findings[0].Detail = judges.Defect{Text: "a;b #c\nend"}
	text := report.Mermaid(r)
	for _, want := range []string{
		"sequenceDiagram\n    participant P0 as a/1\n",
		"P0->>P4: unlock\n",
		"P4--xP0: unlock → 0, lost: dropped\n",
		"Note over P0,P4: BROKEN mutual-exclusion. a#59;b #35;c\\nend\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	// With any names, every line has one of the few forms that are written.
	line := regexp.MustCompile(`^(sequenceDiagram|    participant P\d+ as [^;#]+|    Note over P\d+(,P\d+)?: .*|    P\d+-?-(>>|x)P\d+: .*)$`)
	for _, l := range strings.Split(strings.TrimSpace(text), "\n") {
		if !line.MatchString(l) {
			t.Errorf("not Mermaid: %q", l)
		}
	}
	if text := report.Mermaid(long(5000)); strings.Count(text, "\n") > 200 || !strings.Contains(text, "steps before") {
		t.Error("a long diagram is not cut")
	}
}

func TestOtherProgramsFormats(t *testing.T) {
	cases := []report.Case{
		{Scenario: "one", File: "a,b.yaml", Lock: "x", Seed: 1, Verdict: "held", Expected: "held", AsExpected: true},
		{Scenario: "one", File: "a,b.yaml", Lock: "x", Seed: 2, Verdict: "bug", Expected: "held", Text: "fifo: 100% <so>\n]]>\n", Replay: "again"},
		{Scenario: "two", File: "c.yaml", Lock: "x", Seed: 1, Verdict: "undecided", Expected: "held", Text: "why\n", Replay: "again"},
	}
	var b strings.Builder
	if err := report.WriteJUnit(&b, cases); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Tests, Failures, Errors int `xml:",attr"`
		Suites                  []struct {
			Name  string `xml:"name,attr"`
			Cases []struct {
				Name    string  `xml:"name,attr"`
				Failure *string `xml:"failure"`
				Error   *string `xml:"error"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	var totals struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Errors   int `xml:"errors,attr"`
	}
	if err := xml.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatal(err)
	}
	if err := xml.Unmarshal([]byte(b.String()), &totals); err != nil {
		t.Fatal(err)
	}
	if totals.Tests != 3 || totals.Failures != 1 || totals.Errors != 1 || len(got.Suites) != 2 {
		t.Errorf("totals %+v in\n%s", totals, &b)
	}
	one := got.Suites[0].Cases
	if one[0].Failure != nil || one[1].Failure == nil || *one[1].Failure != "fifo: 100% <so>\n]]>\nreplay: again\n" || got.Suites[1].Cases[0].Error == nil {
		t.Errorf("cases %+v in\n%s", one, &b)
	}

	b.Reset()
	if err := report.WriteGitHub(&b, cases); err != nil {
		t.Fatal(err)
	}
	want := "::error file=a%2Cb.yaml,title=one on x%2C seed 2%3A bug%2C expected held::fifo: 100%25 <so>%0A]]>%0Areplay: again\n" +
		"::warning file=c.yaml,title=two on x%2C seed 1%3A undecided%2C expected held::why%0Areplay: again\n" +
		"3 runs, 2 not as expected\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", &b, want)
	}
}

// The overlaps that are drawn are the overlaps of the judge.
func TestOverlapsAreTheJudges(t *testing.T) {
	r := played(t, "pause-past-lease", "redisson@4.7.0")
	var who []string
	for _, b := range judges.Beliefs(trace.New(r.Record)) {
		who = append(who, b.Thread)
		if b.ToNs <= b.FromNs {
			t.Errorf("an empty belief: %+v", b)
		}
	}
	if len(who) != 2 || who[0] != "a/1" || who[1] != "b/1" {
		t.Errorf("beliefs of %v", who)
	}
	if text := report.Text(r); !strings.Contains(text, "a/1 and b/1 both believed to hold orders for 4.99s") {
		t.Errorf("the overlap is not told:\n%s", text)
	}
}

// The text names the processes that hear a publication. It says "nobody" if none does.
func TestAPublicationSaysWhoHearsIt(t *testing.T) {
	r := played(t, "misdelete", "setnx-del")
	rec := &model.Record{Params: r.Record.Params}
	rec.Add(model.Event{AtNs: 1e9, Kind: model.KindInvoke, Process: "a", Thread: 1, Op: 1, Action: model.ActLock, Lock: "x"})
	speak := func(s int64) { rec.Add(model.Event{AtNs: s * 1e9, Kind: model.KindPublish, Channel: "x", Text: "0"}) }
	hear := func(s int64, listens model.Listening, process string, msg, conn int) {
		e := model.Event{AtNs: s * 1e9, Kind: model.KindSend, Process: process, Msg: msg, Conn: conn, Command: "LISTEN", Listens: listens, Channels: []string{"x"}}
		rec.Add(e)
		e.Kind = model.KindExec
		rec.Add(e)
	}
	speak(2)
	hear(3, model.ListenStart, "a", 1, 1)
	hear(4, model.ListenStart, "b", 2, 2)
	speak(5)
	hear(6, model.ListenStop, "a", 3, 1)
	speak(7)
	rec.Params.Faults = []model.FaultSpec{{Kind: model.FaultCrash, Processes: []string{"b"}}}
	rec.Add(model.Event{AtNs: 8e9, Kind: model.KindFault, Fault: 1, Process: "b", Text: "crash of b"})
	speak(9)
	r.Record, r.Findings = rec, nil
	text := report.Text(r)
	for at, who := range map[string]string{"2.000s": "nobody", "5.000s": "a, b", "7.000s": "b", "9.000s": "nobody"} {
		if !regexp.MustCompile(at + ` +publishes "0" on x, to ` + who + "\n").MatchString(text) {
			t.Errorf("at %s, want it to reach %s, in\n%s", at, who, text)
		}
	}
}

// invoked returns a run in which two threads call a lock at these instants, in turn, 31 s before the calm.
func invoked(instants ...int64) report.Run {
	r := long(10)
	r.Record.Events, r.Findings = nil, nil
	for i, at := range instants {
		r.Record.Add(model.Event{AtNs: at, Kind: model.KindInvoke, Process: []string{"a", "b"}[i%2], Thread: 1, Op: i + 1, Action: model.ActLock, Lock: "orders"})
	}
	r.Record.Add(model.Event{AtNs: 31e9, Kind: model.KindCalm})
	return r
}

// A short timeline has as many decimals as tell its events apart, in each line.
func TestAShortTimelineHasMoreDecimals(t *testing.T) {
	for _, c := range []struct {
		rule  string
		calls []int64
		found int64    // the instant of a finding, with which the timeline ends; 0: the timeline is whole
		want  []string // the instants of the lines
	}{
		{rule: "as long as a hundred milliseconds", calls: []int64{7_001, 100_007_001}, want: []string{"0.000s", "0.100s", "31.000s"}},
		{rule: "shorter", calls: []int64{7_001, 100_007_000}, want: []string{"0.000007s", "0.100007s", "31.000000s"}},
		{rule: "in the same millisecond", calls: []int64{1_000_400, 1_400_500}, want: []string{"0.001000s", "0.001400s", "31.000000s"}},
		{rule: "long after the start", calls: []int64{12e9, 12e9 + 300_000}, want: []string{"12.000000s", "12.000300s", "31.000000s"}},
		{rule: "shorter than a hundred microseconds", calls: []int64{7_001, 7_002}, want: []string{"0.000007001s", "0.000007002s", "31.000000000s"}},
		{rule: "at one instant", calls: []int64{7_001, 7_001}, want: []string{"0.000s", "0.000s", "31.000s"}},
		{rule: "one event", calls: []int64{7_001}, want: []string{"0.000s", "31.000s"}},
		{rule: "a long run with an early finding", calls: []int64{200_000, 500_000, 5e9, 6e9}, found: 500_000, want: []string{"0.000200s", "0.000500s"}},
		{rule: "a long run with a late finding", calls: []int64{200_000, 500_000, 5e9, 6e9}, found: 5e9, want: []string{"0.000s", "0.000s", "5.000s"}},
	} {
		r := invoked(c.calls...)
		text := report.Text(r)
		if c.found > 0 {
			r.Findings = []judges.Finding{{Judge: model.JudgeLease, Verdict: judges.Broken, Class: judges.ClassBug, Detail: judges.Defect{Text: "it is so"}, AtNs: c.found}}
			text = report.Shortened(r, 40)
		}
		var instants []string
		column := 0
		for line := range strings.Lines(text) {
			if before, _, ok := strings.Cut(line, "s  "); ok && strings.HasPrefix(line, "  ") {
				instants = append(instants, strings.TrimSpace(before)+"s")
				if column != 0 && len(before) != column {
					t.Errorf("%s: the columns are not straight:\n%s", c.rule, text)
				}
				column = len(before)
			}
		}
		if !slices.Equal(instants, c.want) {
			t.Errorf("%s: the instants are %q, want %q:\n%s", c.rule, instants, c.want, text)
		}
	}
}

// A renewal that is lost is followed by the next one of the same hold. On a stream, one that comes after the
// end of the hold is about no lock, but has the same words.
func TestTheTimelineSaysWhenTheNextRenewalIsSent(t *testing.T) {
	for _, c := range []struct {
		locks       []string
		asked, next []string
		want        string
	}{
		{[]string{"x"}, nil, nil, "; the next is sent at 2.000s"},
		{nil, nil, nil, "; no other is sent after it"},
		{nil, []string{"lease 7"}, []string{"lease 7"}, "; the next is sent at 2.000s"},
		{nil, []string{"lease 7"}, []string{"lease 8"}, "; no other is sent after it"},
	} {
		rec := &model.Record{Params: model.Params{Lock: "any", Processes: []model.ProcessParams{{Name: "a", Threads: 1}}}}
		e := model.Event{AtNs: 1e9, Kind: model.KindSend, Process: "a", Msg: 1, Conn: 1, Command: model.SegmentCommand, Script: model.RoleRenew, Owners: []string{"a/1"}, Locks: []string{"x"}, Asked: c.asked}
		rec.Add(e)
		rec.Add(model.Event{AtNs: 1e9, Kind: model.KindLost, Process: "a", Msg: 1, Dir: "request", Why: model.LostDropped})
		e.AtNs, e.Msg, e.Locks, e.Asked = 2e9, 2, c.locks, c.next
		rec.Add(e)
		if text := strings.Join(strings.Fields(report.Text(report.Run{Record: rec})), " "); !strings.Contains(text, c.want) {
			t.Errorf("want %q in\n%s", c.want, text)
		}
	}
}

// The call of a finding is shown even if its polls would fill the story.
func TestTheShortStoryHasTheCallThatPolls(t *testing.T) {
	rec := &model.Record{Params: model.Params{Lock: "any", Processes: []model.ProcessParams{{Name: "a", Threads: 1}, {Name: "b", Threads: 1}}}}
	rec.Add(model.Event{Kind: model.KindState, Lock: "x", State: &model.LockState{Owner: "a/1", Count: 1, ExpiresMs: 3000}})
	rec.Add(model.Event{AtNs: 1e6, Kind: model.KindInvoke, Process: "b", Thread: 1, Op: 1, Action: model.ActTryLockTimed, Lock: "x", WaitNs: 100e6})
	at := int64(1e6)
	for i := range 400 {
		at += 100e6
		e := model.Event{AtNs: at, Kind: model.KindSend, Process: "b", Op: 1, Msg: i + 1, Conn: 1, Command: "SET", Script: model.RoleAcquire, Owners: []string{"b/1"}, Locks: []string{"x"}}
		rec.Add(e)
		e.Kind, e.Reply = model.KindExec, "nil"
		rec.Add(e)
		if i%10 == 9 { // what changes something is shown by itself
			rec.Add(model.Event{AtNs: at, Kind: model.KindState, Lock: "x", Msg: e.Msg, State: &model.LockState{Owner: "a/1", Count: 1, ExpiresMs: at/1e6 + 3000}})
		}
		rec.Add(model.Event{AtNs: at, Kind: model.KindDeliver, Process: "b", Op: 1, Msg: e.Msg, Dir: "reply", Conn: 1})
	}
	r := report.Run{Lock: "any", Record: rec, Findings: []judges.Finding{{Judge: model.JudgeLiveness, Verdict: judges.Broken, Class: judges.ClassBug, AtNs: at, Facts: model.Facts{Lock: "x", Thread: "b/1"},
		Detail: judges.Defect{Text: "it is so"}, Ops: []judges.OpRef{{Process: "b", Thread: 1, Op: string(model.ActTryLockTimed), CallNs: 1e6}}}}}
	if story := report.Shortened(r, 20); !strings.Contains(story, "calls try_lock_timed x") || !strings.Contains(story, "times more") {
		t.Errorf("the call, or its polls, are missing in\n%s", story)
	}
}

// A call that failed, or does not know what it did, says why in the timeline. The outcomes of others say it.
func TestTheTimelineSaysWhyACallFailed(t *testing.T) {
	for _, c := range []struct {
		outcome model.Outcome
		err     string
		want    string
	}{
		{model.Granted, "", "lock x: granted"},
		{model.Busy, "taken", "lock x: busy"},
		{model.Unknown, "outcome unknown: broken pipe", "lock x: outcome unknown: broken pipe"},
		{model.Unknown, "", "lock x: unknown"},
		{model.Failed, "ERR no", "lock x: error: ERR no"},
	} {
		rec := &model.Record{Params: model.Params{Lock: "any", Processes: []model.ProcessParams{{Name: "a", Threads: 1}}}}
		rec.Add(model.Event{Kind: model.KindInvoke, Process: "a", Thread: 1, Op: 1, Action: model.ActLock, Lock: "x"})
		rec.Add(model.Event{AtNs: 2e6, Kind: model.KindReturn, Process: "a", Thread: 1, Op: 1, Action: model.ActLock, Lock: "x", Outcome: c.outcome, Error: c.err})
		text := strings.Join(strings.Fields(report.Text(report.Run{Record: rec})), " ")
		if !strings.HasSuffix(text, " "+c.want+" no judge found anything") {
			t.Errorf("%s, %q: the timeline ends otherwise than %q:\n%s", c.outcome, c.err, c.want, text)
		}
	}
}

func TestTheTextSaysWhatAServerDoesNotSimulate(t *testing.T) {
	r := played(t, "unlock-reply-lost", "redisson@3.21.3")
	r.Record.Add(model.Event{AtNs: r.Record.Events[len(r.Record.Events)-1].AtNs, Kind: model.KindUnsimulated, Command: "BITFIELD"})
	if text := report.Text(r); !strings.Contains(text, "does not simulate BITFIELD") {
		t.Errorf("not told:\n%s", text)
	}
}

// A command is named by what it did to the hold: a renewal that a goroutine of no thread sends during an unlock is
// a renewal, and one that does no more than the unlock asked for is an unlock.
func TestATimelineNamesACommandByItsEffect(t *testing.T) {
	for _, c := range []struct {
		after *model.LockState
		want  string
	}{
		{&model.LockState{Owner: "a/1", Count: 1, ExpiresMs: 9000, Value: "token"}, "renew (EVAL) of a"},
		{&model.LockState{}, "unlock (EVAL) of a"},
	} {
		rec := &model.Record{Params: model.Params{Lock: "own", Traits: model.Traits{PerGrant: true, Uncounted: true}, Processes: []model.ProcessParams{{Name: "a", Threads: 1}}}}
		for _, e := range []model.Event{
			{Kind: model.KindState, Lock: "x", State: &model.LockState{Owner: "a/1", Count: 1, ExpiresMs: 8000, Value: "token"}},
			{AtNs: 1e9, Kind: model.KindInvoke, Process: "a", Thread: 1, Op: 1, Action: model.ActUnlock, Lock: "x"},
			{AtNs: 1e9, Kind: model.KindSend, Process: "a", Op: 1, Msg: 1, Conn: 1, Command: "EVAL", Script: model.RoleUnlock, Owners: []string{"a/1"}, Locks: []string{"x"}, Guessed: true},
			{AtNs: 1e9 + 1, Kind: model.KindExec, Process: "a", Op: 1, Msg: 1, Conn: 1, Command: "EVAL", Script: model.RoleUnlock, Owners: []string{"a/1"}, Locks: []string{"x"}, Reply: "1"},
			{AtNs: 1e9 + 1, Kind: model.KindState, Lock: "x", State: c.after, Msg: 1},
		} {
			rec.Add(e)
		}
		if got := report.Text(report.Run{Scenario: "by effect", Record: rec}); !strings.Contains(got, c.want) {
			t.Errorf("%q is missing in\n%s", c.want, got)
		}
	}
}

// A request has the text that the server reads in it, or the words of its author, or its name.
func TestATimelineNamesARequestAndItsKey(t *testing.T) {
	for _, c := range []struct {
		command, says string
		asked         []string
		want          string
	}{
		{model.SegmentCommand, "KV/Txn put orders if absent", []string{"KV/Txn"}, "acquire (KV/Txn put orders if absent) of a/1"},
		{model.SegmentCommand, "", []string{"KV/Txn"}, "acquire (KV/Txn) of a/1"},
		{model.SegmentCommand, "", nil, "acquire (9 bytes) of a/1"},
		{"CREATE", "CREATE /orders/p-", nil, "acquire (CREATE /orders/p-) of a/1"},
		{"CREATE", "", nil, "acquire (CREATE) of a/1"},
	} {
		rec := &model.Record{Params: model.Params{Lock: "any", Processes: []model.ProcessParams{{Name: "a", Threads: 1}}}}
		e := model.Event{Kind: model.KindSend, Process: "a", Msg: 1, Conn: 1, Command: c.command, Script: model.RoleAcquire, Owners: []string{"a/1"}, Locks: []string{"orders"}, Args: []string{"9 bytes"}, Asked: c.asked, Says: c.says}
		rec.Add(e)
		e.Kind, e.AtNs = model.KindExec, 1
		rec.Add(e)
		if text := strings.Join(strings.Fields(report.Text(report.Run{Record: rec})), " "); !strings.Contains(text, c.want) {
			t.Errorf("want %q in\n%s", c.want, text)
		}
	}
}

// A request for a script that the server does not know, and the request with the script, are one line. A request that
// met the same fate and is followed by another, or by that of another call, keeps its own line.
func TestAnUnknownScriptIsFolded(t *testing.T) {
	for _, c := range []struct {
		rule    string
		op      int    // of the second request
		program string // the second request carries the script
		unknown bool   // the server does not know the script of the first one
		lost    bool   // the answer to the first one is lost
		want    bool
	}{
		{"as a client does", 1, "digest", true, false, true},
		{"another call", 2, "digest", true, false, false},
		{"another command", 1, "", true, false, false},
		{"a server that knows the script", 1, "digest", false, false, false},
		{"the answer is lost", 1, "digest", true, true, false},
	} {
		rec := &model.Record{Params: model.Params{Lock: "any", Processes: []model.ProcessParams{{Name: "b", Threads: 2}}}}
		for op := 1; op <= 2; op++ {
			rec.Add(model.Event{Kind: model.KindInvoke, Process: "b", Thread: op, Op: op, Action: model.ActLock, Lock: "x"})
		}
		send := func(e model.Event, answer model.Answer, reply string, lost bool) {
			e.Process, e.Conn, e.Locks = "b", 1, []string{"x"}
			e.Kind = model.KindSend
			rec.Add(e)
			e.Kind, e.Answer, e.Reply = model.KindExec, answer, reply
			rec.Add(e)
			if e.Kind = model.KindDeliver; lost {
				e.Kind, e.Why = model.KindLost, model.LostReset
			}
			e.AtNs, e.Dir = e.AtNs+1e6, "reply"
			rec.Add(e)
		}
		answer := model.Answered
		if c.unknown {
			answer = model.NotRun
		}
		send(model.Event{AtNs: 1e9, Op: 1, Msg: 1, Command: "first", Script: model.RoleUnlock}, answer, "no", c.lost)
		send(model.Event{AtNs: 2e9, Op: c.op, Msg: 2, Command: "second", Script: model.RoleUnlock, Program: c.program}, model.Answered, "OK", false)
		text := report.Text(report.Run{Scenario: "scripts", Lock: "any", Verdict: "held", Record: rec})
		if folded := strings.Contains(text, "→ OK, sent twice") && !strings.Contains(text, "→ no"); folded != c.want {
			t.Errorf("%s: folded is %v, want %v:\n%s", c.rule, folded, c.want, text)
		}
	}
}

// Chosen events keep their words and their order, also those that the timeline of a run leaves out or folds.
func TestStepsAreTheChosenEvents(t *testing.T) {
	r := played(t, "misdelete", "setnx-del")
	var polls []int
	for i, e := range r.Record.Events {
		if e.Kind == model.KindSend && e.Process == "b" {
			polls = append(polls, i)
		}
	}
	steps := report.Steps(r, polls[:8])
	if len(steps) != 8 {
		t.Fatalf("%d of 8 events", len(steps))
	}
	for i, s := range steps {
		if s.Event != polls[i] || s.Lane != "b/1" || s.Text != "sends acquire (SET)" || s.AtNs != r.Record.Events[polls[i]].AtNs {
			t.Errorf("%+v", s)
		}
	}
	if n := strings.Count(report.StepsText(r, polls[:8]), "sends acquire (SET)"); n != 8 {
		t.Errorf("%d of 8 events are in the text", n)
	}
	if report.Steps(r, nil) != nil {
		t.Error("steps of no event")
	}
}
