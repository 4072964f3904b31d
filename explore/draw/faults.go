package draw

import (
	"fmt"
	"slices"
	"time"

	"lockstep/internal/nearest"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
)

// Class is a family of faults.
type Class string

// The classes of faults.
const (
	ClassNetwork   Class = "network"
	ClassCrash     Class = "crash"
	ClassPause     Class = "pause"
	ClassPartition Class = "partition"
	ClassClock     Class = "clock"
	ClassServer    Class = "server"
	ClassOperator  Class = "operator"
	ClassWatchdog  Class = "watchdog"
	ClassInterrupt Class = "interrupt"
)

// Classes are all classes of faults.
var Classes = []Class{
	ClassNetwork, ClassCrash, ClassPause, ClassPartition, ClassClock, ClassServer, ClassOperator, ClassWatchdog, ClassInterrupt,
}

// The words for sets of classes.
const (
	allClasses = "all"
	noClass    = "none"
)

// ClassNames are the names that ParseClasses reads.
func ClassNames() []string {
	var names []string
	for _, c := range Classes {
		names = append(names, string(c))
	}
	return append(names, allClasses, noClass)
}

// ParseClasses reads the names of fault classes. The name "all" stands for all classes, and "none", which
// is the only name then, for none.
func ParseClasses(names []string) ([]Class, error) {
	var out []Class
	all := false
	for _, name := range names {
		if name == noClass && len(names) == 1 {
			return nil, nil
		}
		if name == noClass {
			return nil, fmt.Errorf("%q stands for no class of faults; give it alone, or leave it out", name)
		}
		if name == allClasses {
			all = true
			continue
		}
		if !slices.Contains(Classes, Class(name)) {
			known := ClassNames()
			return nil, fmt.Errorf("unknown class of faults %q; %s", name, nearest.Known(name, known))
		}
		if !slices.Contains(out, Class(name)) {
			out = append(out, Class(name))
		}
	}
	if all {
		return Classes, nil
	}
	return out, nil
}

// faultKinds maps each class to the kinds of faults that a campaign draws for it. Two
// faults are missing: an interrupt is drawn as a step of a thread, and a skewed clock as a
// field of a process.
var faultKinds = map[Class][]string{
	ClassNetwork:   {"drop", "delay", "hold", "half_open", "reset", "error", "wakeup"},
	ClassCrash:     {"crash"},
	ClassPause:     {"pause"},
	ClassPartition: {"partition"},
	ClassClock:     {"wall_clock", serverClock},
	ClassServer:    {"restart", "failover", "flush_scripts", "stall", "isolate"},
	ClassOperator:  {"delete", "expire"},
	ClassWatchdog:  {"lose_renewal", "fail_renewal"},
	ClassInterrupt: {"interrupt"},
}

// ClassesOf returns the classes for which a fault can have been drawn.
func ClassesOf(f scenarios.Fault) []Class {
	switch f.Kind {
	case model.FaultCrash:
		return []Class{ClassCrash}
	case model.FaultPause:
		return []Class{ClassPause}
	case model.FaultPartition:
		return []Class{ClassPartition}
	case model.FaultWallClock:
		return []Class{ClassClock}
	case model.FaultServer:
		return []Class{ClassServer}
	case model.FaultKey:
		return []Class{ClassOperator}
	}
	if f.When.Script == model.RoleRenew && (f.Do == "drop" || f.Do == "error") {
		return []Class{ClassNetwork, ClassWatchdog}
	}
	return []Class{ClassNetwork}
}

// serverClock is the kind of a step of the wall clock of servers. It is drawn for a lock on
// several servers: a lock on one relies on the clock of that server.
const serverClock = "server_clock"

func faultKindsOf(classes []Class) (out []string) {
	for _, c := range Classes { // the order of the caller does not matter
		for _, asked := range classes {
			if c == asked {
				out = append(out, faultKinds[c]...)
				break
			}
		}
	}
	return out
}

