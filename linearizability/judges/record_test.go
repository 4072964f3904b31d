package judges

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockstep/model"
	"lockstep/model/trace"
)

// recordOf builds a record from the short form of these tests: a line an
// event, on lock l unless lock= names another,
//
//	0    a/1 invoke lock lease=3000   # the call; try_lock, try_lock_timed wait=500, unlock, force_unlock
//	0    a/1 send acquire             # a command of that call, under the name of its script
//	1    a/1 exec acquire -> a/1 1 3001 queue=b/1,c/1
//	2    a/1 deliver acquire
//	2    a/1 return granted
//	3002 server expire -> free
//	4002 server ends -> free          # the hold ends by itself, not by its time
//	4002 server expire -> closed 5000 # and nobody can have the lock before
//
// with times in milliseconds. What stands behind the arrow is what the server
// then holds: owner, count, the last millisecond of its life (endless: none),
// its token (token=7), the owner's value (value=v) and the queue, with deadlines of the same threads unless
// deadlines= (also: none) names others, or says when (b/1:500); without an arrow nothing changed. exec, deliver, hit and lost
// speak of the thread's latest command of that name, or of its nth (nth=1);
// A renewal belongs to the extension under way, and to no other call. With call=y it belongs to whatever call is under
// way, as in recordings of real clients, and with call=n to none. for=b/1 names the thread of a command. nobody=y takes
// its call and its role away. args=v,w are its words, conn=2 its connection. command=SEGMENT makes it a segment; without
// that it is an EVAL.
// Of the rest:
//
//	5    server fault 1 pause of a for 6s     # also: crash of a, partition of a, b for 6s, delete of key l -> free; removed=v,w: these words, of commands before
//	5    server fault 1 wall clock of the server steps by 10s -> free
//	6005 server heal 1
//	7    a/1 hit 1 renew                      # fault 1 met that command; hit 1 renew delay: and put it off; hit 1 renew reply: its answer
//	8    a/1 lost renew reply dropped         # request or reply, and why
//	9    b push lost dropped                  # a published message that never came to b
//	9    b push hit                           # one that fault 1 puts off; hit hold: until it ends
//	9    b greeting hit hold                  # push, of a message on no channel
//	9    b greeting comes                     # the one that was put off
//	9    b woken                              # one that came, the one put off if there was one
//	10   c/1 interrupts b/1
//	11   a/1 read stock 100
//	12   a/1 write stock 99 1                 # what is left, how many were taken
//	13   a/1 refused stock 7                  # the token that was too small
//	13   a/1 check unmet the reply was nil
//	14   a close
//	14   a/1 told                         # a/1 learns that its hold is gone
//	99   server leave                         # calls still open are then waiting
//	130  server left key k                    # also: channel, goroutine
//
// and whole calls, of two milliseconds, the server's part in the middle:
//
//	0    a/1 takes lease=3000 -> ...          # lock, granted; without an arrow as asked; token=7 is told to the caller
//	0    b/1 waits try_lock_timed wait=500 -> ... # the call and its first try, refused
//	5    b/1 gets -> ...                      # another try, granted, of the call that is open
//	5    a/1 releases -> ...                  # unlock, released; without an arrow free
//	5    a/1 renews -> ...                    # without an arrow for 30 s
//
// Lines need not be in order of time; those of one instant stay as they stand.
func recordOf(t *testing.T, p model.Params, text string) *model.Record {
	t.Helper()
	var lines []recordLine
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		if strings.TrimSpace(line) != "" {
			lines = append(lines, parseLine(t, line))
		}
	}
	var all []recordLine
	leases := map[string]int64{}
	for _, l := range lines {
		all = append(all, whole(l, leases)...)
	}
	slices.SortStableFunc(all, func(a, b recordLine) int { return cmp.Compare(a.ms, b.ms) })
	b := recorder{t: t, rec: &model.Record{Params: p}, open: map[string]*model.Event{}, sent: map[string][]model.Event{}}
	for _, l := range all {
		b.add(l)
	}
	return b.rec
}

