package gostory

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// A Script is a story as data: the clients, what their threads do, the faults, and what the test looks for. Lengths
// and instants are in milliseconds.
type Script struct {
	Title     string       `json:"title"`
	Tries     int          `json:"tries"`
	Lock      string       `json:"lock,omitempty"` // which lock of the library it is about
	Fair      bool         `json:"fair,omitempty"`
	Servers   int          `json:"servers"`
	Proxies   string       `json:"proxies,omitempty"` // between clients and servers: NamedProxies or PlainProxies; "": none
	LatencyMs [2]float64   `json:"latency_ms"`        // the least and the most of a message
	Watchdog  float64      `json:"watchdog_ms,omitempty"`
	Clients   []ClientPart `json:"clients"`
	Threads   []ThreadPart `json:"threads"`
	Faults    []FaultPart  `json:"faults,omitempty"`
	LengthMs  float64      `json:"length_ms"`
	Locks     []string     `json:"locks"` // the names of all locks
	Check     Check        `json:"check"`
}

// NamedProxies read the protocol of the servers, and PlainProxies only carry bytes.
const NamedProxies, PlainProxies = "named", "plain"

// A ClientPart is a client with its settings; nil: the default of the library.
type ClientPart struct {
	Name       string   `json:"name"`
	PerCall    bool     `json:"per_call,omitempty"` // each call gets an object of its own
	FairWaitMs *float64 `json:"fair_wait_ms,omitempty"`
	TimeoutMs  *float64 `json:"timeout_ms,omitempty"`
	Retries    *int     `json:"retries,omitempty"`
	PoolSize   *int     `json:"pool_size,omitempty"`
}

// A ThreadPart is a thread of a client, such as a/1, and what it does.
type ThreadPart struct {
	Name  string `json:"name"`
	Steps []Step `json:"steps"`
}

// A Step is what a thread does.
type Step struct {
	Do   string  `json:"do"` // at, sleep, acquire, unlock, force_unlock, extend, interrupt, close, repeat
	Ms   float64 `json:"ms,omitempty"`
	Lock string  `json:"lock,omitempty"`
	// The following are of acquire.
	Try           bool     `json:"try,omitempty"`
	WaitMs        *float64 `json:"wait_ms,omitempty"`
	LeaseMs       float64  `json:"lease_ms,omitempty"`
	Seconds       bool     `json:"seconds,omitempty"` // the caller counts in seconds
	Interruptible bool     `json:"interruptible,omitempty"`
	Thread        string   `json:"thread,omitempty"` // of interrupt
	// Steps are repeated, Times times or until an instant, or played if the lock was granted.
	Times   int      `json:"times,omitempty"`
	UntilMs *float64 `json:"until_ms,omitempty"`
	Steps   []Step   `json:"steps,omitempty"`
}

// A FaultPart is a fault, or a rule about messages.
type FaultPart struct {
	Do       string  `json:"do"` // crash, cut, restart, delete, or of a rule: drop, reset, delay, hold, error
	AtMs     float64 `json:"at_ms,omitempty"`
	ForMs    float64 `json:"for_ms,omitempty"`
	Client   string  `json:"client,omitempty"` // "": each
	Servers  []int   `json:"servers,omitempty"`
	KeepData bool    `json:"keep_data,omitempty"`
	Key      string  `json:"key,omitempty"`
	// The following choose the messages of a rule.
	Rule      bool     `json:"rule,omitempty"`
	Direction string   `json:"direction,omitempty"`
	Command   string   `json:"command,omitempty"`
	Role      string   `json:"role,omitempty"`
	Channel   string   `json:"channel,omitempty"`
	Nth       int      `json:"nth,omitempty"`
	Every     int      `json:"every,omitempty"`
	FromMs    float64  `json:"from_ms,omitempty"`
	UntilMs   *float64 `json:"until_ms,omitempty"`
	Text      string   `json:"text,omitempty"` // of an error
}

// A Check is what fails the test.
type Check struct {
	That    string  `json:"that"`
	Lock    string  `json:"lock,omitempty"`
	Thread  string  `json:"thread,omitempty"`
	Call    int     `json:"call,omitempty"` // its number among the calls of the thread, counted from 1
	Outcome string  `json:"outcome,omitempty"`
	Ms      float64 `json:"ms,omitempty"`
	Most    int     `json:"most,omitempty"`
}

// The checks of a Go test.
const (
	OneOwner      = "one owner"
	WaiterServed  = "a waiter is served"
	AsksSeldom    = "a waiter asks seldom"
	NoGhost       = "no ghost"
	HoldEnds      = "a hold ends"
	CallFails     = "a call fails"
	CallIsNot     = "a call is not"
	ReturnsWithin = "a call returns in time"
)

