package explore

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/renameio/v2"

	"lockstep/explore/shrink"
	"lockstep/scenarios/play"
)

// ShrunkFile is a file in the folder of a campaign. It has a line for each failure that was made
// small, so that the same command does not make it small again.
const ShrunkFile = "shrunk.jsonl"

// FoundDir is the folder in a campaign's folder that has the recording of the smallest run of each
// group, as it was found. It is removed when all runs are played and all failures made small.
const FoundDir = "found"

// foundFile returns the file of the recording of a run as it was found, relative to the
// folder of the campaign, with forward slashes.
func foundFile(f Failed, index int) string {
	return fmt.Sprintf("%s/%s/run-%d.lockstep", FoundDir, f.Folder(f.Origin), index)
}

// Shrinking makes the failures of a campaign small, each in a player of its own. When the time for
// a failure is over, the failure stays as small as it is by then.
type Shrinking struct {
	Plan    Plan
	Budget  int    // runs for each failure
	Program string // ShrinkTask.Program
	Jobs    int
	// Player returns a player. Its work ends with an error once Stop is done.
	Player func() (Player, error)
	// Stop ends everything at once.
	Stop context.Context
	// Until is the end of the work on all failures, which share the time. If it is zero, the work
	// has no end.
	Until time.Time
	// Dir is the folder of ShrunkFile, which keeps the failures that are small. If it is "",
	// nothing is kept.
	Dir string
	// From are the folders of the campaign, or of its shards. Their FoundDir has the
	// recordings of failures as they were found.
	From []string
	// Progress, if not nil, is called when the number of failures that are done or begun changes.
	Progress func(ShrinkProgress)
	// unkept is the first error of reading or writing ShrunkFile.
	unkept error
	// Died, if not nil, is called for a failure that stays as it was found because its players ended.
	Died func(ShrinkTask, error)
}

// shrinkPlayers is the number of players that try to make a failure small. If each of them ends before it has
// done so, the failure stays as it was found.
const shrinkPlayers = 2

// ShrinkProgress is how far a Shrinking is.
type ShrinkProgress struct {
	Done  int // failures that are small, or whose time is over
	Begun int // failures that are small or are worked at
	Of    int
}

// keptShrunk is a line of ShrunkFile. The first line of the file is a shrunkHead.
type keptShrunk struct {
	Group   string `json:"of"` // the key of the group before it was made small
	Budget  int    `json:"budget"`
	Program string `json:"program"`
	Shrunk
}

// name is a different string for each failure of a campaign.
func (k keptShrunk) name() string { return smallName(k.Group, k.Run) }

func smallName(group string, run int) string { return fmt.Sprintf("%s of run %d", group, run) }

// shrunkHead says to which campaign, and to which versions of the program, a ShrunkFile
// belongs. The number of runs and the end of a full campaign do not matter.
type shrunkHead struct {
	Plan     Plan     `json:"plan"`
	Versions Versions `json:"versions"`
}

func (s *Shrinking) head() shrunkHead {
	h := shrunkHead{s.Plan, s.Plan.Versions()}
	h.Plan.Runs, h.Plan.Settled = 0, 0
	return h
}

// Conclude adds up the runs of the plan and makes the smallest failure of each group small. A run
// that does not fail again counts as nondeterministic, and another run of the group takes its
// place. If everything was made small, ShrunkFile has the failures in order of their groups at the
// end, and nothing else. The results are whole even if ShrunkFile could not be
// read or written.
func (s *Shrinking) Conclude(runs []Run) (Tally, []Shrunk, error) {
	kept, err := s.kept()
	s.unkept = err
	o, small, err := conclude(s.Plan, runs, s.Budget, func(tasks []ShrinkTask) ([]Shrunk, []error) {
		if len(s.From) > 0 {
			for _, t := range tasks {
				if _, err := t.Run.scenario(); err != nil {
					return nil, []error{&OtherCampaignError{strings.Join(s.From, ", "), fmt.Sprintf("%s: %v", RunsFile, err)}}
				}
			}
		}
		return s.all(tasks, kept)
	})
	if err == nil {
		err = s.unkept
	}
	if err != nil || s.Dir == "" || slices.ContainsFunc(small, func(s Shrunk) bool { return s.Unfinished }) {
		return o, small, err
	}
	var b bytes.Buffer
	for i, g := range o.Groups {
		if err := writeLine(&b, keptShrunk{g.key(), s.Budget, s.Program, small[i]}); err != nil {
			return o, small, err
		}
	}
	return o, small, s.rewrite(b.Bytes())
}