// judgeRecord judges a record.
func judgeRecord(rec *model.Record, resources []Resource) Judgement {
	return Judge(trace.New(rec), resources)
}

// traced returns a record as the judges read it.
func traced(rec *model.Record) *run { return newRun(trace.New(rec)) }

// The locks of these tests. ourLock and ourFairLock rely on the server's memory of calls and
// waiters. The deadlines of fairLock come from the wall clocks of its clients.
var (
	plainLock = model.Params{Lock: "plain", Timing: timing(0)}
	ourLock   = model.Params{Lock: "ours", Traits: model.Traits{Fenced: true}, Timing: timing(0), Promises: model.Promises{
		model.JudgeLinearizable: {Unless: []model.Circumstance{model.MemoryRemoved}},
		model.JudgeHoldCount:    {Unless: []model.Circumstance{model.MemoryRemoved}},
	}}
	ourFairLock = model.Params{Lock: "ours-fair", Traits: model.Traits{Fair: true, Deadlines: true, Fenced: true}, Timing: timing(3 * time.Second), Promises: model.Promises{
		model.JudgeLinearizable: {Unless: []model.Circumstance{model.WaiterAway, model.HoldRemoved, model.MemoryRemoved}},
		model.JudgeFIFO:         {Unless: []model.Circumstance{model.WaiterAway, model.HoldRemoved, model.MemoryRemoved}},
		model.JudgeLiveness:     {Unless: []model.Circumstance{model.DeadWaiters, model.WaiterAway, model.HoldRemoved}},
		model.JudgeHoldCount:    {Unless: []model.Circumstance{model.MemoryRemoved}},
	}}
	fairLock = model.Params{Lock: "fair", Traits: model.Traits{Fair: true, Deadlines: true}, Timing: timing(5 * time.Second), Promises: model.Promises{
		model.JudgeLinearizable: {Unless: []model.Circumstance{model.ClocksApart}},
		model.JudgeFIFO:         {Unless: []model.Circumstance{model.ClocksApart, model.WaiterAway, model.HoldRemoved}},
		model.JudgeLiveness:     {Unless: []model.Circumstance{model.DeadWaiters, model.ClocksApart}},
	}}
	bareLock = model.Params{Lock: "bare", Traits: model.Traits{NoWatchdog: true, Uncounted: true}, Timing: timing(0)}
)

// timing returns the timing of the locks of these tests. A waiter keeps its place for the time
// fairWait without asking again.
func timing(fairWait time.Duration) model.Timing {
	return model.Timing{
		Watchdog: 30 * time.Second, RenewalPeriod: 10 * time.Second, FairWait: fairWait,
		ResponseTimeout: 3 * time.Second, Resend: 7500 * time.Millisecond, GiveUp: 25 * time.Second,
	}
}

// recordLine is a line of the short form.
type recordLine struct {
	ms    int64
	who   string
	verb  string
	words []string          // without the options
	opts  map[string]string // lease, wait, lock, for, ...
	state string            // the text after the arrow
	has   bool              // whether there is an arrow
	text  string            // the text after the verb
}

func parseLine(t *testing.T, line string) recordLine {
	t.Helper()
	front, state, has := strings.Cut(line, "->")
	words := strings.Fields(front)
	if len(words) < 3 {
		t.Fatalf("not an event: %q", line)
	}
	ms, err := strconv.ParseInt(words[0], 10, 64)
	if err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	l := recordLine{ms: ms, who: words[1], verb: words[2], opts: map[string]string{}, state: strings.TrimSpace(state), has: has,
		text: strings.Join(words[3:], " ")}
	for _, w := range words[3:] {
		if key, value, ok := strings.Cut(w, "="); ok {
			l.opts[key] = value
		} else {
			l.words = append(l.words, w)
		}
	}
	return l
}