// Reproduce plays a script as often as it says, each time in a subtest.
func Reproduce(t *testing.T, text []byte, libraryOf func(lock string) Library) {
	var x Script
	if err := json.Unmarshal(text, &x); err != nil {
		t.Fatal(err)
	}
	for try := range x.Tries {
		t.Run(fmt.Sprint(try+1), func(t *testing.T) { x.play(NewStory(t, libraryOf(x.Lock), x.Servers)) })
	}
}

func length(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

func (x *Script) play(s *Story) {
	s.t.Helper()
	var n *Network
	switch x.Proxies {
	case NamedProxies:
		n = s.Network(s.library.Protocol)
	case PlainProxies:
		n = s.Network(Bytes)
	}
	if n != nil {
		n.Latency(length((x.LatencyMs[0] + x.LatencyMs[1]) / 2))
	}
	for _, c := range x.Clients {
		s.Client(c.Name)
	}
	for _, thread := range x.Threads {
		s.Thread(thread.Name, func(t *Thread) { t.play(thread.Steps) })
	}
	for _, f := range x.Faults {
		s.meet(n, f)
	}
	if x.Check.That == AsksSeldom {
		n.CountRequests()
	}
	s.Play(length(x.LengthMs))
	s.check(n, x.Check)
}

func (t *Thread) play(steps []Step) {
	for _, x := range steps {
		switch x.Do {
		case "at":
			t.At(length(x.Ms))
		case "sleep":
			t.Sleep(length(x.Ms))
		case "acquire":
			if t.ask(x) {
				t.play(x.Steps)
			}
		case "unlock":
			t.Unlock(x.Lock)
		case "extend":
			t.Extend(x.Lock)
		case "interrupt":
			t.Interrupt(x.Thread)
		case "repeat":
			for n := 0; n < x.Times || x.UntilMs != nil && t.Before(length(*x.UntilMs)); n++ {
				t.play(x.Steps)
			}
		default:
			panic("no step is called " + x.Do)
		}
	}
}

// ask asks for a lock, and reports whether it was granted.
func (t *Thread) ask(x Step) bool {
	switch {
	case x.Try && (x.WaitMs == nil || *x.WaitMs == 0):
		return t.TryLock(x.Lock)
	case x.WaitMs != nil:
		return t.LockWithin(x.Lock, length(*x.WaitMs))
	}
	return t.Lock(x.Lock)
}

// meet adds a fault.
func (s *Story) meet(n *Network, f FaultPart) {
	switch {
	case f.Rule:
		n.Rule(s.rule(f))
	case f.Do == "cut":
		n.Cut(f.Client, length(f.AtMs), length(f.ForMs), f.Servers...)
	case f.Do == "crash":
		n.Crash(f.Client, length(f.AtMs))
	case f.Do == "restart":
		s.Restart(length(f.AtMs), f.KeepData, f.Servers...)
	case f.Do == "delete":
		s.Delete(length(f.AtMs), f.Key)
	default:
		panic("no fault is called " + f.Do)
	}
}

// rule returns the rule of a fault.
func (s *Story) rule(f FaultPart) Rule {
	r := Rule{Client: f.Client, Direction: f.Direction, Command: f.Command, From: length(f.FromMs), Nth: f.Nth}
	if f.Channel != "" {
		r.Direction = Push
	}
	if f.Role != "" {
		r.If = s.During(f.Role)
	}
	if f.UntilMs != nil {
		r.Until = length(*f.UntilMs)
	}
	switch f.Do {
	case "drop":
		r.Do = Drop
	case "reset":
		r.Do = Reset
	case "delay":
		r.Do = Delay(length(f.ForMs))
	case "hold":
		r.Do = HoldUntil(r.Until)
	case "error":
		r.Do = s.library.Refuse(f.Text)
	default:
		panic("no rule does " + f.Do)
	}
	return r
}

// check fails the test if the library did what the check is about.
func (s *Story) check(n *Network, c Check) {
	s.t.Helper()
	switch c.That {
	case OneOwner:
		s.AssertOneOwner(c.Lock)
	case WaiterServed:
		s.AssertWaiterIsServed(c.Lock, c.Thread, length(c.Ms))
	case AsksSeldom:
		n.AssertAsksSeldom(c.Most)
	case NoGhost:
		s.AssertNoGhost(c.Lock, c.Thread, s.library.Places)
	case HoldEnds:
		s.AssertHoldEnds(c.Lock, s.library.TimeToLive)
	case CallFails:
		s.AssertCallFails(c.Thread, c.Call)
	case CallIsNot:
		s.AssertCallIsNot(c.Thread, c.Call, map[string]error{ErrBusy.Error(): ErrBusy, ErrNotHeld.Error(): ErrNotHeld}[c.Outcome])
	case ReturnsWithin:
		s.AssertReturnsWithin(c.Thread, c.Call, length(c.Ms))
	default:
		panic("no check is called " + c.That)
	}
}