// kept reads the failures that an earlier start made small, by name. It begins the file anew
// if the file belongs to another campaign or program, and cuts off a line that is not whole.
func (s *Shrinking) kept() (map[string]keptShrunk, error) {
	all := map[string]keptShrunk{}
	if s.Dir == "" {
		return all, nil
	}
	text, err := os.ReadFile(filepath.Join(s.Dir, ShrunkFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	var head bytes.Buffer
	if err := writeLine(&head, s.head()); err != nil {
		return nil, err
	}
	if !bytes.Equal(append(first, '\n'), head.Bytes()) {
		return all, s.rewrite(nil)
	}
	var whole []byte
	lines := bufio.NewScanner(bytes.NewReader(rest))
	lines.Buffer(nil, len(rest)+1)
	for lines.Scan() {
		var k keptShrunk
		if json.Unmarshal(lines.Bytes(), &k) != nil {
			break
		}
		whole = append(append(whole, lines.Bytes()...), '\n')
		if k.Budget == s.Budget && k.Program == s.Program {
			all[k.name()] = k
		}
	}
	if err := lines.Err(); err != nil || bytes.Equal(whole, rest) {
		return all, err
	}
	return all, s.rewrite(whole)
}

// rewrite writes ShrunkFile with the given lines.
func (s *Shrinking) rewrite(lines []byte) error {
	var b bytes.Buffer
	if err := writeLine(&b, s.head()); err != nil {
		return err
	}
	b.Write(lines)
	return renameio.WriteFile(filepath.Join(s.Dir, ShrunkFile), b.Bytes(), 0o644)
}

// keep adds a failure to ShrunkFile.
func (s *Shrinking) keep(k keptShrunk) (err error) {
	if s.Dir == "" {
		return nil
	}
	var b bytes.Buffer
	if err := writeLine(&b, k); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(s.Dir, ShrunkFile), os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = f.Write(b.Bytes())
	return err
}

func writeLine(b *bytes.Buffer, x any) error {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	return enc.Encode(x)
}

// all makes the failures of the tasks small. It returns the result or the error of each.
func (s *Shrinking) all(tasks []ShrinkTask, kept map[string]keptShrunk) ([]Shrunk, []error) {
	small := make([]Shrunk, len(tasks))
	problems := make([]error, len(tasks))
	var left []int
	for i, t := range tasks {
		if k, ok := kept[smallName(t.Failed.key(), t.Run.Index)]; ok {
			small[i] = k.Shrunk
			continue
		}
		left = append(left, i)
	}
	p := ShrinkProgress{Done: len(tasks) - len(left), Of: len(tasks)}
	p.Begun = p.Done
	var mu sync.Mutex // guards p, and the file
	told := func(change func()) {
		mu.Lock()
		defer mu.Unlock()
		if change(); s.Progress != nil {
			s.Progress(p)
		}
	}
	had := make([]time.Duration, len(tasks)) // the time that a failure had
	for len(left) > 0 {
		turn := make(chan int)
		var workers sync.WaitGroup
		for range min(s.Jobs, len(left)) {
			workers.Go(func() {
				for n := range turn {
					i := left[n]
					t := tasks[i]
					if !s.Until.IsZero() {
						had[i] = s.share(len(left) - n)
						t.Until = time.Now().Add(had[i])
					}
					told(func() { p.Begun++ })
					small[i], problems[i] = s.shrinkOne(t)
					told(func() {
						p.Done++
						if problems[i] == nil && !small[i].Unfinished && s.unkept == nil {
							s.unkept = s.keep(keptShrunk{t.Failed.key(), s.Budget, s.Program, small[i]})
						}
					})
				}
			})
		}
		for n := range left {
			turn <- n
		}
		close(turn)
		workers.Wait()
		left = slices.DeleteFunc(left, func(i int) bool { return problems[i] != nil || !small[i].Unfinished })
		left = left[:s.worthRetrying(left, had)]
		p.Done, p.Begun = p.Done-len(left), p.Begun-len(left)
	}
	return small, problems
}

// worthRetrying returns how many of the unfinished failures are worth another try, since failures that were done early
// left their time. A try begins anew, so that it needs much more time than the failure had.
func (s *Shrinking) worthRetrying(unfinished []int, had []time.Duration) int {
	if s.Stop.Err() != nil {
		return 0
	}
	most := time.Duration(0) // the longest time that one of the first k+1 had
	n := 0
	for k, i := range unfinished {
		most = max(most, had[i])
		if share := s.share(k + 1); share > 0 && share >= 2*most {
			n = k + 1
		}
	}
	return n
}

// share returns the time that the next failure has, so that each of those that are left has an equal part.
// It is 0 if the work has no end.
func (s *Shrinking) share(left int) time.Duration {
	if s.Until.IsZero() {
		return 0
	}
	rounds := (left + s.Jobs - 1) / s.Jobs
	return time.Until(s.Until) / time.Duration(rounds)
}

// shrinkOne does a task, or returns the failure as it was found if there is no time. A failure of a
// run that is too long for the memory of a worker stays as it was found.
func (s *Shrinking) shrinkOne(t ShrinkTask) (Shrunk, error) {
	if t.Run.Steps > shrink.LongestRun {
		found := s.asFound(t)
		found.Unfinished, found.TooLong = false, true
		return found, nil
	}
	over := func() bool { return s.Stop.Err() != nil || !s.Until.IsZero() && !time.Now().Before(s.Until) }
	if over() {
		return s.asFound(t), nil
	}
	t.Program = s.Program
	for tried := 1; ; tried++ {
		small, err := s.played(t)
		var bad *BadRunError
		var unrepeated *UnrepeatedError
		switch {
		case err == nil || errors.As(err, &bad) || errors.As(err, &unrepeated):
			return small, err
		case over():
			return s.asFound(t), nil // Stop ended the player
		case tried == shrinkPlayers:
			if s.Died != nil {
				s.Died(t, err)
			}
			return s.asFound(t), nil
		}
	}
}

// played does a task in a new player.
func (s *Shrinking) played(t ShrinkTask) (Shrunk, error) {
	p, err := s.Player()
	if err != nil {
		return Shrunk{}, err
	}
	defer p.Close()
	return p.Shrink(t)
}

// asFound returns the failure of a task as it was found. Recording is "" if no folder has it.
func (s *Shrinking) asFound(t ShrinkTask) Shrunk {
	for _, dir := range s.From {
		if text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(foundFile(t.Failed, t.Run.Index)))); err == nil {
			return t.asFound(s.Plan, string(text))
		}
	}
	return t.asFound(s.Plan, "")
}

