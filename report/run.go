package report

import (
	"cmp"
	"slices"

	"lockstep/linearizability/judges"
	"lockstep/model"
)

// A Run is the input of a report. Names may contain any characters, since they are shown as
// text.
type Run struct {
	Scenario string
	About    string // what the scenario shows, in its author's words
	Lock     string
	Seed     uint64
	Verdict  string
	Expected string
	// Cause says where the first finding begins; "" if nobody knows.
	Cause string
	// Why says what an undecided run lacks; else "".
	Why string
	// Replay is the command that plays the run again.
	Replay   string
	Digest   string
	Record   *model.Record
	Findings []judges.Finding
	// Blame is the curve of the probability of the failure. It is nil if nobody asked for
	// it.
	Blame *Curve
}

// A Curve says how often a run failed when its first decisions were kept and the others
// were drawn anew.
type Curve struct {
	Judge string `json:"judge"`
	Of    int    `json:"of"`   // decisions of the run
	Runs  int    `json:"runs"` // for each point
	// Points are in order of Kept.
	Points []CurvePoint `json:"points"`
	// Sentence says which decision made the failure inevitable.
	Sentence string `json:"sentence"`
}

// A CurvePoint says how many runs failed when the first Kept decisions were kept.
type CurvePoint struct {
	Kept   int    `json:"kept"`
	Failed int    `json:"failed"` // of Curve.Runs
	Stream string `json:"stream"` // of the last decision kept; "" for none
	AtNs   int64  `json:"at"`     // when it was drawn
}

// Limits of the part of a record that a page shows.
const (
	eventsMost   = 4000
	findingsMost = 100 // per judge
	// findingsWhole is the number of findings that stand above the timeline. The others are
	// opened by a click.
	findingsWhole = 2
	overlapsMost  = 1000
	// textMost limits the length of a text of the record.
	textMost = 160
	// repeatsLeast is the least number of repeated exchanges, or groups of them, that are folded.
	repeatsLeast = 5
	// groupMost is the greatest size of such a group: two commands for each of five servers.
	groupMost = 10
)

// The kinds of lanes.
const (
	laneThread   = "thread"
	laneWatchdog = "watchdog"
	laneServer   = "server"
)

// A view is a run as it is drawn. Instants are nanoseconds since the start.
type view struct {
	Scenario string     `json:"scenario"`
	Lock     string     `json:"lock"`
	Verdict  string     `json:"verdict"`
	FromNs   int64      `json:"from"`
	EndNs    int64      `json:"end"`
	Lanes    []lane     `json:"lanes"`
	Locks    []string   `json:"locks"`
	Names    []string   `json:"names"` // of the waiters in queues
	Events   []event    `json:"events"`
	Ops      []bar      `json:"ops"`
	Beliefs  []band     `json:"beliefs"`
	Overlaps []overlap  `json:"overlaps"`
	Truth    []hold     `json:"truth"`
	Messages []message  `json:"messages"`
	Faults   []fault    `json:"faults"`
	Subs     []audience `json:"subs"`
	Uses     []use      `json:"uses"`
	Gone     []gone     `json:"gone"`
	Findings []finding  `json:"findings"`
	Moments  []moment   `json:"moments"`
	Cuts     []gap      `json:"cuts"`
	Decimals clock      `json:"decimals"` // of the instants
	Total    int        `json:"total"`    // events of the record
	Folded   int        `json:"folded"`
	Left     int        `json:"left_out"`
	More     int        `json:"more"` // findings that are left out
	Blame    *Curve     `json:"blame,omitempty"`
	clocks   []string   // what is wrong with the wall clocks of processes
}

type lane struct {
	Name    string `json:"name"`
	Process string `json:"process,omitempty"`
	Kind    string `json:"kind"`
	Lock    string `json:"lock,omitempty"` // of a server's lane
}

// An event is a line of the list.
type event struct {
	AtNs    int64    `json:"t"`
	Kind    string   `json:"k"`
	Lane    int      `json:"lane"` // -1: it concerns all lanes
	Process string   `json:"p,omitempty"`
	Locks   []string `json:"locks,omitempty"`
	Op      int      `json:"op,omitempty"`
	Msg     int      `json:"msg,omitempty"`
	Text    string   `json:"text"`
	Times   int      `json:"n,omitempty"` // how often a folded group of exchanges repeats
	quiet   bool     // the story as text leaves it out

	check *model.Check // of a want that was not met
	turn  bool         // the lock has another owner
	by    int          // the call that gave it another owner; 0: none did
	index int          // of the event in the record
}

// A bar is an operation from its call to its return.
type bar struct {
	Op      int    `json:"op"`
	Lane    int    `json:"lane"`
	Action  string `json:"action"`
	Lock    string `json:"lock"`
	Outcome string `json:"outcome"`
	FromNs  int64  `json:"from"`
	ToNs    int64  `json:"to"`
	Open    bool   `json:"open,omitempty"` // it never returned
}

