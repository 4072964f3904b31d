//go:build interop

package interop

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"lockstep/lockimpl/redisson"
)

// pace reports whether the machine was fast enough for a story on the library. It has two sources:
// the instants of the scripts on the server, as MONITOR gives them, and the times in which the JVM
// stood still.
type pace struct {
	// ownTick: each client of the release draws the tick of its timers.
	ownTick bool

	mu   sync.Mutex
	seen map[string][]*seenScript // by the prefix of the lock's name
	last *seenScript              // whose commands MONITOR shows next
	gaps []gap                    // of the JVM that runs now
}

// seenScript is a script on a lock, and when the server ran it.
type seenScript struct {
	at   time.Time
	keys []string
	args []string
	// ran has the commands that the script ran, each as its name in lower case, a space, and its
	// key.
	ran []string
}

// renewed reports whether the script was a renewal of a hold that it found. It ran nothing but
// HEXISTS and PEXPIRE on the lock.
func (x *seenScript) renewed(key string) bool {
	return slices.Contains(x.ran, "pexpire "+key) && x.ranOnly("hexists", "pexpire")
}

// missed reports whether the script may have been a renewal that did not find its hold.
func (x *seenScript) missed(key string) bool {
	return !slices.Contains(x.ran, "pexpire "+key) && x.ranOnly("hexists", "pexpire")
}

func (x *seenScript) ranOnly(names ...string) bool {
	return !slices.ContainsFunc(x.ran, func(c string) bool {
		name, _, _ := strings.Cut(c, " ")
		return !slices.Contains(names, name)
	})
}

// gap is a time in which the JVM stood still.
type gap struct{ from, to time.Time }

// paceBeat is the interval at which the JVM checks whether it stood still.
const paceBeat = 10 * time.Millisecond

// startPace watches a server until the test ends.
func startPace(t testing.TB, server *Server, rel *redisson.Release) *pace {
	t.Helper()
	p := &pace{seen: map[string][]*seenScript{}, ownTick: rel.RetryDelay.Min != 0}
	monitor(t, server, p.command)
	return p
}

// command reads a line of MONITOR, which begins with the time in seconds.
func (p *pace) command(line string) {
	if _, inside, is := strings.Cut(line, ` lua] "`); is {
		p.mu.Lock()
		defer p.mu.Unlock()
		if word := monitored(inside); len(word) > 1 && p.last != nil {
			p.last.ran = append(p.last.ran, strings.ToLower(word[0])+" "+word[1])
		}
		return
	}
	run, ok := parseScript(line)
	if !ok {
		return
	}
	prefix, _, _ := strings.Cut(run.keys[0], ".")
	seconds, fraction, _ := strings.Cut(line[:strings.IndexByte(line, ' ')], ".")
	s, errS := strconv.ParseInt(seconds, 10, 64)
	us, errUS := strconv.ParseInt(fraction, 10, 64)
	if errors.Join(errS, errUS) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = &seenScript{at: time.Unix(s, us*1000), keys: run.keys, args: run.args}
	if _, asked := p.seen[prefix+"."]; asked {
		p.seen[prefix+"."] = append(p.seen[prefix+"."], p.last)
	}
}

// hear notes the gaps of a JVM that has just begun, and forgets those of the one before.
func (p *pace) hear(l *Library) error {
	p.mu.Lock()
	p.gaps = nil
	p.mu.Unlock()
	return l.Beat(paceBeat, drawnShift, func(fromNs, toNs int64) {
		to := time.Now()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.gaps = append(p.gaps, gap{to.Add(-time.Duration(toNs - fromNs)), to})
	})
}

// begin records the scripts of locks with a prefix from now on, and end returns them.
func (p *pace) begin(prefix string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[prefix] = nil
}

func (p *pace) end(prefix string) []*seenScript {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer delete(p.seen, prefix)
	return p.seen[prefix]
}

// still returns the longest time since an instant for which the JVM stood still.
func (p *pace) still(since time.Time) (longest time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, g := range p.gaps {
		if g.to.After(since) {
			longest = max(longest, g.to.Sub(g.from))
		}
	}
	return longest
}