// lacks reports whether a kind of fault is not drawn, because the servers of the lock do
// not have it.
func (d *drawer) lacks(kind string) bool {
	f := model.FaultSpec{Kind: model.FaultServer, Server: model.ServerFault(kind)}
	switch kind {
	case "restart":
		kept := f
		kept.KeepData = true
		return d.lock.LacksFault(f, nil) != "" && d.lock.LacksFault(kept, nil) != ""
	case "failover", "flush_scripts", "stall", "isolate":
	case serverClock:
		if d.lock.Servers.Count() == 1 {
			return true
		}
		f.Server = model.ServerWallClock
	case "delete", "expire":
		f = model.FaultSpec{Kind: model.FaultKey, KeyDo: kind}
	case "half_open":
		f = model.FaultSpec{Kind: model.FaultRule, Do: kind}
	case "error", "fail_renewal":
		f = model.FaultSpec{Kind: model.FaultRule, Do: "error"}
	case "wakeup":
		f = ruleOnAChannel
	default:
		return false
	}
	return d.lock.LacksFault(f, nil) != ""
}

// ruleOnACommand and ruleOnAChannel are rules of the kinds that a server lacks if its
// messages have no such names.
var (
	ruleOnACommand = model.FaultSpec{Kind: model.FaultRule, Do: "drop", When: model.When{Command: "*"}}
	ruleOnAChannel = model.FaultSpec{Kind: model.FaultRule, Do: "drop", When: model.When{Channel: "*"}}
)

// fault draws one fault. It reports false if no kind of fault is on.
func (d *drawer) fault() (f scenarios.Fault, ok bool) {
	of := make(Weights, 0, len(d.knobs.Faults))
	for _, k := range d.knobs.Faults {
		if k.Word != "interrupt" {
			of = append(of, k)
		}
	}
	kind := d.pick("faults", of)
	who := from(d, "faults", d.sc.Processes...).Name
	switch kind {
	case "":
		return f, false
	case "crash":
		f.FaultSpec = model.FaultSpec{Kind: model.FaultCrash, Processes: []string{who}}
	case "pause":
		f.FaultSpec = model.FaultSpec{Kind: model.FaultPause, Processes: []string{who}, For: d.outage()}
	case "partition":
		f.FaultSpec = model.FaultSpec{Kind: model.FaultPartition, Processes: []string{who}, For: d.outage()}
		if d.full() && d.draw("faults", 3) == 2 {
			f.Processes = nil
			for _, p := range d.sc.Processes {
				f.Processes = append(f.Processes, p.Name)
			}
		}
	case "wall_clock":
		f.FaultSpec = model.FaultSpec{Kind: model.FaultWallClock, Processes: []string{who}, Step: d.signed(d.length(time.Minute))}
	case serverClock, "restart", "failover", "flush_scripts", "stall", "isolate":
		f.FaultSpec = d.serverFault(kind)
	case "delete", "expire":
		key := d.names[0]
		if d.full() {
			key = from(d, "faults", append(d.lock.Keys(from(d, "faults", d.names...)), "*")...)
		}
		f.FaultSpec = model.FaultSpec{Kind: model.FaultKey, Key: key, KeyDo: kind}
	case "lose_renewal":
		f.FaultSpec = model.FaultSpec{Kind: model.FaultRule, Do: "drop", When: model.When{Script: model.RoleRenew, Process: who,
			Direction: from(d, "faults", "request", "reply")}}
		d.often(&f.FaultSpec)
		d.window(&f.FaultSpec)
	case "fail_renewal":
		f.FaultSpec = model.FaultSpec{Kind: model.FaultRule, Do: "error", With: d.refusal(), When: model.When{Script: model.RoleRenew, Process: who,
			Direction: "request", Nth: 1 + d.draw("faults", 3)}}
	case "wakeup":
		f.FaultSpec = d.wakeup(who)
	default:
		f.FaultSpec = d.message(kind, who)
	}
	f.Servers = d.struck(f.Kind)
	if f.Kind == model.FaultRule {
		return f, true
	}
	f.At = d.instant()
	if d.draw("faults", 3) == 2 {
		at, whose := d.underWay()
		f.At = at
		if len(f.Processes) == 1 {
			f.Processes = []string{whose}
		}
	}
	return f, true
}

// serverFault draws a fault of the servers.
func (d *drawer) serverFault(kind string) model.FaultSpec {
	f := model.FaultSpec{Kind: model.FaultServer, Server: model.ServerFault(kind)}
	switch kind {
	case serverClock:
		step := max(d.length(time.Minute).Truncate(time.Millisecond), time.Millisecond)
		f.Server, f.Step = model.ServerWallClock, d.signed(step)
	case "restart":
		f.KeepData = d.draw("faults", 2) == 0
		if d.lock.LacksFault(f, nil) != "" {
			f.KeepData = !f.KeepData
		}
	case "failover":
		if !d.lock.Replicated {
			f.LoseLast = d.draw("faults", 6)
		}
	case "stall", "isolate":
		f.For = d.outage()
	}
	return f
}