// conclude is Conclude with a function that makes failures small. It returns the result or
// the error of each task.
func conclude(p Plan, runs []Run, budget int, shrink func([]ShrinkTask) ([]Shrunk, []error)) (Tally, []Shrunk, error) {
	runs = slices.Clone(runs)
	done := map[string]Shrunk{}
	name := func(g Found) string { return smallName(g.key(), g.Least.Index) }
	for {
		o := Sum(p, runs)
		var tasks []ShrinkTask
		var names []string
		var small []Shrunk
		for _, g := range o.Groups {
			s, ok := done[name(g)]
			if !ok {
				tasks = append(tasks, ShrinkTask{Run: g.Least, Failed: g.Failed, Budget: budget})
				names = append(names, name(g))
			}
			small = append(small, s)
		}
		if len(tasks) == 0 {
			return o, small, nil
		}
		made, problems := shrink(tasks)
		for i, err := range problems {
			var unrepeated *UnrepeatedError
			switch {
			case errors.As(err, &unrepeated):
				at := slices.IndexFunc(runs, func(r Run) bool { return r.Index == unrepeated.Run })
				runs[at].Word, runs[at].Why, runs[at].Failures = play.VerdictNondeterministic, err.Error(), nil
			case err != nil:
				return o, nil, err
			default:
				done[names[i]] = made[i]
			}
		}
	}
}

// foundRecordings keeps the recording of the smallest run of each group in FoundDir.
type foundRecordings struct {
	dir  string
	best map[string]foundRun // by group
}

type foundRun struct {
	size, index int
	file        string
}

// count notes the failures of a run. It returns the failures that are the first of their group, the
// files to write and the files to remove.
func (f *foundRecordings) count(r Run) (first []Failed, write, remove []string) {
	for _, failed := range r.Failures {
		was, known := f.best[failed.key()]
		if known && (failed.Size > was.size || failed.Size == was.size && r.Index >= was.index) {
			continue
		}
		now := foundRun{failed.Size, r.Index, foundFile(failed, r.Index)}
		f.best[failed.key()] = now
		write = append(write, now.file)
		if known {
			remove = append(remove, was.file)
		} else {
			first = append(first, failed)
		}
	}
	return first, write, remove
}

// keep writes the recording of a run that count asked for.
func (f *foundRecordings) keep(recording string, write, remove []string) error {
	for _, name := range write {
		file := filepath.Join(f.dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := renameio.WriteFile(file, []byte(recording), 0o644); err != nil {
			return err
		}
	}
	for _, name := range remove {
		if err := removeFile(f.dir, name); err != nil {
			return err
		}
	}
	return nil
}

// removeFile removes a file of a folder, if it is there, and the folder that it leaves empty.
func removeFile(dir, name string) error {
	file := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_ = os.Remove(filepath.Dir(file)) // the folder stays if it has more files
	return nil
}