// judge writes into each call of a record when its first command took effect. It notes how late the
// machine was: between a call and its first command, between the command that granted a call and
// the return of the call, between renewals, and while the JVM stood still.
func (p *pace) judge(n names, came outcome, scripts []*seenScript, s *lateness) {
	s.note(p.still(came.began), "the JVM stood still")
	for _, lock := range lockNames {
		for _, client := range clientNames {
			s.note(p.lateRenewals(n, scripts, n.prefix+lock, client), "renewals came late")
		}
	}
	owners := map[string]string{} // by thread
	for owner, thread := range n.owners {
		owners[thread] = owner
	}
	for i, a := range came.told {
		if !a.Op.calls() || a.Reply == replyBusy {
			continue
		}
		begin := came.began.Add(time.Duration(a.AtMS) * time.Millisecond)
		back := came.began.Add(math.MaxInt32 * time.Millisecond)
		if a.Reply != "" {
			back = came.began.Add(time.Duration(a.BackMS+1) * time.Millisecond)
		}
		var own []time.Time // instants of the call's scripts
		for _, x := range scripts {
			if x.keys[0] == n.prefix+a.Op.Lock && slices.Contains(x.args, owners[a.Op.thread()]) && !x.at.Before(begin) && !x.at.After(back) {
				own = append(own, x.at)
			}
		}
		if len(own) == 0 {
			// A forceUnlock names no owner, and a client may crash before it sends anything.
			if a.Op.mayWait() && !crashedBy(came.told, a.Op.Client, a.AtMS+drawnShift.Milliseconds()) {
				s.note(time.Second, "a call sent no command")
			}
			continue
		}
		late := own[0].Sub(begin)
		came.told[i].LateMS = late.Milliseconds()
		if !a.Op.mayWait() {
			continue // tellTimed measures how long it took
		}
		s.note(late, "the first command of a call came late")
		if (a.Reply == "ok" || a.Reply == "true") && !interruptedIn(came.told, a) {
			s.note(back.Sub(own[len(own)-1]), "the answer to a call came late")
		}
	}
}

// paceTick is the longest tick of the library's timers.
const paceTick = 100 * time.Millisecond

// lateRenewals returns by how much the renewals of a client on a lock came later than its timers
// allow, added up over renewals that follow each other: a renewal that comes late delays all later
// ones, and a few milliseconds become a tick if the next timer just misses one.
func (p *pace) lateRenewals(n names, scripts []*seenScript, key, client string) (longest time.Duration) {
	var before *seenScript // the renewal before, or the newest attempt if there was none
	var sum time.Duration
	for _, x := range scripts {
		if !slices.Contains(x.keys, key) || len(x.args) == 0 {
			continue
		}
		named, own := false, false
		for _, arg := range x.args {
			thread, is := n.owners[arg]
			named = named || is
			own = own || is && strings.HasPrefix(thread, client)
		}
		switch {
		case named && !own:
		case !named || x.missed(key) || before != nil && x.args[0] != before.args[0]:
			// The timer may end here, or change its period. An unlock has a 0 in place of the lease.
			before, sum = nil, 0
			if named && !x.missed(key) {
				before = x
			}
		case x.renewed(key) && before != nil:
			lease, err := strconv.Atoi(x.args[0])
			if err != nil {
				return time.Hour // this is no script of the library
			}
			due := time.Duration(lease)*time.Millisecond/3 + paceTick
			if before.renewed(key) && !p.ownTick {
				due = due.Truncate(paceTick) // the timer was set at a tick
			}
			sum = max(sum, 0) + x.at.Sub(before.at) - due
			longest = max(longest, sum)
			before = x
		case before == nil || !before.renewed(key):
			before = x
		}
	}
	return longest
}

// calls reports whether the act is a call of the lock.
func (o Op) calls() bool {
	switch o.Do {
	case doRemove, doPersist, doLook, doCrash, doInterrupt:
		return false
	}
	return true
}

// crashedBy reports whether a client has crashed by an instant of a story.
func crashedBy(all []told, client string, ms int64) bool {
	return slices.ContainsFunc(all, func(a told) bool { return a.Op.Do == doCrash && a.Op.Client == client && a.AtMS <= ms })
}

