// Package survey compares locks. For each lock it plays one campaign per class of faults and one that
// tells stories of known failures, and says for each promise whether it held. It also measures the cost
// of an acquire.
package survey

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"lockstep/explore"
	"lockstep/explore/draw"
	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// Options say how large a survey is.
type Options struct {
	// Runs is the number of runs of each campaign; the campaign Stories rounds it up to whole
	// families, each of which tells all stories.
	Runs   int    `json:"runs"`
	Seed   uint64 `json:"seed"`
	Budget int    `json:"budget"` // runs for making one failure small
	// Seconds is the processor time that the campaigns of a lock may take. A lock for which
	// Runs would take longer, by the time of its first runs, gets a half, a quarter and so on
	// of Runs, see Lock.Runs. 0: there is no limit.
	Seconds int `json:"seconds,omitempty"`
}

// The names of the campaigns that have no class of faults of their own. The other campaigns have the
// name of their class.
const (
	NoFaults = "none"
	// Stories is the campaign that tells the stories of known failures that apply to the lock, and
	// then draws runs with all classes of faults. Other campaigns draw all their runs.
	Stories = "stories"
)

// Campaigns returns the names of the campaigns of a survey, in order.
func Campaigns() []string {
	names := []string{NoFaults}
	for _, c := range draw.Classes {
		names = append(names, string(c))
	}
	return append(names, Stories)
}

// planOf returns the plan by which a lock plays the campaign of this name.
func planOf(name string, l *subject.Subject, seed uint64, runs int) explore.Plan {
	p := explore.Plan{World: sim.Version, Lock: l.Name, Profile: draw.Orderly, Strategy: explore.StrategyPlain, Seed: seed, Runs: runs}
	switch name {
	case NoFaults:
	case Stories:
		p.Faults, p.Strategy = draw.Classes, explore.StrategyTold
		p.Runs = max(2, p.Families()) * explore.FamilyRuns // two families tell all stories
	default:
		p.Faults = []draw.Class{draw.Class(name)}
	}
	return p
}

// A Promise is a property that the survey asks of a lock.
type Promise struct {
	Name  string // for people
	Judge string
	// Of reports whether a lock with these traits claims to keep the promise. If it is nil, every
	// lock claims it that promises something to the judge.
	Of func(model.Traits) bool
	// Lacks is the reason that a table gives for a lock whose traits do not claim the promise.
	Lacks string
}

// claimedBy reports whether the traits of a lock claim the promise.
func (p Promise) claimedBy(l *subject.Subject) bool { return p.Of == nil || p.Of(l.Traits) }

// Promises are the promises of a survey, in order.
var Promises = []Promise{
	{Name: "one owner at a time", Judge: model.JudgeMutualExclusion},
	{Name: "not freed by another", Judge: model.JudgeMisdelete},
	{Name: "re-entrant", Judge: model.JudgeHoldCount, Of: func(t model.Traits) bool { return !t.Uncounted && !t.NonReentrant }, Lacks: "it counts no levels of a hold"},
	{Name: "fair", Judge: model.JudgeFIFO, Lacks: "its waiters have no order"},
	{Name: "bounded wait", Judge: model.JudgeWaitBound},
	{Name: "no waiter is forgotten", Judge: model.JudgeLiveness},
	{Name: "lease kept", Judge: model.JudgeLease},
	// A holder that is told in time no longer believes in its hold when another thread gets the
	// lock. So the judge of mutual exclusion finds a holder that is told too late.
	{Name: "lost hold told", Judge: model.JudgeMutualExclusion, Of: func(t model.Traits) bool { return t.Watched }, Lacks: "it does not tell a holder that the hold is gone"},
	{Name: "fencing", Judge: model.JudgeFencing, Lacks: "it gives no fencing token"},
	{Name: "answers in one order", Judge: model.JudgeLinearizable},
	{Name: "little traffic", Judge: model.JudgeTraffic},
	{Name: "nothing left behind", Judge: model.JudgeTidy},
}

// renamed has the names of promises that surveys of older programs have otherwise.
var renamed = map[string]string{"live after a crash": "no waiter is forgotten"}

// Word is the content of a cell.
type Word string

