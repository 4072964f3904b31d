package sim

import (
	"errors"
	"net"
	"slices"
	"strings"
	"time"

	"lockstep/model"
)

// Node is an address of the world, with the server that answers there.
type Node struct {
	// Addr is what a client dials, as host:port. The host is an address literal:
	// a name would be resolved outside the bubble.
	Addr   string
	Server Server
	// Locks are the names of the locks that the server keeps and whose state is
	// recorded.
	Locks []string
}

// Server is a server for the world: a request goes in; a reply, pushes and effects come out. A
// server never calls the world. It serves one run.
//
// The scheduler calls the methods and the functions of Parts, one at a time, at an instant given in
// nanoseconds since the start of the run. Parts and Parts.AtOnce alone may be called by any
// goroutine. A server may have goroutines of its own. The work that a call starts in them must end
// without simulated time passing.
type Server interface {
	// Start begins the server's life, inside the bubble of the run.
	Start(Setup)
	// Decode reads the first request of a text, and returns the text after it. The error is
	// ErrUnfinished while the request is not complete; any other error says what is wrong with the
	// bytes that were read, and is recorded as a defect.
	Decode(text string) (r Request, rest string, err error)
	// Handle executes a request. It reports false if the reply comes later, by Effects.Answer.
	// Until then no other request of the connection is handled. An answer among effects that are
	// Changed tells the world that the state changed by that request.
	Handle(nowNs int64, c ConnID, r *Request, out *Effects) (Reply, bool)
	// Parts returns what else the server does. It is called before Start, too, and for servers of
	// which no run begins.
	Parts() Parts
}

// Parts are the functions of a server that not every server needs. A server leaves those nil that
// it does not have.
type Parts struct {
	// Stop ends the server's life. No other call follows.
	Stop func()

	// AtOnce gets the bytes that a client is about to send. If they begin with something that
	// cannot wait for simulated time, such as a handshake that a client makes while it holds a
	// mutex, AtOnce answers that. It returns the reply and the bytes that are left to send.
	AtOnce func(written []byte) (reply, rest []byte)
	// Open begins a connection. It comes before the first request of c.
	Open func(c ConnID)
	// Close ends a connection. It may come again, and requests that were under way may come after it.
	Close func(nowNs int64, c ConnID, out *Effects)
	// Pushed appends to list the messages that the server has sent without a request since
	// the last call of Pushed, and returns the list.
	Pushed func(list []Push) []Push
	// Receive takes a message that another server of the world sent with Effects.SendTo. A fault can
	// isolate a server that has it from the others.
	Receive func(nowNs int64, message any, out *Effects)

	// Next returns the instant of the next Tick that the server needs, for example for the end of a
	// lease. It reports false if the server needs none. The world asks again after each call that
	// may have changed the answer: a Tick, a Strike, and any other call that set Effects.Changed.
	Next func() (atNs int64, ok bool)
	// Tick carries out the changes that are due. A server that has Next has Tick.
	Tick func(nowNs int64, out *Effects)

	// Strike lets a fault strike the server; nil: the server has no faults of kind FaultServer and
	// FaultKey. During a stall the world holds requests back, so a server must only keep its own
	// planned changes from happening before the end.
	Strike func(nowNs int64, f model.FaultSpec, out *Effects)
	// Describe says, just before Strike, what the fault is about to do; nil: the text of the fault.
	Describe func(f model.FaultSpec) string
	// StepClock lets the wall clock of the server jump, in place of Strike; nil: it has none by which
	// its leases end.
	StepClock func(nowNs int64, by time.Duration, out *Effects)
	// Refusal returns the reply by which the protocol reports an error to a client. A fault that
	// answers in place of the server sends it; nil: no fault can.
	Refusal func(text string) []byte
	// Refuses reports whether a state of the server can make it answer a command, by its name, with an
	// error and not execute it; nil: any command. A fault answers no other command with an error.
	Refuses func(command string) bool
	// Refuse is Refusal for a request of a connection that Gathers. It is called when the request
	// arrives. A server of whose requests one Gathers has it.
	Refuse func(c ConnID, r *Request, text string) []byte
	// Lacks returns a text that says why the server does not have a fault of kind FaultServer,
	// FaultKey or FaultRule, and which faults it has: "runs no scripts; it has ...". It follows the
	// name of the server in a sentence. It returns "" if the server has the fault.
	Lacks func(f model.FaultSpec) string

	// Commands returns the names that Request.Name can have, in upper case and in order. A rule on
	// the messages of a server without it may name any command, and a campaign draws no such rule.
	Commands func() []string
	// Drawing returns what campaigns draw for the clients of the server's locks; nil: rules on any
	// known command, and one error.
	Drawing func() Drawing

	// Says returns a reader of the segments that a client sends on a connection, in order. The reader returns a short
	// text of the requests in a segment, for people: the name of each, and its key. It returns "" if it cannot read
	// the segment. Only a StreamServer has Says.
	Says func() func(segment string) string

	// State returns the state that the server holds for a lock; nil: none.
	State func(nowNs int64, lock string) *model.LockState
	// Leftovers records what the server still has after all have left.
	Leftovers func(out *Effects)
	// Unsimulated returns what the server has met since the last call and does not simulate, although
	// the real server does, in a few words each: see model.KindUnsimulated. The
	// world calls it when every goroutine is durably blocked.
	Unsimulated func() []string
}