// faultOf reads the text of a fault in the form of FaultSpec.String.
func faultOf(t *testing.T, text string) model.FaultSpec {
	t.Helper()
	what, rest, _ := strings.Cut(text, " of ")
	who, _, _ := strings.Cut(rest, " for ")
	names := strings.Split(who, ", ")
	switch what {
	case "crash", "pause", "partition":
		return model.FaultSpec{Kind: model.FaultKind(what), Processes: names}
	case "delete", "expire":
		return model.FaultSpec{Kind: model.FaultKey, KeyDo: what, Key: strings.TrimPrefix(rest, "key ")}
	case "flush":
		return model.FaultSpec{Kind: model.FaultServer, Server: model.ServerFlushScripts}
	case "wall clock":
		if after, ok := strings.CutPrefix(rest, "the server steps by "); ok {
			step, err := time.ParseDuration(after)
			if err != nil {
				t.Fatal(err)
			}
			return model.FaultSpec{Kind: model.FaultServer, Server: model.ServerWallClock, Step: step}
		}
		who, _, _ := strings.Cut(rest, " steps")
		return model.FaultSpec{Kind: model.FaultWallClock, Processes: []string{who}}
	}
	words := strings.Fields(text)
	switch words[0] {
	case "server":
		return model.FaultSpec{Kind: model.FaultServer, Server: model.ServerFault(words[1]), KeepData: !strings.Contains(text, "without")}
	case "failover":
		return model.FaultSpec{Kind: model.FaultServer, Server: model.ServerFailover}
	case "drop", "delay", "hold", "reset", "error":
		return model.FaultSpec{Kind: model.FaultRule, Do: words[0]}
	}
	t.Fatalf("not a fault: %q", text)
	return model.FaultSpec{}
}

// whole writes a whole call as its events.
func whole(l recordLine, leases map[string]int64) []recordLine {
	part := func(after int64, verb, word string) recordLine {
		p := recordLine{ms: l.ms + after, who: l.who, verb: verb, words: []string{word}, opts: map[string]string{}}
		for _, key := range []string{"lock", "for", "program"} {
			if v, ok := l.opts[key]; ok {
				p.opts[key] = v
			}
		}
		return p
	}
	invoke := func(action string) recordLine {
		p := part(0, "invoke", action)
		p.opts = l.opts
		leases[l.who], _ = strconv.ParseInt(l.opts["lease"], 10, 64)
		return p
	}
	run := func(script, otherwise string) []recordLine {
		exec := part(1, "exec", script)
		exec.state = otherwise
		if l.has {
			exec.state = l.state
		}
		exec.has = exec.state != ""
		return []recordLine{part(0, "send", script), exec, part(2, "deliver", script)}
	}
	held := func(lease int64) string {
		return l.who + " 1 " + strconv.FormatInt(l.ms+1+cmp.Or(lease, 30_000), 10)
	}
	action := "lock"
	if len(l.words) > 0 {
		action = l.words[0]
	}
	switch l.verb {
	case "takes":
		call := invoke(action)
		ends := part(2, "return", "granted")
		ends.opts["token"] = l.opts["token"]
		return append(append([]recordLine{call}, run("acquire", held(leases[l.who]))...), ends)
	case "waits":
		return append([]recordLine{invoke(action)}, run("acquire", "")...)
	case "gets":
		return append(run("acquire", held(leases[l.who])), part(2, "return", "granted"))
	case "releases":
		return append(append([]recordLine{part(0, "invoke", "unlock")}, run("unlock", "free")...), part(2, "return", "released"))
	case "renews":
		return run("renew", held(0))
	}
	return []recordLine{l}
}

// recorder turns lines into events, numbered as the simulator numbers them.
type recorder struct {
	t    *testing.T
	rec  *model.Record
	ops  int
	msgs int
	late int                      // the published message that was delayed; 0: none
	open map[string]*model.Event  // by thread, the call that it is in
	sent map[string][]model.Event // by thread and script
}

// push is the number of the published message that comes next.
func (b *recorder) push() int {
	if b.late > 0 {
		return b.late
	}
	b.msgs++
	return b.msgs
}

