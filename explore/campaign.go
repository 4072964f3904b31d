package explore

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/google/renameio/v2"

	"lockstep/scenarios/subject"
)

// Campaign plays a plan, or one shard of it: the families whose number modulo Of is Shard.
// Dir keeps every run as it ends, so a campaign that is killed at any moment can go on.
type Campaign struct {
	Plan  Plan
	Shard int // from 0
	Of    int
	Jobs  int
	Dir   string
	// Player returns a player of runs: another process, or this one in a test.
	Player func() (Player, error)
	// Family plays a family in the place of players, see Families.Play. Jobs families are played
	// at a time. nil: players play.
	Family func(number int, before []Run, each func(Run) error) error
	// Progress is called at the beginning and after each run, unless it is nil.
	Progress func(Progress)
	// Found is called for the first failure of each group, with the run and the file of its
	// recording; nil: nobody asks. It is not called for a group that an earlier start found.
	Found func(Failed, Run, string)
	// Stop ends the campaign before its time. The players must end with it.
	Stop context.Context
}

// Player plays families, and makes failures small. A player that returned an error is not
// used again.
type Player interface {
	// Family plays the runs of a family that follow before, in order, and passes the kept
	// part of each to each. It returns the first error of each.
	Family(number int, before []Run, each func(Run) error) error
	// Shrink returns an UnrepeatedError if the run does not fail again.
	Shrink(ShrinkTask) (Shrunk, error)
	Close()
}

// Progress is how far a campaign is.
type Progress struct {
	Runs, Of int
	Played   int // of Runs, those that this start has played
	Steps    int64
	States   int // new ones
	// CellsMet is the number of cells that faults met, and CellsOf of those that they met or
	// could have met. A campaign without faults has none.
	CellsMet, CellsOf int
	Groups            int
	Died              int
}

// playerRuns is the number of runs after which another process plays the next family.
// Runs that leave goroutines behind cost a process memory.
const playerRuns = 2000

