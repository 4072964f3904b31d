package explain

import (
	"fmt"
	"slices"
	"strings"

	"lockstep/explore/coverage"
	"lockstep/explore/draw"
	"lockstep/explore/failure"
	"lockstep/internal/counted"
	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/model/trace"
	"lockstep/report"
	"lockstep/report/sentence"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

const (
	// neighbours is the number of other seeds with which the scenario of a recording is played.
	neighbours = 20
	// drawnLike is the number of drawn schedules that share the cause of a failure.
	drawnLike = 200
)

// A Mend says whether a lock keeps a promise now that it broke in a recording. Users rely on the names and the meaning of
// the fields in JSON.
type Mend struct {
	Format    int    `json:"explain"`
	Recording string `json:"recording"`
	Lock      string `json:"lock"`
	Judge     string `json:"judge"`
	Holds     bool   `json:"holds"` // no run of any part broke the promise of the judge
	// Parts are the recording, its neighbours, and the drawn schedules.
	Parts []Part `json:"parts"`
	// Other has the first bug of each other judge, which the lock may have had before.
	Other []Broken `json:"other"`
}

// A Part is a kind of schedule that was played.
type Part struct {
	Name      string   `json:"part"`
	Runs      int      `json:"runs"`
	Broken    []Broken `json:"broken"`    // the runs that broke the promise
	Undecided int      `json:"undecided"` // the runs that could not be judged
}

// Broken is a run that broke a promise.
type Broken struct {
	Judge string `json:"judge"`
	Part  string `json:"part"`
	Run   int    `json:"run"` // within its part, from 1
	Why   string `json:"why"`
}

// The parts of a Mend.
const (
	partRecording  = "recording"
	partNeighbours = "neighbours"
	partDrawn      = "drawn"
)

// mending plays schedules for a Mend.
type mending struct {
	host  *sim.Host
	rec   *play.Recording
	sc    *scenarios.Scenario
	lock  *subject.Subject
	judge string
	// told is called before each run; it may be nil.
	told func(played, of int)
	mend Mend
}

// Mended plays a recording on the lock as it is now, the scenario of the recording with other seeds, and drawn schedules
// with the same kinds of faults at the same moments. judge is the judge whose promise a mend is to keep; "": the one that the
// recording names first, or the one that it breaks now.
func Mended(h *sim.Host, rec *play.Recording, sc *scenarios.Scenario, l *subject.Subject, file, judge string, told func(played, of int)) Mend {
	m := &mending{host: h, rec: rec, sc: sc, lock: l, judge: judge, told: told}
	m.mend = Mend{Format: Format, Recording: file, Lock: l.Name, Parts: []Part{{Name: partRecording}, {Name: partNeighbours}, {Name: partDrawn}}, Other: []Broken{}}
	m.reportProgress()
	v, _ := play.Replay(h, rec, sc, l)
	if m.judge == "" {
		m.judge = judgeOf(sc, l, v)
	}
	m.mend.Judge = m.judge
	m.count(0, v)
	for seed := uint64(1); m.mend.Parts[1].Runs < neighbours; seed++ {
		if seed != rec.Seed {
			m.play(1, sc, seed)
		}
	}
	cells := cellsOf(v)
	for n := range drawnLike {
		m.drawn(n, cells)
	}
	m.mend.Holds = true
	for i := range m.mend.Parts {
		p := &m.mend.Parts[i]
		m.mend.Holds = m.mend.Holds && len(p.Broken) == 0 && (i > 0 || p.Undecided == 0)
		if p.Broken == nil {
			p.Broken = []Broken{}
		}
	}
	return m.mend
}

// judgeOf returns the judge of the failure in a recording: the one that its scenario expects of the lock, or the first
// that the run of the recording breaks; "": the lock keeps every promise in it now, and nobody says which it broke.
func judgeOf(sc *scenarios.Scenario, l *subject.Subject, v play.Verdict) string {
	if expected := sc.Expect[l.Expected()].Judges; len(expected) > 0 {
		return expected[0]
	}
	f, _ := failure.First(v, "")
	return f.Judge
}

func (m *mending) reportProgress() {
	played := 0
	for _, p := range m.mend.Parts {
		played += p.Runs
	}
	if m.told != nil {
		m.told(played, 1+neighbours+drawnLike)
	}
}

// play plays a scenario with a seed, as a run of a part.
func (m *mending) play(part int, sc *scenarios.Scenario, seed uint64) {
	m.reportProgress()
	m.count(part, play.Judge(m.host, sc, m.lock, seed, play.Play(m.host, sc, m.lock, sim.NewSeeded(seed))))
}

// count counts a run of a part.
func (m *mending) count(part int, v play.Verdict) {
	p := &m.mend.Parts[part]
	p.Runs++
	broken := func(f judges.Finding) Broken { return Broken{f.Judge, p.Name, p.Runs, sentence.Finding(f)} }
	mine := false
	for _, f := range v.Findings {
		switch {
		case f.Verdict != judges.Broken:
		case f.Judge == m.judge && (f.Class == judges.ClassBug || m.limit()):
			if !mine {
				p.Broken = append(p.Broken, broken(f))
			}
			mine = true
		case f.Class == judges.ClassBug && f.Judge != m.judge && !slices.ContainsFunc(m.mend.Other, func(b Broken) bool { return b.Judge == f.Judge }):
			m.mend.Other = append(m.mend.Other, broken(f))
		}
	}
	if !mine && v.Word == play.VerdictUndecided {
		p.Undecided++
	}
}

// limit reports whether the recording shows a limit, which a mend is to overcome, too.
func (m *mending) limit() bool { return m.rec.Verdict == play.VerdictLimit }

// cellsOf returns the cells that the faults of a run met.
func cellsOf(v play.Verdict) (cells []coverage.Cell) {
	for _, code := range coverage.Cells(v.Played.Trace, coverage.Openings(v.Played.Trace)) {
		if c, ok := coverage.CellOf(code); ok && c.Fault != coverage.None {
			cells = append(cells, c)
		}
	}
	return cells
}

// drawn draws and plays a schedule: a workload, and a fault of a kind of the recording at a moment of the
// recording. Every second workload is that of the recording.
func (m *mending) drawn(n int, cells []coverage.Cell) {
	seed := sim.NewSeeded(m.rec.Seed).Choose(fmt.Sprintf("explain/drawn/%d", n), 1<<48)
	c := sim.NewSeeded(seed)
	classes := m.classes()
	base := draw.Scenario{Scenario: m.sc.Clone()}
	if n%2 == 0 || len(cells) == 0 {
		base = draw.New(c, m.lock, draw.Simple, nil)
	}
	base.Faults = nil
	base.SetFile(fmt.Sprintf("drawn-%d.yaml", n+1))
	if len(cells) > 0 {
		openings := coverage.Openings(trace.New(play.Play(m.host, base.Scenario, m.lock, sim.NewSeeded(seed)).Record))
		if s, ok := m.aim(c, base, classes, openings, cells); ok {
			base = s
		}
	} else if len(classes) > 0 {
		base = draw.New(sim.NewSeeded(seed), m.lock, draw.Simple, classes)
	}
	base.SetFile(fmt.Sprintf("drawn-%d.yaml", n+1))
	m.play(2, base.Scenario, seed)
}

// aim adds a fault as one of the cells has it to a drawn scenario, at an opening as alike as there is one. It reports
// false if no opening fits.
func (m *mending) aim(c sim.Chooser, base draw.Scenario, classes []draw.Class, openings []coverage.Opening, cells []coverage.Cell) (draw.Scenario, bool) {
	cell := cells[c.Choose("explain/cell", uint64(len(cells)))]
	for _, alike := range []func(coverage.Opening) bool{
		func(o coverage.Opening) bool { return o.Cell == cell.Situation() },
		func(o coverage.Opening) bool { return o.Op == cell.Op && o.Moment == cell.Moment },
		func(o coverage.Opening) bool { return o.Moment == cell.Moment },
	} {
		fit := slices.DeleteFunc(slices.Clone(openings), func(o coverage.Opening) bool { return !alike(o) || !draw.CanAim(o, cell.Fault) })
		if len(fit) > 0 {
			return draw.Aim(c, base, m.lock, draw.Simple, classes, fit[c.Choose("explain/opening", uint64(len(fit)))], cell.Fault)
		}
	}
	return draw.Scenario{}, false
}

// classes returns the classes of the faults of the recording that the lock can meet.
func (m *mending) classes() (classes []draw.Class) {
	add := func(c draw.Class) {
		if draw.Meets(m.lock, c) && !slices.Contains(classes, c) {
			classes = append(classes, c)
		}
	}
	for _, f := range m.sc.Faults {
		for _, c := range draw.ClassesOf(f) {
			add(c)
		}
	}
	for _, s := range m.sc.All() {
		if s.Kind == scenarios.StepInterrupt {
			add(draw.ClassInterrupt)
		}
	}
	if slices.ContainsFunc(m.sc.Processes, func(p scenarios.Process) bool { return p.WallOffset != 0 || p.WallDriftPPM != 0 }) {
		add(draw.ClassClock)
	}
	return classes
}

// Text returns the result for people.
func (m Mend) Text() string {
	var b strings.Builder
	word := "keeps"
	if !m.Holds {
		word = "does not keep"
	}
	fmt.Fprintf(&b, "%s %s the promise of %s: %s\n", m.Lock, word, m.Judge, sentence.Promise(m.Judge))
	for _, p := range m.Parts {
		fmt.Fprintf(&b, "%-11s %s, %d broke it", p.Name, counted.Of(p.Runs, "run"), len(p.Broken))
		if p.Undecided > 0 {
			fmt.Fprintf(&b, ", %d undecided", p.Undecided)
		}
		b.WriteString("\n")
		if len(p.Broken) > 0 {
			b.WriteString(report.Wrap(fmt.Sprintf("run %d: %s", p.Broken[0].Run, p.Broken[0].Why), "            ", textWidth))
		}
	}
	for _, o := range m.Other {
		b.WriteString(report.Wrap(fmt.Sprintf("%s is broken, too, and may have been before (%s, run %d): %s", o.Judge, o.Part, o.Run, o.Why), "", textWidth))
	}
	return b.String()
}

// Broke reports whether a run broke the promise. If none did and it does not hold, the recording cannot be judged now.
func (m Mend) Broke() bool {
	return slices.ContainsFunc(m.Parts, func(p Part) bool { return len(p.Broken) > 0 })
}

// Promised reports whether anybody knows which promise the recording broke.
func (m Mend) Promised() bool { return slices.Contains(model.Judges, m.Judge) }