// interruptedIn reports whether an interrupt met a call.
func interruptedIn(all []told, call told) bool {
	return slices.ContainsFunc(all, func(a told) bool {
		return a.Op.Do == doInterrupt && a.Op.thread() == call.Op.thread() && a.AtMS >= call.AtMS && a.AtMS <= call.BackMS
	})
}

// A record is disturbed by a call whose first command comes late, by a late answer, and by a JVM
// that stands still. An interrupt, a crash and a long wait disturb nothing.
func TestPaceSeesALateMachine(t *testing.T) {
	began := time.Unix(1_700_000_000, 0)
	at := func(ms int64) string {
		return fmt.Sprintf(`%d.%06d [0 127.0.0.1:1] "EVALSHA" "ab" "1" "drawn1.x" "30000" "uuid:7"`, began.Unix(), ms*1000)
	}
	lock := func(reply string, back int64) told {
		return told{AtMS: 100, Op: Op{Client: "a", Thread: 1, Do: doLock, Lock: "x"}, Reply: reply, BackMS: back}
	}
	act := func(ms int64, do string) told {
		return told{AtMS: ms, Op: Op{Client: "a", Thread: 1, Do: do, Lock: "x"}}
	}
	for name, c := range map[string]struct {
		told    []told
		scripts []int64 // instants in ms since the story began
		still   [2]int64
		late    bool
	}{
		"at once":                     {told: []told{lock("ok", 104)}, scripts: []int64{102}},
		"granted after a long wait":   {told: []told{lock("ok", 904)}, scripts: []int64{102, 103, 901}},
		"still waits":                 {told: []told{lock("", 0)}, scripts: []int64{102, 103}},
		"a late first command":        {told: []told{lock("ok", 204)}, scripts: []int64{202}, late: true},
		"a late first command, waits": {told: []told{lock("", 0)}, scripts: []int64{202}, late: true},
		"no command":                  {told: []told{lock("", 0)}, late: true},
		"a late answer":               {told: []told{lock("ok", 304)}, scripts: []int64{102}, late: true},
		"interrupted":                 {told: []told{lock("ok", 304), act(300, doInterrupt)}, scripts: []int64{102}},
		"crashed before it could ask": {told: []told{lock("", 0), act(150, doCrash)}},
		"crashed later":               {told: []told{lock("", 0), act(350, doCrash)}, late: true},
		"the JVM stood still":         {told: []told{lock("", 0)}, scripts: []int64{102}, still: [2]int64{300, 400}, late: true},
		"it stood still before":       {told: []told{lock("", 0)}, scripts: []int64{102}, still: [2]int64{-400, -100}},
	} {
		p := &pace{seen: map[string][]*seenScript{}}
		p.begin("drawn1.")
		for _, ms := range c.scripts {
			p.command(at(ms))
		}
		p.command(strings.Replace(at(101), "drawn1", "drawn2", 1)) // of another story
		p.command(strings.Replace(at(101), ":7", ":8", 1))         // of another thread
		if c.still != [2]int64{} {
			since := func(ms int64) time.Time { return began.Add(time.Duration(ms) * time.Millisecond) }
			p.gaps = []gap{{since(c.still[0]), since(c.still[1])}}
		}
		came := outcome{told: c.told, began: began}
		var s lateness
		p.judge(names{prefix: "drawn1.", owners: map[string]string{"uuid:7": "a:1"}}, came, p.end("drawn1."), &s)
		if late := s.long > drawnShift; late != c.late {
			t.Errorf("%s: the machine was late by %v: %s", name, s.long, s.why)
		}
		if len(c.scripts) > 0 && came.told[0].LateMS != c.scripts[0]-100 {
			t.Errorf("%s: the call took effect %d ms late, not %d", name, came.told[0].LateMS, c.scripts[0]-100)
		}
	}
}