// The words.
const (
	Held        Word = "held"
	Limit       Word = "limit" // broken under a circumstance that excuses it
	Bug         Word = "bug"
	Undecided   Word = "undecided" // no run could be judged, or the runs say nothing, see explore.Tally.Unjudged
	NotPromised Word = "not promised"
	NotJudged   Word = "not judged"    // the lock does not show what the judge needs
	NoSuchFault Word = "no such fault" // the servers of the lock do not have it
)

// Cell says how a lock kept one promise in one campaign.
type Cell struct {
	Promise string `json:"promise"` // Promise.Name
	Faults  string `json:"faults"`  // the name of the campaign
	// Lock is the lock that was judged, if it is the lock by handles: see subject.Subject.Handles.
	Lock string `json:"lock,omitempty"`
	Word Word   `json:"word"`
	// Runs is the number of runs that were judged, and Broken the number of them that broke
	// the promise as Word says. Both are 0 where no campaign was played.
	Runs   int `json:"runs,omitempty"`
	Broken int `json:"broken,omitempty"`
	// Excuses are the circumstances that excuse a limit. Defects are the IDs of the known
	// defects of a bug. Why is the finding in the smallest run, for people.
	Excuses []string `json:"excuses,omitempty"`
	Defects []string `json:"defects,omitempty"`
	Why     string   `json:"why,omitempty"`
	// Reason says why the promise was not asked of the lock. It is "" in surveys that an older
	// program wrote.
	Reason string `json:"reason,omitempty"`
	// Recording names a recording of the lock, see Lock.Recordings; "" unless Word is Bug.
	Recording string `json:"recording,omitempty"`
}

// Lock is the result of a survey for one lock.
type Lock struct {
	Name   string `json:"lock"`
	About  string `json:"about"`
	Advice string `json:"advice,omitempty"` // when to use the lock and when not
	Policy string `json:"policy,omitempty"` // how the lock is used where its library leaves it open
	Cells  []Cell `json:"cells"`            // by campaign, then by promise
	Cost   Cost   `json:"cost"`
	// WaitsMs is the longest time, in ms, for which a waiter may not get a free lock by the lock's design;
	// 0: none, or an older program wrote the survey.
	WaitsMs int64 `json:"waits_ms,omitempty"`
	// ServerFaults are the faults of the class server that the lock could meet. The list is nil in
	// surveys that an older program wrote.
	ServerFaults []string `json:"server_faults,omitempty"`
	Runs         int      `json:"runs"` // of each campaign, see Options.Runs
	// Odd is the number of runs that were undecided or did not repeat.
	Odd int `json:"odd,omitempty"`
	// Recordings has the text of each recording by its name. It is not in the JSON of
	// a survey, which has the name of the file.
	Recordings map[string]string `json:"-"`
}

// Cell returns the cell of a promise and a campaign. It panics if there is none.
func (l Lock) Cell(promise, faults string) Cell {
	i := slices.IndexFunc(l.Cells, func(c Cell) bool { return c.Promise == promise && c.Faults == faults })
	return l.Cells[i]
}

// serverFaults returns the faults of the class server that the lock could meet; nil if neither the survey
// nor the program knows.
func (l Lock) serverFaults() []string {
	if l.ServerFaults != nil {
		return l.ServerFaults
	}
	if s, err := subject.Find(l.Name); err == nil {
		return draw.ServerFaults(s)
	}
	return nil
}

// waits returns the longest time for which a waiter may not get a free lock by the lock's design, if
// the survey or the program knows it.
func (l Lock) waits() time.Duration {
	if s, err := subject.Find(l.Name); err == nil && l.WaitsMs == 0 {
		return s.Timing(0).Waits
	}
	return time.Duration(l.WaitsMs) * time.Millisecond
}

// Judged returns the number of runs that were judged, of all campaigns.
func (l Lock) Judged() (runs int) {
	for _, p := range Promises {
		runs = max(runs, l.Summary(p.Name).Runs)
	}
	return runs
}