// struck draws the servers that a fault strikes, for a lock that has several servers. A
// nil result stands for all servers.
func (d *drawer) struck(kind model.FaultKind) []int {
	n := d.lock.Servers.Count()
	switch kind {
	case model.FaultServer, model.FaultKey, model.FaultPartition, model.FaultRule:
	default:
		return nil
	}
	if n == 1 || d.draw("servers", 4) == 3 {
		return nil
	}
	// The draw gives a minority of the servers most of the time. Now and then it gives a
	// majority, on which such a lock relies.
	var servers []int
	for range 1 + d.draw("servers", n/2+1) {
		if one := 1 + d.draw("servers", n); !slices.Contains(servers, one) {
			servers = append(servers, one)
		}
	}
	slices.Sort(servers)
	return servers
}

// outage draws the length of a pause, a partition, a stall, an isolation or a delay. The length is either
// any number of milliseconds up to 12 seconds, or of one of the scales, up to a minute.
func (d *drawer) outage() time.Duration {
	if d.draw("faults", 2) == 0 {
		return time.Millisecond + d.ms("times", 11_999)
	}
	return d.positive(time.Millisecond, time.Minute)
}

// message draws a rule on requests and replies.
func (d *drawer) message(do, who string) model.FaultSpec {
	f := model.FaultSpec{Kind: model.FaultRule, Do: do, When: model.When{
		Process: who, Direction: from(d, "faults", "request", "reply"), Script: d.role(),
	}}
	if !d.full() && do != "hold" {
		f.When.Nth = 1 + d.draw("faults", 3)
	} else {
		d.match(&f)
		d.often(&f)
		d.window(&f)
	}
	switch do {
	case "delay":
		f.For = d.outage()
	case "error":
		f.With = d.refusal()
		// The error replaces the command and not its reply, because a client may
		// conclude from an error that nothing ran.
		f.When.Direction = "request"
		// After some errors, some releases send the command again at once, until
		// the error stops.
		if f.When.Nth == 0 && f.When.Every < 2 {
			f.When.Nth, f.When.Every = 1, 0
		}
		if d.lock.LacksFault(f, nil) != "" { // no server refuses the command
			f.When.Command = ""
		}
	}
	return f
}

func (d *drawer) role() model.Role {
	roles := []model.Role{model.RoleAcquire, model.RoleUnlock, model.RoleRenew}
	if d.full() {
		roles = append(roles, model.RoleForceUnlock, model.RoleLeave)
	}
	return from(d, "faults", roles...)
}

// match draws the conditions of a rule. It may replace the script by a command or a
// channel, or drop it. It may also drop the process and the direction.
func (d *drawer) match(f *model.FaultSpec) {
	ways := []string{"script"}
	commands := d.commands()
	if len(commands) > 0 && d.lock.LacksFault(ruleOnACommand, nil) == "" {
		ways = append(ways, "command")
	}
	if d.lock.LacksFault(ruleOnAChannel, nil) == "" {
		ways = append(ways, "channel")
	}
	switch from(d, "faults", append(ways, "all")...) {
	case "command":
		f.When.Script = ""
		f.When.Command = from(d, "faults", commands...)
	case "channel":
		f.When.Script = ""
		f.When.Channel = d.channel()
	case "all":
		f.When.Script = ""
	}
	if d.draw("faults", 3) == 2 {
		f.When.Process = ""
	}
	if d.draw("faults", 3) == 2 {
		f.When.Direction = ""
	}
}

// commands returns the commands that rules name: the commands that the lock's client sends, as
// far as the servers of the lock know them. If the servers know none of them, it returns all
// commands that the servers know. It returns nil if a server does not list its commands.
func (d *drawer) commands() []string {
	sent := d.lock.Campaign.Commands
	if sent == nil {
		sent = d.lock.Drawing().Commands
	}
	known := d.lock.Commands()
	both := slices.DeleteFunc(slices.Clone(sent), func(c string) bool { return !slices.Contains(known, c) })
	if len(both) == 0 {
		return known
	}
	return both
}

