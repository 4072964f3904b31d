package model

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// FaultKind is the kind of a fault.
type FaultKind string

// The kinds of faults.
const (
	FaultCrash     FaultKind = "crash"      // the process dies
	FaultPause     FaultKind = "pause"      // the process stands still
	FaultPartition FaultKind = "partition"  // no message passes between the processes and the server
	FaultWallClock FaultKind = "wall_clock" // the wall clock of the process jumps
	FaultServer    FaultKind = "server"     // see ServerFault
	FaultKey       FaultKind = "key"        // an operator or an eviction removes keys
	FaultRule      FaultKind = "when"       // a rule on messages
	FaultFate      FaultKind = "fate"       // the chooser lost or delayed one message, see Params.Fault
)

// ServerFault is the kind of a server's fault, in a FaultSpec of kind FaultServer.
type ServerFault string

// The faults of a server.
const (
	ServerRestart      ServerFault = "restart"
	ServerFailover     ServerFault = "failover"
	ServerFlushScripts ServerFault = "flush_scripts"
	ServerStall        ServerFault = "stall"
	ServerWallClock    ServerFault = "wall_clock" // the wall clock of the server jumps
	ServerIsolate      ServerFault = "isolate"    // no message passes between the server and other servers
	ServerMoveSlot     ServerFault = "move_slot"  // a key of a cluster moves to another server, with its whole slot
)

// FaultSpec is one fault of a run, as a scenario asks for it and as judges and reports know it.
// Kind determines which fields have a meaning.
type FaultSpec struct {
	Kind      FaultKind
	At        time.Duration // since the start; every kind but FaultRule
	Processes []string      // crash, pause and wall_clock: one; partition: one or more
	For       time.Duration // pause, partition, stall, isolate, move_slot; the delay of a rule
	Step      time.Duration // wall_clock, of a process or of a server
	Server    ServerFault
	// Nodes are the addresses of the servers that the fault strikes: those of
	// server and key, the far ends of a partition, the servers whose messages a
	// rule matches. None: every server.
	Nodes    []string
	KeepData bool   // restart
	LoseLast int    // failover without replicas: the number of writes that are lost
	Key      string // a glob; of move_slot, a name
	KeyDo    string // delete or expire
	// The fields of a rule.
	When  When
	From  time.Duration  // since the start
	Until *time.Duration // since the start; nil: until the calm phase
	// Awaits ends the rule as soon as it is met; nil: an instant or the calm phase ends it.
	Awaits *Condition
	Do     string // drop, delay, hold, half_open, reset, error
	With   string // the text of the error
}

// When has the conditions of a rule. An empty field matches every message.
type When struct {
	Process   string
	Direction string // request, reply or "" (both); a published message is a reply
	Command   string // upper case
	Script    Role
	Channel   string // a glob
	Nth       int    // only the n-th message that matches; 0: every match
	Every     int    // 0: every match
	After     int    // every match but the first ones, of which there are so many; 0: every match
}

// Condition names what must have happened since FaultSpec.From for a rule to end. Of its fields
// at least one is set, and each that is set names something that must have happened, in any order.
type Condition struct {
	Granted   string // this thread, as process/thread, or any thread of this process was granted a lock
	Ended     string // the servers ended a hold of this lock, whoever had it
	Published string // a server published a message on a channel that matches this glob
	// Executed: the servers executed so many requests that match. Direction, Every and After are
	// empty, and an Nth of 0 is the first.
	Executed *When
}

