package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/pflag"

	"lockstep/cli/frame"
	"lockstep/explore"
	"lockstep/internal/counted"
	"lockstep/internal/quantity"
	"lockstep/linearizability/judges"
	"lockstep/report"
	"lockstep/report/sentence"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
)

// exploreLive draws scenarios as explore does, and plays them on real servers until the time
// is over.
func exploreLive(a *frame.App, p explore.Plan, w planWords, given *pflag.FlagSet, c *explore.Campaign, limit time.Duration, asJSON bool) (int, error) {
	l, err := liveCampaign(&p, w, given, c, limit)
	if err != nil {
		return 0, frame.Usage(fmt.Errorf("explore --live: %w", frame.OnRealServer(err)))
	}
	o, err := LiveOptions(a, "", "")
	if err != nil {
		return 0, err
	}
	if err := LiveReady(a, []*subject.Subject{l}, o); err != nil {
		return 0, err
	}
	free, err := a.Folder(c.Dir)
	if err != nil {
		return 0, frame.Usage(fmt.Errorf("explore --live: %w", err))
	}
	defer free()
	stop, release := a.Interrupts(func() {})
	defer release()
	h := newLiveHunt(a, p, l, c.Dir, o, limit)
	runtime.GOMAXPROCS(runtime.NumCPU()) // nothing is simulated from here on
	// A run that is under way at the end is not judged.
	ctx, cancel := context.WithTimeout(stop, limit)
	defer cancel()
	var all sync.WaitGroup
	for range c.Jobs {
		all.Go(func() {
			for ctx.Err() == nil && h.failed() == nil {
				h.next(ctx)
			}
		})
	}
	all.Wait()
	a.Status("")
	code, err := h.conclude(stop.Err() != nil, asJSON)
	if failed := h.failed(); failed != nil {
		return 0, LiveError(context.Background(), failed)
	}
	return code, err
}

// liveCampaign checks the options of a live campaign and returns its lock.
func liveCampaign(p *explore.Plan, w planWords, given *pflag.FlagSet, c *explore.Campaign, limit time.Duration) (*subject.Subject, error) {
	var other []string
	given.Visit(func(f *pflag.Flag) {
		if !slices.Contains([]string{"live", "lock", "faults", "profile", "seed", "time", "jobs", "out", "json"}, f.Name) {
			other = append(other, "--"+f.Name)
		}
	})
	switch {
	case len(other) > 0:
		return nil, fmt.Errorf("it takes no %s", strings.Join(other, ", "))
	case p.Lock == "":
		return nil, frame.ErrNoLock()
	case limit <= 0:
		return nil, errors.New("it plays in real time; say for how long, as in --time 1h")
	}
	if !given.Changed("jobs") {
		c.Jobs = frame.LiveJobs
	}
	if most := quantity.LiveJobs; int64(c.Jobs) > most.Most {
		return nil, fmt.Errorf("--jobs %d: %v", c.Jobs, most)
	}
	l, err := subject.Find(p.Lock)
	if err != nil {
		return nil, err
	}
	p.Lock = l.Name
	return l, w.complete(p)
}

// liveHunt is a live campaign under way.
type liveHunt struct {
	a       *frame.App
	plan    explore.Plan
	lock    *subject.Subject
	dir     string
	options play.LiveOptions
	began   time.Time
	limit   time.Duration

	mu         sync.Mutex
	index      int
	err        error
	runs       int
	impossible int // the scenarios that were drawn and are not possible live
	verdicts   map[play.Word]int
	found      []liveFound // runs with a bug
	undecided  []liveFound
	broken     []liveFound // runs that could not be played to their end
	inARow     int         // the broken runs since the last run that was played
	programs   []string
}

func newLiveHunt(a *frame.App, p explore.Plan, l *subject.Subject, dir string, o play.LiveOptions, limit time.Duration) *liveHunt {
	return &liveHunt{
		a: a, plan: p, lock: l, dir: dir, options: o, began: time.Now(), limit: limit,
		verdicts: map[play.Word]int{}, found: []liveFound{}, undecided: []liveFound{}, broken: []liveFound{},
	}
}

// liveFound is a run that a person should look at.
type liveFound struct {
	Index     int       `json:"index"`
	Seed      uint64    `json:"seed"`              // of the drawing
	Verdict   play.Word `json:"verdict,omitempty"` // "": the run was not played to its end
	Judges    []string  `json:"judges,omitempty"`
	Why       string    `json:"why"` // of the first finding with that verdict, or of the run
	Scenario  string    `json:"scenario"`
	Recording string    `json:"recording,omitempty"`
}

func (h *liveHunt) failed() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.err
}

func (h *liveHunt) fail(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = cmp.Or(h.err, err)
}

// next draws the next scenario and plays it.
func (h *liveHunt) next(ctx context.Context) {
	h.mu.Lock()
	index := h.index
	h.index++
	h.mu.Unlock()
	seed, sc := h.plan.Draw(index, cmp.Or(h.lock.Port, h.lock))
	if h.a.Live.Check(sc, h.lock, play.LiveOptions{}) != nil {
		h.mu.Lock()
		h.impossible++
		h.mu.Unlock()
		return
	}
	r, err := h.a.Live.Run(ctx, sc, h.lock, 1, h.options)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		err = h.brokeOff(liveFound{Index: index, Seed: seed, Why: err.Error()}, sc, err)
	} else {
		err = h.add(index, seed, r)
	}
	if err != nil {
		h.fail(err)
	}
}