func (b *recorder) add(l recordLine) {
	b.t.Helper()
	process, number, _ := strings.Cut(l.who, "/")
	thread, _ := strconv.Atoi(number)
	lock := cmp.Or(l.opts["lock"], "l")
	e := model.Event{AtNs: l.ms * 1e6, Process: process, Thread: thread}
	word := func(i int) string {
		if i >= len(l.words) {
			b.t.Fatalf("%d %s %s %s: a word is missing", l.ms, l.who, l.verb, l.text)
		}
		return l.words[i]
	}
	number64 := func(s string) int64 {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			b.t.Fatalf("%d %s %s: %v", l.ms, l.who, l.verb, err)
		}
		return n
	}
	message := func(kind model.Kind, script string) {
		sent := b.sent[l.who+" "+script]
		nth := len(sent)
		if v, ok := l.opts["nth"]; ok {
			nth = int(number64(v))
		}
		if nth < 1 || nth > len(sent) {
			b.t.Fatalf("%d %s %s %s: it sent no such command", l.ms, l.who, l.verb, script)
		}
		at := e.AtNs
		e = sent[nth-1]
		e.AtNs, e.Kind, e.Dir, e.Thread = at, kind, "reply", 0
	}
	switch l.verb {
	case "invoke":
		b.ops++
		e.Kind, e.Op, e.Action, e.Lock = model.KindInvoke, b.ops, model.Action(word(0)), lock
		if v, ok := l.opts["lease"]; ok {
			e.LeaseNs = number64(v) * 1e6
		}
		if e.Action == model.ActLock {
			e.WaitNs = -1
		}
		if v, ok := l.opts["wait"]; ok {
			e.WaitNs = number64(v) * 1e6
		}
		call := e
		b.open[l.who] = &call
	case "return":
		call := b.open[l.who]
		if call == nil {
			b.t.Fatalf("%d %s returns from no call", l.ms, l.who)
		}
		e.Kind, e.Op, e.Action, e.Lock, e.Outcome = model.KindReturn, call.Op, call.Action, call.Lock, model.Outcome(word(0))
		if v := l.opts["token"]; v != "" {
			e.Token = uint64(number64(v))
		}
		delete(b.open, l.who)
	case "send":
		b.msgs++
		e.Kind, e.Msg, e.Thread, e.Script, e.Command = model.KindSend, b.msgs, 0, model.Role(word(0)), cmp.Or(l.opts["command"], "EVAL")
		e.Program = l.opts["program"]
		e.Owners, e.Locks = []string{l.who}, []string{lock}
		if who, ok := l.opts["for"]; ok {
			e.Owners = strings.Split(who, ",")
		}
		if v, ok := l.opts["conn"]; ok {
			e.Conn = int(number64(v))
		}
		if args, ok := l.opts["args"]; ok {
			e.Args = strings.Split(args, ",")
		}
		e.Listens = model.Listening(l.opts["listens"])
		e.Blocks = l.opts["blocks"] == "y"
		e.Greets, e.Guessed = l.opts["greets"] == "y", l.opts["guessed"] == "y"
		if call := b.open[l.who]; call != nil && l.opts["call"] != "n" && (e.Script != "renew" || call.Action == model.ActExtend || l.opts["call"] == "y") {
			e.Op = call.Op
		}
		if _, ok := l.opts["nobody"]; ok {
			e.Op, e.Script, e.Owners, e.Locks = 0, "", nil, nil
		}
		b.sent[l.who+" "+word(0)] = append(b.sent[l.who+" "+word(0)], e)
	case "exec":
		message(model.KindExec, word(0))
		if len(l.words) > 1 {
			e.Reply = strings.Join(l.words[1:], " ")
			if l.words[1] == "(error)" {
				e.Answer = model.Refused
			}
			if strings.HasSuffix(e.Reply, "NOSCRIPT") {
				e.Answer = model.NotRun
			}
		}
	case "deliver":
		message(model.KindDeliver, word(0))
	case "hit":
		message(model.KindHit, word(1))
		e.Fault, e.Dir = int(number64(word(0))), "request"
		do := l.words[2:]
		if len(do) > 0 && do[0] == "reply" {
			e.Dir, do = "reply", do[1:]
		}
		e.Do = cmp.Or(strings.Join(do, " "), "drop")
		e.Text = e.Do + " of " + word(1)
	case "lost":
		message(model.KindLost, word(0))
		e.Dir, e.Why = word(1), model.LostReason(strings.Join(l.words[2:], " "))
	case "woken":
		e.Kind, e.Msg, e.Dir, e.Channel = model.KindDeliver, b.push(), "push", "channel"
		b.late = 0
	case "push", "greeting":
		e.Kind, e.Msg, e.Dir, e.Why = model.KindLost, b.push(), "push", model.LostReason(strings.Join(l.words[1:], " "))
		if l.verb == "push" {
			e.Channel = "channel"
		} else {
			e.Conn = 1 // a new connection
		}
		if word(0) == "hit" {
			b.late = e.Msg
			e.Kind, e.Fault, e.Do, e.Text = model.KindHit, 1, cmp.Or(strings.Join(l.words[1:], " "), "delay"), "delay of a message"
			e.Why = ""
		}
		if word(0) == "comes" {
			e.Kind, e.Msg, e.Why = model.KindDeliver, b.push(), ""
			b.late = 0
		}
	case "interrupts":
		e.Kind, e.Phase, e.Text, e.Met = model.KindUse, "interrupt", word(0), true
	case "read":
		e.Kind, e.Phase, e.Key, e.Value = model.KindResource, "read", word(0), number64(word(1))
	case "refused":
		e.Kind, e.Phase, e.Key, e.Value = model.KindResource, "refused", word(0), number64(word(1))
	case "write":
		e.Kind, e.Phase, e.Key, e.Value, e.Count = model.KindResource, "write", word(0), number64(word(1)), number64(word(2))
	case "check":
		e.Kind, e.Met, e.Text = model.KindCheck, word(0) == "met", strings.Join(l.words[1:], " ")
	case "told":
		e.Kind, e.Lock = model.KindTold, lock
	case "close":
		e.Kind = model.KindClose
	case "expire":
		e = model.Event{AtNs: e.AtNs, Kind: model.KindExpire, Key: lock}
	case "fault", "heal":
		e = model.Event{AtNs: e.AtNs, Kind: model.KindFault, Fault: int(number64(word(0))), Text: strings.Join(l.words[1:], " ")}
		if l.verb == "heal" {
			e.Kind = model.KindFaultEnd
			break
		}
		if v, ok := l.opts["removed"]; ok {
			for _, sent := range b.rec.Events {
				if sent.Kind == model.KindSend && slices.ContainsFunc(strings.Split(v, ","), func(word string) bool { return slices.Contains(sent.Args, word) }) &&
					slices.ContainsFunc(b.rec.Events, func(ran model.Event) bool { return ran.Kind == model.KindExec && ran.Msg == sent.Msg }) {
					e.Removed = append(e.Removed, sent.Msg)
				}
			}
		}
		spec := faultOf(b.t, e.Text)
		for len(b.rec.Params.Faults) < e.Fault {
			b.rec.Params.Faults = append(b.rec.Params.Faults, model.FaultSpec{})
		}
		b.rec.Params.Faults[e.Fault-1] = spec
		if len(spec.Processes) == 1 {
			e.Process = spec.Processes[0]
		}
	case "calm":
		e = model.Event{AtNs: e.AtNs, Kind: model.KindCalm}
	case "left":
		e = model.Event{AtNs: e.AtNs, Kind: model.KindLeft}
		switch word(0) {
		case "key":
			e.Key = word(1)
		case "channel":
			e.Channel = word(1)
		default:
			e.Text = l.text
		}
	case "defect":
		e = model.Event{AtNs: e.AtNs, Kind: model.KindDefect, Text: l.text}
	case "leave":
		e = model.Event{AtNs: e.AtNs, Kind: model.KindLeave}
	case "ends":
		e = model.Event{AtNs: e.AtNs, Kind: model.KindState, Lock: lock, State: b.state(l)}
		l.has = false
	default:
		b.t.Fatalf("%d %s %s: there is no such event", l.ms, l.who, l.verb)
	}
	b.rec.Add(e)
	if l.verb == "leave" {
		b.leave(e.AtNs)
	}
	if l.has {
		b.rec.Add(model.Event{AtNs: e.AtNs, Kind: model.KindState, Lock: lock, Msg: e.Msg, State: b.state(l)})
	}
}