type band struct {
	Lane       int    `json:"lane"`
	Who        string `json:"who"`
	Lock       string `json:"lock"`
	FromNs     int64  `json:"from"`
	ToNs       int64  `json:"to"`
	LeaseNs    int64  `json:"lease,omitempty"`
	Overstayed bool   `json:"over,omitempty"`
}

type overlap struct {
	Lock   string   `json:"lock"`
	Who    []string `json:"who"`
	FromNs int64    `json:"from"`
	ToNs   int64    `json:"to"`
}

// A hold is the state of a lock on the server from an instant on.
type hold struct {
	Lock      string  `json:"lock"`
	AtNs      int64   `json:"t"`
	ToNs      int64   `json:"to"`
	Owner     string  `json:"owner,omitempty"`
	Count     int     `json:"count,omitempty"`
	ExpiresMs int64   `json:"exp,omitempty"`   // -1: never
	Queue     []int   `json:"queue,omitempty"` // indexes of view.Names
	DueMs     []int64 `json:"due,omitempty"`   // the deadline of each waiter in the queue; -1: none
}

// A message is a command with its answer, or a published message. An instant that never
// came is -1.
type message struct {
	ID     int              `json:"id"`
	Lane   int              `json:"lane"`
	Server int              `json:"server"`
	Name   string           `json:"name"`
	Locks  []string         `json:"locks,omitempty"`
	Op     int              `json:"op,omitempty"`
	Sent   int64            `json:"sent"`
	Exec   int64            `json:"exec"`
	Done   int64            `json:"done"`
	Lost   int64            `json:"lost"`
	Dir    string           `json:"dir,omitempty"` // the direction in which it was lost
	Why    model.LostReason `json:"why,omitempty"`
	Reply  string           `json:"reply,omitempty"`
	Hit    string           `json:"hit,omitempty"` // the effect of a rule on it
	Push   bool             `json:"push,omitempty"`

	segment bool // a piece of a stream, which may have no answer
	counted bool // a finding of traffic counts it
}

type fault struct {
	Text      string   `json:"text"`
	Processes []string `json:"processes,omitempty"`
	FromNs    int64    `json:"from"`
	ToNs      int64    `json:"to"`
}

// An audience lists the processes that listen to a channel from an instant on.
type audience struct {
	Channel string   `json:"channel"`
	AtNs    int64    `json:"t"`
	Who     []string `json:"who"` // processes
}

type use struct {
	Lane   int    `json:"lane"`
	Name   string `json:"name"`
	FromNs int64  `json:"from"`
	ToNs   int64  `json:"to"`
}

// How a process ends.
const (
	goneDied   = "died"
	goneClosed = "closed its client"
)

// gone is the end of a process, which died or closed its client.
type gone struct {
	Process string `json:"process"`
	AtNs    int64  `json:"t"`
	How     string `json:"how"`
}

type finding struct {
	Judge string   `json:"judge"`
	Class string   `json:"class"`
	Why   string   `json:"why"`
	AtNs  int64    `json:"t"`
	Locks []string `json:"locks"`
	Ops   []int    `json:"ops"`
	// Excuse says why the finding is no bug. It is "" for a bug.
	Excuse string `json:"excuse,omitempty"`
	// Event is the line of the list at which the finding is shown; -1: the line was cut
	// away.
	Event int `json:"event"`

	check *model.Check // the want that was not met
	// throughNs is the instant at which the story of the finding ends. It may be long after AtNs: the calls
	// of a history are judged together, and a finding of traffic is about the second after AtNs.
	throughNs int64
}

type moment struct {
	AtNs int64  `json:"t"`
	Text string `json:"text"`
	Mark string `json:"mark,omitempty"` // fault, lost or finding
}

// A gap is a stretch of events that are left out.
type gap struct {
	FromNs int64 `json:"from"`
	ToNs   int64 `json:"to"`
	Events int   `json:"events"`
}

// classOf returns the class of a finding, or "undecided" if the judge did not decide.
func classOf(f judges.Finding) string {
	if f.Verdict == judges.Undecided {
		return string(judges.Undecided)
	}
	return string(f.Class)
}

// byWeight returns the findings with bugs first, then limits, then undecided ones. Within a
// class it keeps their order.
func byWeight(fs []judges.Finding) []judges.Finding {
	rank := func(f judges.Finding) int {
		return slices.Index([]string{"bug", "limit", "undecided"}, classOf(f))
	}
	out := slices.Clone(fs)
	slices.SortStableFunc(out, func(a, b judges.Finding) int { return cmp.Compare(rank(a), rank(b)) })
	return out
}