// Run plays the missing runs of the campaign. It returns all runs in order, and whether all
// are played. If they are, RunsFile has them in this order, too.
func (c *Campaign) Run() (runs []Run, complete bool, err error) {
	before, whole, err := c.open()
	if err != nil {
		return nil, false, err
	}
	log, err := os.OpenFile(filepath.Join(c.Dir, RunsFile), os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	// A run whose line was cut off is played again.
	if err := log.Truncate(whole); err != nil {
		return nil, false, err
	}

	w := &writer{
		out: log, c: c, runs: before, states: map[uint64]bool{}, ending: newEnding(c.Plan), progress: Progress{Of: c.size()},
		found: &foundRecordings{dir: c.Dir, best: map[string]foundRun{}},
	}
	byFamily := map[int][]Run{}
	begun := 0
	for _, r := range sorted(before) {
		begun = max(begun, r.Index/FamilyRuns)
		byFamily[r.Index/FamilyRuns] = append(byFamily[r.Index/FamilyRuns], r)
		w.count(r)
		w.found.count(r)
	}
	w.progress.Groups = len(w.found.best)
	if c.Progress != nil {
		c.Progress(w.progress)
	}
	if !c.reached(before) {
		families := make(chan int)
		go func() {
			defer close(families)
			for f := c.Shard; f < c.Plan.Families() && (f <= begun || !w.isOver()); f += c.Of {
				select {
				case families <- f:
				case <-c.Stop.Done():
					return
				}
			}
		}()
		problems := make([]error, c.Jobs)
		var all sync.WaitGroup
		for job := range c.Jobs {
			all.Go(func() { problems[job] = c.work(w, families, byFamily) })
		}
		all.Wait()
		if err := errors.Join(problems...); err != nil {
			return nil, false, err
		}
	}
	if c.Stop.Err() != nil && !c.reached(w.runs) {
		return sorted(w.runs), false, nil
	}
	if runs, err = c.settle(w.runs); err != nil {
		return nil, false, err
	}
	return runs, true, nil
}

// reached reports whether runs are all runs of the campaign, or end it before.
func (c *Campaign) reached(runs []Run) bool {
	runs = sorted(runs)
	if o := Sum(c.Plan, runs); c.Of == 1 && o.Ended != "" {
		return true
	}
	return len(runs) == c.size()
}

// settle returns the runs that were written in order, without the runs after the one that ended
// the campaign. It writes RunsFile so, too, which is then the same whoever played
// which family.
func (c *Campaign) settle(written []Run) ([]Run, error) {
	runs := sorted(written)
	if c.Of == 1 {
		runs = runs[:Sum(c.Plan, runs).Runs]
	}
	if slices.EqualFunc(runs, written, func(a, b Run) bool { return a.Index == b.Index }) {
		return runs, nil
	}
	out, err := renameio.NewPendingFile(filepath.Join(c.Dir, RunsFile), renameio.WithPermissions(0o644))
	if err != nil {
		return nil, err
	}
	defer func() { _ = out.Cleanup() }()
	lines := bufio.NewWriterSize(out, 1<<20)
	enc := json.NewEncoder(lines)
	for _, r := range runs {
		if err := enc.Encode(r); err != nil {
			return nil, err
		}
	}
	if err := lines.Flush(); err != nil {
		return nil, err
	}
	return runs, out.CloseAtomicallyReplace()
}

// work plays families, one after another, with a player of its own.
func (c *Campaign) work(w *writer, families <-chan int, before map[int][]Run) (err error) {
	play := c.Family
	if play == nil {
		own := &Families{Plan: c.Plan, Player: c.Player, Stop: c.Stop, Again: 1}
		defer own.Close()
		play = own.Play
	}
	defer func() {
		if err != nil { // let the others end
			for range families {
			}
		}
	}()
	for number := range families {
		err := play(number, before[number], func(r Run) error {
			if err := w.write(r); err != nil {
				return err
			}
			return c.Stop.Err()
		})
		switch {
		case err != nil && errors.Is(err, c.Stop.Err()):
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

// Families plays families of a plan with players of its own, one at a time. A player whose
// process ended is replaced.
type Families struct {
	Plan   Plan
	Player func() (Player, error)
	// Stop ends the play. The players must end with it.
	Stop context.Context
	// Again is the number of times that a run which took its process with it is played again
	// before it counts as died.
	Again int

	player Player
	played int // runs of player
}

// Close ends the player.
func (f *Families) Close() {
	if f.player != nil {
		f.player.Close()
		f.player = nil
	}
	f.played = 0
}

// Play plays the runs of a family that follow before, in order, and passes each to each, also a
// run that took its process with it. It returns the error of Stop when Stop has ended, the first
// error of each, and a BadRunError.
func (f *Families) Play(number int, before []Run, each func(Run) error) error {
	runs := before
	from, to := f.Plan.Family(number)
	died := 0 // processes that the next run took with it
	for from+len(runs) < to {
		if err := f.Stop.Err(); err != nil {
			return err
		}
		if f.player == nil {
			var err error
			if f.player, err = f.Player(); err != nil {
				return err
			}
		}
		var problem error // not one of the player
		err := f.player.Family(number, runs, func(r Run) error {
			kept := r
			kept.Recording = ""
			runs = append(runs, kept)
			f.played++
			died = 0
			problem = each(r)
			return problem
		})
		if err != nil || f.played >= playerRuns {
			f.Close()
		}
		var bad *BadRunError
		switch {
		case err == nil:
		case problem != nil:
			return problem
		case f.Stop.Err() != nil:
			return f.Stop.Err() // the process was interrupted too
		case errors.As(err, &bad):
			return err
		case died < f.Again:
			died++
		default:
			index := from + len(runs)
			stories := 0
			if l, err := subject.Find(f.Plan.Lock); err == nil {
				stories, _ = f.Plan.stories(f.Plan.tellings(l), number)
			}
			t := f.Plan.next(index, runs, stories)
			r := Run{Index: index, Seed: t.seed, From: t.from, Died: true, Why: err.Error()}
			runs = append(runs, r)
			died = 0
			if err := each(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// BadRunError says that a run could not be played at all, which is a defect of Lockstep.
type BadRunError struct{ Msg string }

func (e *BadRunError) Error() string { return e.Msg }

// size returns the number of runs of the shard.
func (c *Campaign) size() (n int) {
	for f := c.Shard; f < c.Plan.Families(); f += c.Of {
		from, to := c.Plan.Family(f)
		n += to - from
	}
	return n
}

// writer writes the runs of all jobs.
type writer struct {
	mu       sync.Mutex
	out      io.Writer
	c        *Campaign
	runs     []Run
	found    *foundRecordings
	states   map[uint64]bool
	cells    cellSet // of the runs in the order in which they end
	ending   *ending
	progress Progress
}

func (w *writer) write(r Run) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	// The recording comes before the line: a run with a line is not played again.
	first, write, remove := w.found.count(r)
	if r.Recording != "" {
		if err := w.found.keep(r.Recording, write, remove); err != nil {
			return err
		}
	}
	if _, err := w.out.Write(append(line, '\n')); err != nil {
		return err
	}
	r.Recording = ""
	w.runs = append(w.runs, r)
	w.progress.Played++
	w.count(r)
	w.progress.Groups = len(w.found.best)
	if w.c.Progress != nil {
		w.c.Progress(w.progress)
	}
	if w.c.Found != nil {
		for _, f := range first {
			w.c.Found(f, r, filepath.Join(w.c.Dir, filepath.FromSlash(foundFile(f, r.Index))))
		}
	}
	return nil
}

func (w *writer) count(r Run) {
	w.ending.read(r)
	w.progress.Runs++
	w.progress.Steps += r.Steps
	for _, s := range r.States {
		w.states[s] = true
	}
	w.progress.States = len(w.states)
	w.cells.add(r)
	w.progress.CellsMet, w.progress.CellsOf = w.cells.met, len(w.cells.all)
	if r.Died {
		w.progress.Died++
	}
}

// isOver reports whether the runs end the campaign. Families begin in order and are played to
// their end, so the run that ends it is among them. A shard knows nothing of the other shards
// and plays all of its own families.
func (w *writer) isOver() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.c.Of == 1 && w.ending.isOver()
}

// MissingShards returns the shards of a campaign of which no folder is given, such as "2/4".
func MissingShards(dirs []string) ([]string, error) {
	var missing []string
	var given []int
	of := 1
	for _, dir := range dirs {
		s, err := readPlan(dir)
		if err != nil {
			return nil, err
		}
		given, of = append(given, s.Shard), s.Of
	}
	for shard := range of {
		if !slices.Contains(given, shard) {
			missing = append(missing, fmt.Sprintf("%d/%d", shard+1, of))
		}
	}
	return missing, nil
}

// Merge reads the folders of shards of one campaign.
func Merge(dirs []string) (Plan, []Run, error) {
	var plan Plan
	var all []Run
	seen := map[int]int{} // the place of the folder of a run in dirs
	for i, dir := range dirs {
		s, err := readPlan(dir)
		if err != nil {
			return plan, nil, err
		}
		here := s.Plan.Versions()
		here.World = s.World // whoever asks looks at the world
		if d := s.versions().Difference(here); d != "" {
			return plan, nil, &OtherCampaignError{dir, d}
		}
		if i == 0 {
			plan = s.Plan
		} else if d := plan.difference(s.Plan); d != "" {
			return plan, nil, &OtherCampaignError{dir, d}
		}
		runs, _, err := readRuns(dir)
		if err != nil {
			return plan, nil, err
		}
		for _, r := range runs {
			if other, ok := seen[r.Index]; ok && other != i {
				return plan, nil, fmt.Errorf("run %d is in %s and in %s: two folders of one shard", r.Index, dirs[other], dir)
			}
			seen[r.Index] = i
		}
		all = append(all, runs...)
	}
	return plan, all, nil
}