// brokeOff counts and keeps a run that ended in an error. It returns an error if no run can be
// played any more.
func (h *liveHunt) brokeOff(f liveFound, sc *scenarios.Scenario, why error) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.inARow++; h.inARow == BrokenMost {
		return fmt.Errorf("%s in a row could not be played, the last because of this: %w", counted.Of(BrokenMost, "run"), why)
	}
	h.a.Say("%s could not be played: %v", strings.TrimSuffix(sc.File, ".yaml"), why)
	if err := h.keep(&f, sc); err != nil {
		return err
	}
	h.broken = append(h.broken, f)
	return nil
}

// keep writes the scenario of a run, if there is a folder.
func (h *liveHunt) keep(f *liveFound, sc *scenarios.Scenario) error {
	if h.dir == "" {
		return nil
	}
	f.Scenario = filepath.Join(h.dir, sc.File)
	return renameio.WriteFile(f.Scenario, []byte(sc.Text), 0o666)
}

// add counts a run, and keeps it if a promise was broken or may have been.
func (h *liveHunt) add(index int, seed uint64, r play.LiveRun) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.runs++
	h.inARow = 0
	h.verdicts[r.Word]++
	h.programs = r.Programs
	h.a.Status("%d runs in %v of %v, %d bugs", h.runs, time.Since(h.began).Round(time.Second), h.limit, h.verdicts[play.VerdictBug])
	var list *[]liveFound
	matters := func(f judges.Finding) bool { return f.Class == judges.ClassBug }
	switch r.Word {
	case play.VerdictBug:
		list = &h.found
	case play.VerdictUndecided:
		list, matters = &h.undecided, func(f judges.Finding) bool { return f.Verdict == judges.Undecided }
	default:
		return nil
	}
	f := liveFound{Index: index, Seed: seed, Verdict: r.Word}
	for _, x := range r.Findings {
		if !matters(x) {
			continue
		}
		f.Why = cmp.Or(f.Why, sentence.Finding(x))
		if !slices.Contains(f.Judges, x.Judge) {
			f.Judges = append(f.Judges, x.Judge)
		}
	}
	f.Why = cmp.Or(f.Why, sentence.Verdict(r.Verdict))
	if err := h.keep(&f, r.Scenario); err != nil {
		return err
	}
	if h.dir != "" {
		f.Recording = strings.TrimSuffix(f.Scenario, ".yaml") + ".live"
		if err := writeLiveFile(f.Recording, r); err != nil {
			return err
		}
	}
	*list = append(*list, f)
	return nil
}

// conclude prints what the campaign found. interrupted reports that it ended before its time.
func (h *liveHunt) conclude(interrupted, asJSON bool) (int, error) {
	for _, list := range [][]liveFound{h.found, h.undecided, h.broken} {
		slices.SortFunc(list, func(x, y liveFound) int { return x.Index - y.Index })
	}
	code := frame.ExitOK
	switch {
	case len(h.found) > 0:
		code = frame.ExitUnexpected
	case h.verdicts[play.VerdictUndecided] > 0, len(h.broken) > 0, interrupted:
		code = frame.ExitUndecided
	}
	if asJSON {
		enc := json.NewEncoder(h.a.Out)
		enc.SetEscapeHTML(false)
		return code, enc.Encode(map[string]any{
			"lock": h.lock.Name, "runs": h.runs, "not_possible_live": h.impossible, "verdicts": h.verdicts, "programs": h.programs,
			"found": h.found, "undecided": h.undecided, "not_played": h.broken,
		})
	}
	var words []string
	for _, word := range []play.Word{play.VerdictHeld, play.VerdictLimit, play.VerdictBug, play.VerdictUndecided} {
		if n := h.verdicts[word]; n > 0 {
			words = append(words, fmt.Sprintf("%s in %d", word, n))
		}
	}
	summary := fmt.Sprintf("%s of %s in %v", counted.Of(h.runs, "run"), h.lock.Name, time.Since(h.began).Round(time.Second))
	if h.runs > 0 {
		summary += fmt.Sprintf(" by %s: %s", strings.Join(h.programs, ", "), strings.Join(words, ", "))
	}
	summary += "."
	if h.impossible > 0 {
		summary += fmt.Sprintf(" %d more were drawn that are not possible live.", h.impossible)
	}
	if n := len(h.broken); n > 0 {
		summary += fmt.Sprintf(" %s could not be played to the end, the first, run %d, because of this: %s.", counted.Of(n, "run"), h.broken[0].Index, h.broken[0].Why)
	}
	fmt.Fprint(h.a.Out, report.Wrap(summary, "", 100))
	for _, f := range h.found {
		fmt.Fprintf(h.a.Out, "\nrun %d: %s\n", f.Index, strings.Join(f.Judges, ", "))
		fmt.Fprint(h.a.Out, report.Wrap(f.Why, "    ", 100))
		if f.Scenario != "" {
			fmt.Fprintf(h.a.Out, "    look at it:            %s\n    in the simulated world: %s\n", frame.Command("report", f.Recording), frame.Command("run", f.Scenario, "--lock", cmp.Or(h.lock.Port, h.lock).Name))
		}
	}
	if h.dir != "" {
		for _, f := range h.undecided {
			fmt.Fprint(h.a.Out, report.Wrap(fmt.Sprintf("run %d is undecided: %s; look at it: %s", f.Index, f.Why, frame.Command("report", f.Recording)), "", 100))
		}
	}
	if len(h.found) > 0 && h.dir == "" {
		fmt.Fprintf(h.a.Out, "\nThe runs were not kept; --out DIR keeps them.\n")
	}
	return code, nil
}