// A record is disturbed by renewals that come later than the timers allow, and by nothing that may
// end or begin a timer.
func TestPaceSeesLateRenewals(t *testing.T) {
	const (
		attempt  = `"EVAL" "text" "1" "drawn1.x" "%d" "uuid:7"`
		other    = `"EVAL" "text" "1" "drawn1.x" "2000" "uuid2:7"`
		unlock   = `"EVAL" "text" "2" "drawn1.x" "channel" "0" "2000" "uuid:7"`
		force    = `"EVAL" "text" "2" "drawn1.x" "channel" "0"`
		granted  = "hincrby pexpire"
		renewal  = "hexists pexpire"
		missed   = "hexists"
		refused  = "exists hexists pttl"
		released = "hexists hincrby del publish"
	)
	type script struct {
		at         int64
		words, ran string
	}
	first := []script{{0, attempt, granted}, {740, attempt, renewal}}
	for name, c := range map[string]struct {
		scripts []script
		ownTick bool
		late    bool
	}{
		"at the ticks":                    {scripts: []script{{1440, attempt, renewal}, {2140, attempt, renewal}}},
		"a tick late, twice":              {scripts: []script{{1540, attempt, renewal}, {2340, attempt, renewal}}, late: true},
		"a little late, six times":        {scripts: []script{{1455, attempt, renewal}, {2170, attempt, renewal}, {2885, attempt, renewal}, {3600, attempt, renewal}, {4315, attempt, renewal}}, late: true},
		"late, but the next in time":      {scripts: []script{{1480, attempt, renewal}, {2140, attempt, renewal}, {2880, attempt, renewal}}},
		"the first one late":              {scripts: []script{{5000, unlock, released}, {5100, attempt, granted}, {5970, attempt, renewal}}, late: true},
		"the first one in time":           {scripts: []script{{5000, unlock, released}, {5100, attempt, granted}, {5860, attempt, renewal}}},
		"past an attempt":                 {scripts: []script{{1000, attempt, refused}, {1540, attempt, renewal}}, late: true},
		"past an attempt of another":      {scripts: []script{{1000, other, refused}, {1540, attempt, renewal}}, late: true},
		"past a renewal of another":       {scripts: []script{{1000, other, renewal}, {1540, attempt, renewal}}, late: true},
		"past an unlock":                  {scripts: []script{{1000, unlock, released}, {1200, attempt, granted}, {1960, attempt, renewal}}},
		"past a force unlock":             {scripts: []script{{1000, force, "del publish"}, {1200, attempt, granted}, {1960, attempt, renewal}}},
		"past a renewal without a hold":   {scripts: []script{{1440, attempt, missed}, {1900, attempt, granted}, {2650, attempt, renewal}}},
		"past a lease":                    {scripts: []script{{1000, strings.Replace(attempt, "%d", "9000", 1), refused}, {3900, attempt, renewal}}},
		"a client with a tick of its own": {ownTick: true, scripts: []script{{1455, attempt, renewal}, {2170, attempt, renewal}, {2885, attempt, renewal}, {3600, attempt, renewal}, {4315, attempt, renewal}}},
		"of such a client, late":          {ownTick: true, scripts: []script{{1540, attempt, renewal}, {2375, attempt, renewal}}, late: true},
	} {
		p := &pace{seen: map[string][]*seenScript{}, ownTick: c.ownTick}
		p.begin("drawn1.")
		for _, x := range slices.Concat(first, c.scripts) {
			seconds := fmt.Sprintf("%d.%06d", 1_700_000_000+x.at/1000, x.at%1000*1000)
			p.command(seconds + " [0 127.0.0.1:1] " + strings.Replace(x.words, "%d", "2000", 1))
			for ran := range strings.FieldsSeq(x.ran) {
				p.command(seconds + ` [0 lua] "` + ran + `" "drawn1.x" "2000"`)
			}
		}
		n := names{prefix: "drawn1.", owners: map[string]string{"uuid:7": "a:1", "uuid2:7": "b:1"}}
		var s lateness
		p.judge(n, outcome{began: time.Unix(1_700_000_000, 0)}, p.end("drawn1."), &s)
		if late := s.long > drawnShift; late != c.late {
			t.Errorf("%s: renewals were late by %v", name, s.long)
		}
	}
}