// whole returns p with a function for each of those that the world calls without asking. Those do
// nothing.
func (p Parts) whole() Parts {
	if p.Stop == nil {
		p.Stop = func() {}
	}
	if p.AtOnce == nil {
		p.AtOnce = func(written []byte) (reply, rest []byte) { return nil, written }
	}
	if p.Open == nil {
		p.Open = func(ConnID) {}
	}
	if p.Close == nil {
		p.Close = func(int64, ConnID, *Effects) {}
	}
	if p.Pushed == nil {
		p.Pushed = func(list []Push) []Push { return list }
	}
	if p.Next == nil {
		p.Next = func() (int64, bool) { return 0, false }
	}
	if p.Describe == nil {
		p.Describe = model.FaultSpec.String
	}
	if p.State == nil {
		p.State = func(int64, string) *model.LockState { return nil }
	}
	if p.Leftovers == nil {
		p.Leftovers = func(*Effects) {}
	}
	if p.Unsimulated == nil {
		p.Unsimulated = func() []string { return nil }
	}
	return p
}

// Lacks returns a text as Parts.Lacks does about a fault, or "" if the server has the fault.
func Lacks(s Server, f model.FaultSpec) string {
	p := s.Parts()
	_, stream := s.(*segments)
	switch own := f.Kind == model.FaultServer || f.Kind == model.FaultKey; {
	case p.Receive == nil && f.Server == model.ServerIsolate:
		return "has no other servers to be isolated from"
	case f.Server == model.ServerMoveSlot:
		return "has no slots; only a real cluster has"
	case p.StepClock == nil && f.StepsServerClock():
		return "has no wall clock"
	case !stream && f.Kind == model.FaultRule && f.Do == "half_open":
		return "takes messages one by one, and a connection to it has no halves; it has delay, hold, drop, reset and error"
	case p.Strike == nil && own && f.Server != model.ServerIsolate && !f.StepsServerClock():
		return "has no faults of its own"
	}
	if p.Lacks != nil {
		if why := p.Lacks(f); why != "" {
			return why
		}
	}
	switch refusal := f.Kind == model.FaultRule && f.Do == "error"; {
	case refusal && p.Refusal == nil:
		return "has no error with which a rule could answer in its place; it has delay, hold, drop and reset"
	case refusal && p.Refuses != nil && f.When.Command != "" && !p.Refuses(f.When.Command):
		return "never refuses " + f.When.Command
	}
	return ""
}