// Reasons says why a promise was not asked of the lock, and why the lock cannot have a class of
// faults. It also names the promises that were judged on the lock by handles, and how long a waiter may
// wait by the lock's design.
func (l Lock) Reasons() (all []string) {
	if waits := l.waits(); waits > 0 {
		all = append(all, fmt.Sprintf("no waiter is forgotten: by the lock's design a waiter may not get a free lock for %v, and the judge grants it this time", waits))
	}
	for _, c := range l.Cells {
		text := ""
		switch {
		case c.Lock != "":
			text = fmt.Sprintf("%s: judged on %s, the same lock taken by handles, whose contexts tell", c.Promise, c.Lock)
		case c.Reason != "" && c.Word == NoSuchFault:
			text = fmt.Sprintf("faults of the class %s: %s: %s", c.Faults, c.Word, c.Reason)
		case c.Reason != "":
			text = fmt.Sprintf("%s: %s: %s", c.Promise, c.Word, c.Reason)
		}
		if text != "" && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return all
}

// sample is the number of runs whose time says how long runs of a lock take, and the least
// number of runs of a campaign that is made shorter for its time.
const sample = 10

// Fit returns the options with the number of runs that the time of a lock allows, and without the limit of
// time. spent returns the processor time of this process so far.
func Fit(h *sim.Host, l *subject.Subject, o Options, spent func() time.Duration) (Options, error) {
	fits := o
	fits.Seconds = 0
	if o.Seconds == 0 || o.Runs <= sample {
		return fits, nil
	}
	plan := planOf(NoFaults, l, o.Seed, sample)
	plan.Faults = draw.Classes
	before := spent()
	err := explore.HereOn(h, plan, l, nil).Family(0, nil, func(explore.Run) error { return nil })
	campaigns := 2 // without faults, and with stories
	for _, c := range draw.Classes {
		if draw.Meets(l, c) {
			campaigns++
		}
	}
	if l.Handles != "" { // each campaign is played on the lock by handles, too
		campaigns *= 2
	}
	fits.Runs = halved(o.Runs, (spent()-before)/sample*time.Duration(campaigns), time.Duration(o.Seconds)*time.Second)
	return fits, err
}

// halved halves a number of runs until they fit into a time, but returns at least sample.
func halved(runs int, each, all time.Duration) int {
	for runs/2 >= sample && time.Duration(runs)*each > all {
		runs /= 2
	}
	return runs
}

// Costs is the name of the part of a survey that measures what an acquire costs. The other parts have the
// names of their campaigns.
const Costs = "costs"

// Parts returns the names of the parts of the survey of a lock, in order.
func Parts() []string { return append(Campaigns(), Costs) }

// A Part has the results of one campaign on a lock, or its costs.
type Part struct {
	Cells      []Cell                    `json:"cells,omitempty"` // by promise
	Odd        int                       `json:"odd,omitempty"`   // see Lock.Odd
	Cost       *Cost                     `json:"cost,omitempty"`
	Recordings map[string]SizedRecording `json:"recordings,omitempty"` // by the names in Cells
}

// A SizedRecording is a recording and the size of its failure, see explore.Shrunk.
type SizedRecording struct {
	Text string `json:"text"`
	Size int    `json:"size"`
}

// Sum returns the survey of a lock that has these parts. runs is the number of runs of each campaign. Of
// recordings with the same name the smallest stays, and of two of one size the first.
func Sum(l *subject.Subject, runs int, parts []Part) Lock {
	out := Lock{Name: l.Name, About: l.About, Advice: l.Advice, Policy: l.Policy, WaitsMs: l.Timing(0).Waits.Milliseconds(),
		ServerFaults: draw.ServerFaults(l), Runs: runs, Recordings: map[string]string{}}
	small := map[string]int{} // the size of the failure, by its recording
	for _, p := range parts {
		out.Cells = append(out.Cells, p.Cells...)
		out.Odd += p.Odd
		if p.Cost != nil {
			out.Cost = *p.Cost
		}
		for name, r := range p.Recordings {
			if size, ok := small[name]; !ok || r.Size < size {
				small[name], out.Recordings[name] = r.Size, r.Text
			}
		}
	}
	return out
}

// NotPlayed returns a part that could not be played, for this reason.
func NotPlayed(name, reason string) Part {
	if name == Costs {
		return Part{}
	}
	return Part{Cells: cellsWithout(name, Undecided, "not played: "+reason)}
}

// cellsWithout returns the cells of a campaign that was not played.
func cellsWithout(campaign string, word Word, reason string) (cells []Cell) {
	for _, p := range Promises {
		cells = append(cells, Cell{Promise: p.Name, Faults: campaign, Word: word, Reason: reason})
	}
	return cells
}

// Play plays one part of the survey of a lock in this process. The lock must be registered. The options
// have no limit of time, see Fit.
func Play(h *sim.Host, l *subject.Subject, o Options, name string) (Part, error) {
	if name == Costs {
		cost, err := Measure(h, l)
		return Part{Cost: &cost}, err
	}
	if class := draw.Class(name); name != NoFaults && name != Stories && !draw.Meets(l, class) {
		reason := "no server of the lock has a fault of this class"
		if class == draw.ClassWatchdog && l.NoWatchdog {
			reason = "nothing renews a hold of the lock"
		}
		return Part{Cells: cellsWithout(name, NoSuchFault, reason)}, nil
	}
	locks := []*subject.Subject{l}
	handles := l
	if l.Handles != "" {
		var err error
		if handles, err = subject.Find(l.Handles); err != nil {
			return Part{}, fmt.Errorf("%s: %w", l.Name, err)
		}
		locks = append(locks, handles)
	}
	out := Part{Recordings: map[string]SizedRecording{}}
	campaigns := map[*subject.Subject]*campaign{}
	for _, played := range locks {
		plan := planOf(name, played, o.Seed, o.Runs)
		c := &campaign{host: h, lock: played, player: explore.HereOn(h, plan, played, nil), budget: o.Budget, small: map[string]*explore.Shrunk{}}
		if err := c.play(plan); err != nil {
			return Part{}, fmt.Errorf("%s, campaign %s: %w", played.Name, name, err)
		}
		campaigns[played] = c
	}
	for _, p := range Promises {
		judged := l
		if !p.claimedBy(l) && p.claimedBy(handles) {
			judged = handles
		}
		cell, s, err := campaigns[judged].cell(p)
		if err != nil {
			return Part{}, fmt.Errorf("%s, campaign %s: %w", judged.Name, name, err)
		}
		cell.Faults = name
		if judged != l {
			cell.Lock = judged.Name
		}
		if s != nil {
			cell.Recording = s.Fingerprint()
			if judged != l {
				cell.Recording = judged.Name + "." + cell.Recording
			}
			if r, ok := out.Recordings[cell.Recording]; !ok || s.Size < r.Size {
				out.Recordings[cell.Recording] = SizedRecording{s.Recording, s.Size}
			}
		}
		out.Cells = append(out.Cells, cell)
	}
	for _, c := range campaigns {
		out.Odd += len(c.tally.Odd) + c.unrepeated
	}
	return out, nil
}

// campaign is one campaign on one lock.
type campaign struct {
	host       *sim.Host
	lock       *subject.Subject
	player     explore.Player
	budget     int
	runs       []explore.Run
	tally      explore.Tally
	small      map[string]*explore.Shrunk // by the group of the failure; nil if its run does not fail again
	unrepeated int
}

func (c *campaign) play(p explore.Plan) error {
	for family := 0; len(c.runs) < p.Runs; family++ {
		err := c.player.Family(family, nil, func(r explore.Run) error {
			c.runs = append(c.runs, r)
			return nil
		})
		if err != nil {
			return err
		}
	}
	c.tally = explore.Sum(p, c.runs)
	return nil
}

// cell returns the cell of a promise, and a run made small that shows the bug, or nil if the cell
// is no bug.
func (c *campaign) cell(p Promise) (Cell, *explore.Shrunk, error) {
	out := Cell{Promise: p.Name}
	params := model.Params{Traits: c.lock.Traits, Promises: c.lock.Promises}
	promise, ok := params.Promise(p.Judge)
	switch {
	case promise.Unjudged:
		out.Word, out.Reason = NotJudged, promise.Source
		return out, nil, nil
	case promise.Waived:
		out.Word, out.Reason = NotPromised, promise.Source
		return out, nil, nil
	case !ok, !p.claimedBy(c.lock):
		out.Word, out.Reason = NotPromised, p.Lacks
		return out, nil, nil
	}
	for _, word := range []play.Word{play.VerdictHeld, play.VerdictLimit, play.VerdictBug} {
		out.Runs += c.tally.Words[string(word)]
	}
	unjudged := c.tally.Unjudged()
	if out.Runs == 0 {
		out.Word, out.Reason = Undecided, strings.Join(unjudged, "; ")
		return out, nil, nil
	}
	bugs, limits := c.failures(p.Judge)
	for _, g := range bugs {
		if g.Defect != "" && !slices.Contains(out.Defects, g.Defect) {
			out.Defects = append(out.Defects, g.Defect)
		}
	}
	for _, g := range bugs {
		s, err := c.shrink(g)
		if err != nil {
			return out, nil, err
		}
		if s != nil {
			out.Word, out.Why, out.Broken = Bug, s.Why, c.broken(p.Judge, judges.ClassBug)
			return out, s, nil
		}
	}
	out.Word, out.Defects = Held, nil // there is no bug, or none that repeated
	if len(unjudged) > 0 {
		out.Word, out.Reason = Undecided, strings.Join(unjudged, "; ")
		return out, nil, nil
	}
	for i, g := range limits {
		if i == 0 {
			out.Word, out.Why, out.Broken = Limit, g.Why, c.broken(p.Judge, judges.ClassLimit)
		}
		if !slices.Contains(out.Excuses, g.Excuse) {
			out.Excuses = append(out.Excuses, g.Excuse)
		}
	}
	return out, nil, nil
}

// broken returns the number of runs that broke a judge, as a bug or as a limit.
func (c *campaign) broken(judge string, class judges.Class) (n int) {
	for _, r := range c.runs {
		if slices.ContainsFunc(r.Failures, func(f explore.Failed) bool { return f.Judge == judge && f.Class == class }) {
			n++
		}
	}
	return n
}

// failures returns the groups of failures of one judge, the smallest first.
func (c *campaign) failures(judge string) (bugs, limits []explore.Found) {
	for _, g := range c.tally.Groups {
		switch {
		case g.Judge != judge:
		case g.Class == judges.ClassBug:
			bugs = append(bugs, g)
		default:
			limits = append(limits, g)
		}
	}
	smallest := func(a, b explore.Found) int { return cmp.Compare(a.Size, b.Size) }
	slices.SortStableFunc(bugs, smallest)
	slices.SortStableFunc(limits, smallest)
	return bugs, limits
}

// shrink makes the smallest failure of a group small. It returns nil if the run does not
// fail again.
func (c *campaign) shrink(g explore.Found) (*explore.Shrunk, error) {
	key := fmt.Sprintf("%d %s", g.Least.Index, g.Folder(g.Origin))
	if s, done := c.small[key]; done {
		return s, nil
	}
	s, err := c.player.Shrink(explore.ShrinkTask{Run: g.Least, Failed: g.Failed, Budget: c.budget})
	var unrepeated *explore.UnrepeatedError
	switch {
	case errors.As(err, &unrepeated):
		c.unrepeated++
		c.small[key] = nil
		return nil, nil
	case err != nil:
		return nil, err
	}
	switch repeats, err := c.repeats(s.Recording); {
	case err != nil:
		return nil, err
	case !repeats:
		c.unrepeated++
		c.small[key] = nil
		return nil, nil
	}
	c.small[key] = &s
	return &s, nil
}

// replays is how often a recording is played again before it is kept. A lock with chance that cannot
// be seeded may give another run.
const replays = 8

// repeats reports whether a recording gives the same run each time.
func (c *campaign) repeats(recording string) (bool, error) {
	rec, sc, _, err := play.ReadRecordingOf("shrunk.lockstep", []byte(recording), func(string) (*subject.Subject, error) { return c.lock, nil })
	if err != nil {
		return false, err
	}
	for range replays {
		if v, _ := play.Replay(c.host, rec, sc, c.lock); v.Digest() != rec.Digest {
			return false, nil
		}
	}
	return true, nil
}