// leave ends the open calls, in order of their threads. Dead processes have none.
func (b *recorder) leave(at int64) {
	dead := map[string]bool{}
	for _, e := range b.rec.Events {
		if e.Kind == model.KindFault && strings.HasPrefix(e.Text, "crash of ") {
			dead[e.Process] = true
		}
	}
	for _, who := range sortedNames(b.open) {
		if call := b.open[who]; !dead[call.Process] {
			b.rec.Add(model.Event{AtNs: at, Kind: model.KindReturn, Process: call.Process, Thread: call.Thread, Op: call.Op,
				Action: call.Action, Lock: call.Lock, Outcome: model.Waiting})
		}
	}
	clear(b.open)
}

func sortedNames(m map[string]*model.Event) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// state reads owner, count, the end of its life and the queue.
func (b *recorder) state(l recordLine) *model.LockState {
	b.t.Helper()
	s := &model.LockState{}
	words := strings.Fields(l.state)
	threads := func(option string) []string {
		if n := len(words); n > 0 && strings.HasPrefix(words[n-1], option) {
			list := strings.Split(strings.TrimPrefix(words[n-1], option), ",")
			words = words[:n-1]
			return list
		}
		return nil
	}
	deadlines := threads("deadlines=")
	s.Queue = threads("queue=")
	if deadlines == nil {
		deadlines = s.Queue
	}
	for _, who := range deadlines {
		if who == "none" {
			break
		}
		if s.Deadlines == nil {
			s.Deadlines = map[string]int64{}
		}
		who, at, _ := strings.Cut(who, ":")
		ms, err := strconv.ParseInt(cmp.Or(at, "0"), 10, 64)
		if err != nil {
			b.t.Fatalf("%d %s %s: %v", l.ms, l.who, l.verb, err)
		}
		s.Deadlines[who] = ms
	}
	if n := len(words); n > 0 && strings.HasPrefix(words[n-1], "value=") {
		s.Value, words = strings.TrimPrefix(words[n-1], "value="), words[:n-1]
	}
	if n := len(words); n > 0 && strings.HasPrefix(words[n-1], "token=") {
		token, err := strconv.ParseInt(strings.TrimPrefix(words[n-1], "token="), 10, 64)
		if err != nil {
			b.t.Fatalf("%d %s %s: %v", l.ms, l.who, l.verb, err)
		}
		s.Token, words = token, words[:n-1]
	}
	if len(words) == 1 && words[0] == "free" {
		return s
	}
	if len(words) == 2 && words[0] == "closed" {
		ms, err := strconv.ParseInt(words[1], 10, 64)
		if err != nil {
			b.t.Fatalf("%d %s %s: %v", l.ms, l.who, l.verb, err)
		}
		s.ClosedMs = ms
		return s
	}
	if len(words) != 3 {
		b.t.Fatalf("%d %s %s: not a state: %q", l.ms, l.who, l.verb, l.state)
	}
	s.Owner = words[0]
	count, err := strconv.Atoi(words[1])
	if err != nil {
		b.t.Fatalf("%d %s %s: %v", l.ms, l.who, l.verb, err)
	}
	s.Count, s.ExpiresMs = count, -1
	if words[2] != "endless" {
		if s.ExpiresMs, err = strconv.ParseInt(words[2], 10, 64); err != nil {
			b.t.Fatalf("%d %s %s: %v", l.ms, l.who, l.verb, err)
		}
	}
	return s
}