// String writes the condition as a clause of a sentence.
func (c Condition) String() string {
	var parts []string
	if c.Granted != "" {
		parts = append(parts, c.Granted+" is granted a lock")
	}
	if c.Ended != "" {
		parts = append(parts, "a hold of "+c.Ended+" ends")
	}
	if c.Published != "" {
		parts = append(parts, "a message is published on "+c.Published)
	}
	if w := c.Executed; w != nil {
		text := strings.Join(append(w.words(), "is executed"), " ")
		if w.Nth > 1 {
			text += fmt.Sprintf(" %d times", w.Nth)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, " and ")
}

// Names reports whether the fault names the process among those that it strikes.
func (f FaultSpec) Names(process string) bool {
	return slices.Contains(f.Processes, process)
}

// Interrupts reports whether the server may serve nobody while the fault lasts, or whether every
// client has to connect again.
func (f FaultSpec) Interrupts() bool {
	return f.EndsConnections() || f.Server == ServerStall || f.Server == ServerIsolate
}

// LosesData reports whether the server may forget data.
func (f FaultSpec) LosesData() bool {
	return f.Server == ServerFailover || f.Server == ServerRestart && !f.KeepData
}

// StepsServerClock reports whether the wall clock of the server jumps. Leases that the
// server keeps end earlier or later by that much.
func (f FaultSpec) StepsServerClock() bool { return f.Server == ServerWallClock }

// MovesLeases reports whether the fault may delay the end of a lease that nobody renewed: a step of
// the server's clock, a stall, during which a ticking clock stands still, or a restart, after which a
// server may count the leases of its data from their beginning.
func (f FaultSpec) MovesLeases() bool {
	return f.StepsServerClock() || f.Server == ServerStall || f.Server == ServerRestart && f.KeepData
}

// MayRemoveKeys reports whether the fault may take keys from the server.
func (f FaultSpec) MayRemoveKeys() bool {
	return f.Kind == FaultKey || f.LosesData() || f.StepsServerClock() && f.Step > 0
}

// EndsConnections reports whether every client has to connect again.
func (f FaultSpec) EndsConnections() bool {
	return f.Server == ServerFailover || f.Server == ServerRestart
}

// String writes the fault, with the nodes that it names, in the words of a scenario. It is for
// people: programs read the fields.
func (f FaultSpec) String() string {
	if len(f.Nodes) > 0 {
		return f.words() + " at " + strings.Join(f.Nodes, ", ")
	}
	return f.words()
}

func (f FaultSpec) words() string {
	who := strings.Join(f.Processes, ", ")
	switch f.Kind {
	case FaultCrash:
		return "crash of " + who
	case FaultPause:
		return fmt.Sprintf("pause of %s for %v", who, f.For)
	case FaultPartition:
		return fmt.Sprintf("partition of %s for %v", who, f.For)
	case FaultWallClock:
		return fmt.Sprintf("wall clock of %s steps by %v", who, f.Step)
	case FaultKey:
		return fmt.Sprintf("%s of key %s", f.KeyDo, f.Key)
	case FaultServer:
		switch {
		case f.Server == ServerFailover:
			return fmt.Sprintf("failover that loses the last %d writes", f.LoseLast)
		case f.Server == ServerRestart && f.KeepData:
			return "server restart with its data"
		case f.Server == ServerRestart:
			return "server restart without its data"
		case f.Server == ServerStall:
			return fmt.Sprintf("server stall for %v", f.For)
		case f.Server == ServerIsolate:
			return fmt.Sprintf("isolation of the server for %v", f.For)
		case f.Server == ServerMoveSlot:
			return fmt.Sprintf("move of the slot of key %s for %v", f.Key, f.For)
		case f.Server == ServerFlushScripts:
			return "flush of the script cache"
		case f.Server == ServerWallClock:
			return fmt.Sprintf("wall clock of the server steps by %v", f.Step)
		}
		panic("model: a fault of the server of unknown kind " + string(f.Server))
	}
	words := append([]string{f.Do}, f.When.words()...)
	if f.Awaits != nil {
		words = append(words, "until", f.Awaits.String())
	}
	return strings.Join(words, " ")
}

// words returns the words for the messages that match.
func (w When) words() (words []string) {
	for _, part := range []string{string(w.Script), w.Command, w.Channel, w.Direction} {
		if part != "" {
			words = append(words, part)
		}
	}
	if w.Process != "" {
		words = append(words, "of", w.Process)
	}
	return words
}