// channel draws the glob of a channel of the lock.
func (d *drawer) channel() string {
	lock := d.names[0]
	if own := d.lock.Campaign.Channels; own != nil {
		return from(d, "faults", own(lock)...)
	}
	globs := []string{"*"}
	if d.lock.Channel != nil {
		if channel := d.lock.Channel(lock, "all"); channel != "" {
			globs = append(globs, channel)
		}
	}
	return from(d, "faults", globs...)
}

// wakeup draws a rule that keeps a waiter from hearing of a release. It meets published
// messages, or the command that subscribes to them, if the servers have one.
func (d *drawer) wakeup(who string) model.FaultSpec {
	f := model.FaultSpec{Kind: model.FaultRule, Do: "drop", When: model.When{
		Process: who, Channel: "*", Direction: "reply", Every: 1 + d.draw("faults", 3),
	}}
	if !d.full() {
		return f
	}
	f.Do = from(d, "faults", "drop", "reset", "delay")
	if f.Do == "delay" {
		f.For = d.outage()
	}
	if listen := d.lock.Drawing().Listen; d.draw("faults", 2) == 1 && listen != "" {
		f.When.Channel, f.When.Command = "", listen
		f.When.Direction = from(d, "faults", "reply", "request")
	}
	d.window(&f)
	return f
}

// refusal draws the text of an error.
func (d *drawer) refusal() string {
	texts := d.lock.Drawing().Errors
	if texts == nil {
		texts = []string{"ERR injected"}
	}
	if !d.full() {
		return texts[0]
	}
	return from(d, "faults", texts...)
}

// often draws which of the messages that fit a rule it hits: the n-th, every n-th, or all.
func (d *drawer) often(f *model.FaultSpec) {
	f.When.Nth, f.When.Every = 0, 0
	switch from(d, "faults", "nth", "every", "all") {
	case "nth":
		f.When.Nth = 1 + d.draw("faults", 4)
	case "every":
		f.When.Every = 1 + d.draw("faults", 3)
	}
}

// window draws the time in which a rule is in force.
func (d *drawer) window(f *model.FaultSpec) {
	if d.draw("faults", 2) == 1 {
		f.From = d.instant()
	}
	if d.draw("faults", 2) == 1 {
		until := f.From + d.positive(time.Millisecond, time.Minute)
		f.Until = &until
	}
}

func threadName(process string, n int) string { return model.ThreadName(process, n) }

// Meets reports whether runs that are drawn with faults of the class can meet such a fault:
// whether the servers of the lock have one of the kind, and the lock the renewals that the
// class watchdog is about.
func Meets(l *subject.Subject, c Class) bool {
	switch c {
	case ClassClock, ClassInterrupt: // faults of processes and threads
		return true
	case ClassWatchdog:
		if l.NoWatchdog {
			return false
		}
	}
	d := &drawer{lock: l}
	return slices.ContainsFunc(faultKinds[c], func(kind string) bool { return !d.lacks(kind) })
}

// ServerFaults returns the faults of the class server that runs of a lock can meet, in words for people.
func ServerFaults(l *subject.Subject) []string { return serverFaults(l, false) }

// LackedServerFaults returns the faults of the class server that runs of a lock cannot meet, in words for
// people.
func LackedServerFaults(l *subject.Subject) []string { return serverFaults(l, true) }

// serverFaults returns the faults of the class server that the servers of a lock lack, or do not lack.
func serverFaults(l *subject.Subject, lacked bool) (words []string) {
	d := &drawer{lock: l}
	add := func(word string, lacks bool) {
		if lacks == lacked {
			words = append(words, word)
		}
	}
	for _, kind := range faultKinds[ClassServer] {
		switch kind {
		case string(model.ServerRestart):
			for _, r := range []struct {
				keep bool
				word string
			}{{true, "restart with data"}, {false, "restart without data"}} {
				add(r.word, d.lacks(kind) || l.LacksFault(model.FaultSpec{Kind: model.FaultServer, Server: model.ServerRestart, KeepData: r.keep}, nil) != "")
			}
		case string(model.ServerFlushScripts):
			add("script flush", d.lacks(kind))
		case string(model.ServerIsolate):
			add("isolation", d.lacks(kind))
		default:
			add(kind, d.lacks(kind))
		}
	}
	return words
}