// Setup has the facts of a run that its servers are given.
type Setup struct {
	Start time.Time
	// Orders is the mode of the world; nil: messages have latencies.
	Orders *Orders
	// Faults are the faults of the run that strike this server.
	Faults []model.FaultSpec
	// NoShortcuts is Host.NoShortcuts.
	NoShortcuts bool

	// Listen returns a new listener for the connections that clients dial from now on. The last one
	// is closed. Changed makes the world read the locks of the server at this instant, because time
	// or the server itself may have changed them. Any goroutine of the server may call them. Only a
	// StreamServer gets them and Instant. For it Start is zero, since the world has not begun.
	Listen  func() net.Listener
	Changed func()
	// Instant is like Process.Instant. It is for a server that acts by itself at many
	// instants, for example to ask again and again whether a lock is free.
	Instant func() Instant
}

// ConnID is the number of a connection, unique in a world.
type ConnID int

// ErrUnfinished is the error of Decode for a request that is not complete yet.
var ErrUnfinished = errors.New("unfinished request")

// Request is a request of a client to a server.
type Request struct {
	// Name is the name of the command, which rules match.
	Name string
	// Words are the whole request, by which the world finds the operation that sent it.
	Words []string
	// Counts is the place in Words of the number of keys, which is no word of the lock; 0: it has none.
	Counts int
	// Shown are the arguments for the record.
	Shown []string
	// Abridged says that Shown lacks some words of the request, besides its program. The last of Words is its bytes.
	Abridged bool
	// Says is a short text for people: the name of the request and its key, or those of the requests in a segment;
	// "": the name is enough, or unknown.
	Says string
	// Channels are the channels that the request names, which rules match.
	Channels []string
	// Listens says whether the request starts or stops listening to Channels.
	Listens model.Listening
	// Program is the digest of the program that the request has the server run; "": it has none.
	Program string
	// Marks: the request may give its connection a state of its own, or it depends on
	// earlier requests of the connection.
	Marks bool
	// Greets: a client's library sends it when it gets to know the server, and not because
	// anybody asked for it.
	Greets bool
	// Unordered: its answers have no place among the answers to other requests, so it
	// is not part of a pipeline.
	Unordered bool
	// Streams: from here on the client takes the messages of the connection in their
	// order, and does not notice that one is missing. So if such a connection loses a
	// message, the messages behind it are lost, too, and it is reset when messages pass.
	Streams bool
	// Gathers: the server may gather the requests behind it on the connection, and execute all of
	// them together or none. So it hears of those that a rule refuses: see Parts.Refuse.
	Gathers bool
	// Stays: its effect lasts as long as its connection. The request is lost if the
	// client has closed the connection.
	Stays bool
	// Blocks: it may keep its connection waiting. The request is lost if the server knows
	// that the connection has ended.
	Blocks bool
}

// Own returns the words of the request without the number of its keys.
func (r *Request) Own() []string {
	if r.Counts == 0 || r.Counts >= len(r.Words) {
		return r.Words
	}
	return slices.Concat(r.Words[:r.Counts], r.Words[r.Counts+1:])
}

// carries reports whether a word is in the request.
func (r *Request) carries(word string) bool {
	return slices.Contains(r.Shown, word) || r.Abridged && strings.Contains(r.Words[len(r.Words)-1], word)
}

// Reply is what a server answers.
type Reply struct {
	Bytes  []byte
	Shown  string // for the record
	Answer model.Answer
	// None: the protocol has no answer to the request.
	None bool
	// Gathered: the request has not been executed. Its answer will be part of the answer to a later
	// one, and no rule answers it with an error.
	Gathered bool
	// Closes: the server closes the connection after its answer.
	Closes bool
}

// Push is a message that a server sends without a request.
type Push struct {
	Conn    ConnID
	Channel string
	Bytes   []byte
	// Closes: the server closes the connection after it. Bytes may be empty then.
	Closes bool

	to *message // the segment to which it is the reply; nil: none
}

// Effects are the results of a call of a server besides its reply. The world makes them happen
// after the call, in the order in which they were given.
type Effects struct {
	// Changed: the state of locks, or the answer of Parts.Next, may have changed.
	Changed bool
	// Still: a call of Handle woke no goroutine of the server, so the world need not wait for
	// any.
	Still bool

	reads, writes []string
	removed       []string
	list          []effect
}

