package report

import (
	"cmp"
	"slices"

	"lockstep/linearizability"
	"lockstep/model"
)

// Run is what a report is made of. Names may hold anything: they are shown as
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
	Findings []linearizability.Finding
	// Blame is the curve of how probable the failure was; nil: not asked for.
	Blame *Curve
}

// Curve is how often a run failed when its first decisions were kept and the
// rest were drawn anew.
type Curve struct {
	Judge string `json:"judge"`
	Of    int    `json:"of"`   // decisions of the run
	Runs  int    `json:"runs"` // for each point
	// Points are in order of Kept.
	Points []CurvePoint `json:"points"`
	// Sentence says which decision made it inevitable.
	Sentence string `json:"sentence"`
}

// CurvePoint is the share of runs that failed with so many decisions kept.
type CurvePoint struct {
	Kept   int    `json:"kept"`
	Failed int    `json:"failed"` // of Curve.Runs
	Stream string `json:"stream"` // of the last decision kept; "" for none
	AtNs   int64  `json:"at"`     // when it was drawn
}

// Most of a record that a page shows.
const (
	eventsMost   = 4000
	findingsMost = 100 // of each judge
	overlapsMost = 1000
	// textMost is how long a text of a record may be.
	textMost = 160
	// repeatsLeast is from how many on exchanges that only repeat are folded.
	repeatsLeast = 5
)

// The kinds of lanes.
const (
	laneThread   = "thread"
	laneWatchdog = "watchdog"
	laneServer   = "server"
)

// view is a run as it is drawn. Instants are nanoseconds since the start.
type view struct {
	Scenario string     `json:"scenario"`
	Lock     string     `json:"lock"`
	Verdict  string     `json:"verdict"`
	FromNs   int64      `json:"from"`
	EndNs    int64      `json:"end"`
	Lanes    []lane     `json:"lanes"`
	Locks    []string   `json:"locks"`
	Names    []string   `json:"names"` // of those that queue
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
	Total    int        `json:"total"` // events of the record
	Folded   int        `json:"folded"`
	Left     int        `json:"left_out"`
	More     int        `json:"more"` // findings that are left out
	Blame    *Curve     `json:"blame,omitempty"`
}

type lane struct {
	Name    string `json:"name"`
	Process string `json:"process,omitempty"`
	Kind    string `json:"kind"`
	Lock    string `json:"lock,omitempty"` // of a server's lane
}

// event is a line of the list.
type event struct {
	AtNs    int64    `json:"t"`
	Kind    string   `json:"k"`
	Lane    int      `json:"lane"` // -1: everybody's
	Process string   `json:"p,omitempty"`
	Locks   []string `json:"locks,omitempty"`
	Op      int      `json:"op,omitempty"`
	Msg     int      `json:"msg,omitempty"`
	Text    string   `json:"text"`
	Times   int      `json:"n,omitempty"` // of a fold
	quiet   bool     // no part of the story as text

	check *model.Check // of a want that was not met
}

// bar is an operation from its call to its return.
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

// hold is what the server holds of a lock from an instant on.
type hold struct {
	Lock      string  `json:"lock"`
	AtNs      int64   `json:"t"`
	ToNs      int64   `json:"to"`
	Owner     string  `json:"owner,omitempty"`
	Count     int     `json:"count,omitempty"`
	ExpiresMs int64   `json:"exp,omitempty"`   // -1: never
	Queue     []int   `json:"queue,omitempty"` // of view.Names
	DueMs     []int64 `json:"due,omitempty"`   // of each in the queue; -1: it has no deadline
}

// message is a command with its answer, or a published message. An instant is
// -1 where it never came.
type message struct {
	ID     int      `json:"id"`
	Lane   int      `json:"lane"`
	Server int      `json:"server"`
	Name   string   `json:"name"`
	Locks  []string `json:"locks,omitempty"`
	Op     int      `json:"op,omitempty"`
	Sent   int64    `json:"sent"`
	Exec   int64    `json:"exec"`
	Done   int64    `json:"done"`
	Lost   int64    `json:"lost"`
	Dir    string   `json:"dir,omitempty"` // that was lost
	Why    string   `json:"why,omitempty"`
	Reply  string   `json:"reply,omitempty"`
	Hit    string   `json:"hit,omitempty"` // what a rule did to it
	Push   bool     `json:"push,omitempty"`
}

type fault struct {
	Text      string   `json:"text"`
	Processes []string `json:"processes,omitempty"`
	FromNs    int64    `json:"from"`
	ToNs      int64    `json:"to"`
}

// audience is who listens to a channel from an instant on.
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

// gone is the end of a process: it died, or closed its client.
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
	// Excuse says why it is no bug; "" for a bug.
	Excuse string `json:"excuse,omitempty"`
	// Event is the line of the list at which it shows; -1: it was cut away.
	Event int `json:"event"`

	check *model.Check // the want that was not met
}

type moment struct {
	AtNs int64  `json:"t"`
	Text string `json:"text"`
	Mark string `json:"mark,omitempty"` // fault, lost or finding
}

// gap is a stretch of events that were left out.
type gap struct {
	FromNs int64 `json:"from"`
	ToNs   int64 `json:"to"`
	Events int   `json:"events"`
}

// finding classes, and what stands for them where the judge gave none.
func classOf(f linearizability.Finding) string {
	if f.Verdict == linearizability.Undecided {
		return string(linearizability.Undecided)
	}
	return string(f.Class)
}

// byWeight orders findings: bugs, limits, what is undecided; then by instant.
func byWeight(fs []linearizability.Finding) []linearizability.Finding {
	rank := func(f linearizability.Finding) int {
		return slices.Index([]string{"bug", "limit", "undecided"}, classOf(f))
	}
	out := slices.Clone(fs)
	slices.SortStableFunc(out, func(a, b linearizability.Finding) int { return cmp.Compare(rank(a), rank(b)) })
	return out
}
