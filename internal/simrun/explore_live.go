package simrun

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

	"lockstep/explore"
	"lockstep/internal/counted"
	"lockstep/linearizability/judges"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
)

// liveJobs is how many live runs go on at a time unless --jobs says otherwise. They mostly
// wait.
const liveJobs = 4

// exploreLive draws scenarios as explore does, and plays them on real servers until the time
// is over.
func (a *app) exploreLive(p explore.Plan, w planWords, given *pflag.FlagSet, c *explore.Campaign, limit time.Duration, asJSON bool) (int, error) {
	l, err := liveCampaign(&p, w, given, c, limit)
	if err != nil {
		return 0, usageError{fmt.Errorf("explore --live: %w", err)}
	}
	o, err := liveOptions("", "")
	if err != nil {
		return 0, err
	}
	if err := liveReady([]*subject.Subject{l}, o); err != nil {
		return 0, err
	}
	free, err := a.folder(c.Dir)
	if err != nil {
		return 0, usageError{fmt.Errorf("explore --live: %w", err)}
	}
	defer free()
	stop, release := a.interrupts(func() {})
	defer release()
	h := &liveHunt{a: a, plan: p, lock: l, dir: c.Dir, options: o, began: time.Now(), limit: limit, verdicts: map[play.Word]int{}, found: []liveFound{}}
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
	a.status("")
	if err := h.failed(); err != nil {
		return 0, liveError(context.Background(), err)
	}
	return h.conclude(asJSON)
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
		return nil, fmt.Errorf("%s does not belong to it", strings.Join(other, ", "))
	case p.Lock == "":
		return nil, errNoLock()
	case limit <= 0:
		return nil, errors.New("it plays in real time: say for how long, as in --time 1h")
	}
	if !given.Changed("jobs") {
		c.Jobs = liveJobs
	}
	if most := (bounds{1, liveJobsMost}); c.Jobs > liveJobsMost {
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
	a       *app
	plan    explore.Plan
	lock    *subject.Subject
	dir     string
	options LiveOptions
	began   time.Time
	limit   time.Duration

	mu         sync.Mutex
	index      int
	err        error
	runs       int
	impossible int // drawn, and not possible live
	verdicts   map[play.Word]int
	found      []liveFound
	programs   []string
}

// liveFound is a run with a finding.
type liveFound struct {
	Index     int       `json:"index"`
	Seed      uint64    `json:"seed"` // of the drawing
	Verdict   play.Word `json:"verdict"`
	Judges    []string  `json:"judges"`
	Why       string    `json:"why"` // of the first finding
	Scenario  string    `json:"scenario"`
	Recording string    `json:"recording"`
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
	seed, drawn := h.plan.Draw(index, cmp.Or(h.lock.Port, h.lock))
	name := fmt.Sprintf("run-%d", index)
	sc, err := scenarios.Parse(name+".yaml", []byte(drawn), subject.Find)
	if err != nil {
		h.fail(err)
		return
	}
	if Live.Check(sc, h.lock, false) != nil {
		h.mu.Lock()
		h.impossible++
		h.mu.Unlock()
		return
	}
	r, err := Live.Run(ctx, sc, h.lock, 1, h.options)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		h.fail(fmt.Errorf("%s: %w", name, err))
		return
	}
	if err := h.add(index, seed, r); err != nil {
		h.fail(err)
	}
}

// add counts a run, and writes one in which a promise was broken.
func (h *liveHunt) add(index int, seed uint64, r play.LiveRun) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.runs++
	h.verdicts[r.Word]++
	h.programs = r.Programs
	h.a.status("%d runs in %v of %v, %d bugs", h.runs, time.Since(h.began).Round(time.Second), h.limit, h.verdicts[play.VerdictBug])
	if r.Word != play.VerdictBug {
		return nil
	}
	f := liveFound{Index: index, Seed: seed, Verdict: r.Word}
	for _, x := range r.Findings {
		if x.Class != judges.ClassBug {
			continue
		}
		f.Why = cmp.Or(f.Why, x.Why)
		if !slices.Contains(f.Judges, x.Judge) {
			f.Judges = append(f.Judges, x.Judge)
		}
	}
	if h.dir != "" {
		f.Scenario = filepath.Join(h.dir, r.Scenario.File)
		f.Recording = strings.TrimSuffix(f.Scenario, ".yaml") + ".live"
		if err := renameio.WriteFile(f.Scenario, []byte(r.Scenario.Text), 0o666); err != nil {
			return err
		}
		if err := writeLiveFile(f.Recording, r); err != nil {
			return err
		}
	}
	h.found = append(h.found, f)
	return nil
}

// conclude prints what the campaign found.
func (h *liveHunt) conclude(asJSON bool) (int, error) {
	slices.SortFunc(h.found, func(x, y liveFound) int { return x.Index - y.Index })
	code := exitOK
	switch {
	case len(h.found) > 0:
		code = exitUnexpected
	case h.verdicts[play.VerdictUndecided] > 0:
		code = exitUndecided
	}
	if asJSON {
		enc := json.NewEncoder(h.a.out)
		enc.SetEscapeHTML(false)
		return code, enc.Encode(map[string]any{
			"lock": h.lock.Name, "runs": h.runs, "not_possible_live": h.impossible, "verdicts": h.verdicts, "programs": h.programs, "found": h.found,
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
	fmt.Fprint(h.a.out, wrap(summary, "", 100))
	for _, f := range h.found {
		fmt.Fprintf(h.a.out, "\nrun %d: %s\n", f.Index, strings.Join(f.Judges, ", "))
		fmt.Fprint(h.a.out, wrap(f.Why, "    ", 100))
		if f.Scenario != "" {
			fmt.Fprintf(h.a.out, "    look at it:            %s report %s\n    in the simulated world: %s run %s --lock %s\n", program(), f.Recording, program(), f.Scenario, cmp.Or(h.lock.Port, h.lock).Name)
		}
	}
	if len(h.found) > 0 && h.dir == "" {
		fmt.Fprintf(h.a.out, "\nThe runs were not kept; --out DIR keeps them.\n")
	}
	return code, nil
}