type effectKind int

const (
	effectRecord effectKind = iota
	effectSend
	effectSendTo
	effectPlan
	effectAnswer
	effectHangUp
	effectKeep
	effectNext
)

// effect is one effect of a call. Its kind says which fields have a meaning.
type effect struct {
	kind    effectKind
	event   model.Event                     // record
	way     *Way                            // send, send to
	to      string                          // send to
	message any                             // send to
	atNs    int64                           // plan
	class   Class                           // plan
	then    func(nowNs int64, out *Effects) // plan, send, next
	conn    ConnID                          // answer, hang up, keep
	reply   Reply                           // answer
}

// Record adds an event to the record.
func (e *Effects) Record(ev model.Event) {
	e.list = append(e.list, effect{kind: effectRecord, event: ev})
}

// Send sends a message between parts of the server. When it arrives, arrive runs.
func (e *Effects) Send(by *Way, arrive func(nowNs int64, out *Effects)) {
	e.list = append(e.list, effect{kind: effectSend, way: by, then: arrive})
}

// SendTo sends a message to the server at addr, which has Parts.Receive. It is lost if a fault isolates the
// two from each other when it leaves or when it arrives. A stall of the receiver delays it.
func (e *Effects) SendTo(addr string, by *Way, message any) {
	e.list = append(e.list, effect{kind: effectSendTo, to: addr, way: by, message: message})
}

// Plan lets the function then run at an instant, among the events of a class.
func (e *Effects) Plan(atNs int64, c Class, then func(nowNs int64, out *Effects)) {
	e.list = append(e.list, effect{kind: effectPlan, atNs: atNs, class: c, then: then})
}

// Answer sends the reply to the request that keeps c waiting.
func (e *Effects) Answer(c ConnID, r Reply) {
	e.list = append(e.list, effect{kind: effectAnswer, conn: c, reply: r})
}

// Next lets the function then run as soon as the request that Handle executed is recorded, before
// anything else happens in the world. After any other call it runs at once. An answer among its
// effects thus comes behind the request that caused it.
func (e *Effects) Next(then func(nowNs int64, out *Effects)) {
	e.list = append(e.list, effect{kind: effectNext, then: then})
}

// HangUp lets the server close a connection that no reply closes. The client notices it after
// everything that the server has sent before the call.
func (e *Effects) HangUp(c ConnID) {
	e.list = append(e.list, effect{kind: effectHangUp, conn: c})
}

// Keep says, during Close, that the request which keeps c waiting will still have its effect. A
// later Answer tells the world when; no client gets it.
func (e *Effects) Keep(c ConnID) {
	e.list = append(e.list, effect{kind: effectKeep, conn: c})
}

// HungUp returns the connections that HangUp closes. It is for tests of a server.
func (e *Effects) HungUp() []ConnID {
	var list []ConnID
	for _, x := range e.list {
		if x.kind == effectHangUp {
			list = append(list, x.conn)
		}
	}
	return list
}

// Read notes that the call read an object of the server: see Effect. A server need not do so if
// Setup.Orders is nil.
func (e *Effects) Read(object string) { e.reads = append(e.reads, object) }

// Write notes that the call changed an object of the server.
func (e *Effects) Write(object string) { e.writes = append(e.writes, object) }

// Remove notes that a call of Strike removed words from the values of keys. Of a request whose Shown lacks words, a word
// is any part of its bytes.
func (e *Effects) Remove(words ...string) { e.removed = append(e.removed, words...) }

// The objects that every server has. Each request reads ObjectServer, and a server writes it if it
// does not know what a request touches. The end of a connection writes ObjectConns.
const (
	ObjectServer = "server"
	ObjectConns  = "connections"
)

// Way is one direction between two parts of a server, such as the server and a
// copy of its data, or between two servers. It carries messages in order. A new Way is empty.
type Way struct {
	Line     string // its name among the lines of Orders
	Stream   string // of decisions
	Min, Max time.Duration
	last     int64 // nominal arrival of the last message
}
