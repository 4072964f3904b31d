package explore

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"lockstep/scenarios/scenariotest"

	"lockstep/explore/failure"
	"lockstep/internal/longtest"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/sim"
)

// A renaming gives the locks, processes and threads of a scenario other names. A program that
// searches names in sentences would confuse them.
type renaming struct {
	locks     map[string]string
	processes map[string]string
	idle      int // idle threads that each process has before its own
}

// renamingOf returns the renaming that gives the n-th process the n-th name.
func renamingOf(sc *scenarios.Scenario, names []string, idle int) renaming {
	r := renaming{map[string]string{}, map[string]string{}, idle}
	for i, p := range sc.Processes {
		r.processes[p.Name] = names[i]
	}
	for _, s := range sc.All() {
		switch s.Kind {
		case scenarios.StepLock, scenarios.StepTryLock, scenarios.StepWithLock, scenarios.StepUnlock, scenarios.StepForceUnlock, scenarios.StepRead, scenarios.StepPublished:
			if r.locks[s.Name] == "" {
				r.locks[s.Name] = fmt.Sprintf("order:4%d, b", 2+len(r.locks))
			}
		}
	}
	return r
}

// thread renames a thread, process/number.
func (r renaming) thread(name string) string {
	process, number, ok := strings.Cut(name, "/")
	n, err := strconv.Atoi(number)
	if !ok || err != nil {
		return name // "all"
	}
	return model.ThreadName(r.processes[process], n+r.idle)
}

var ownerInKey = regexp.MustCompile(`:(\w+):(\d+)$`)

// glob renames the locks and owners in a glob of keys or channels.
func (r renaming) glob(pattern string) string {
	pattern = ownerInKey.ReplaceAllStringFunc(pattern, func(owner string) string {
		m := ownerInKey.FindStringSubmatch(owner)
		if r.processes[m[1]] == "" {
			return owner
		}
		return ":" + strings.ReplaceAll(r.thread(m[1]+"/"+m[2]), "/", ":")
	})
	if r.locks[pattern] != "" {
		return r.locks[pattern]
	}
	for was, now := range r.locks {
		for _, around := range []string{"{%s}", "*%s*", ":%s*", ":%s:"} {
			pattern = strings.ReplaceAll(pattern, fmt.Sprintf(around, was), fmt.Sprintf(around, now))
		}
	}
	return pattern
}

func (r renaming) steps(steps []scenarios.Step) []scenarios.Step {
	out := slices.Clone(steps)
	for i := range out {
		s := &out[i]
		if now := r.locks[s.Name]; now != "" && s.Kind != scenarios.StepUse {
			s.Name = now
		}
		s.Target = r.thread(s.Target)
		s.Steps = r.steps(s.Steps)
		if s.Read == nil {
			continue
		}
		read := *s.Read
		if read.Queue != nil {
			var queue []string
			for _, who := range *read.Queue {
				queue = append(queue, r.thread(who))
			}
			read.Queue = &queue
		}
		if read.Deadlines != nil {
			read.Deadlines = map[string]scenarios.Range{}
			for who, d := range s.Read.Deadlines {
				read.Deadlines[r.thread(who)] = d
			}
		}
		s.Read = &read
	}
	return out
}

func (r renaming) scenario(sc *scenarios.Scenario) *scenarios.Scenario {
	out := *sc
	out.Processes = slices.Clone(sc.Processes)
	for i := range out.Processes {
		p := &out.Processes[i]
		p.Name, p.Threads = r.processes[p.Name], p.Threads+r.idle
	}
	out.Threads = slices.Clone(sc.Threads)
	for i := range out.Threads {
		t := &out.Threads[i]
		t.Process, t.Thread, t.Steps = r.processes[t.Process], t.Thread+r.idle, r.steps(t.Steps)
	}
	out.Faults = slices.Clone(sc.Faults)
	for i := range out.Faults {
		f := &out.Faults[i]
		f.Processes = slices.Clone(f.Processes)
		for j, p := range f.Processes {
			f.Processes[j] = r.processes[p]
		}
		f.When.Process = r.processes[f.When.Process]
		if f.Awaits != nil {
			awaits := *f.Awaits
			if now := r.processes[awaits.Granted]; now != "" {
				awaits.Granted = now
			}
			if now := r.locks[awaits.Ended]; now != "" {
				awaits.Ended = now
			}
			awaits.Granted, awaits.Published = r.thread(awaits.Granted), r.glob(awaits.Published)
			f.Awaits = &awaits
		}
		f.Key, f.When.Channel = r.glob(f.Key), r.glob(f.When.Channel)
	}
	return &out
}

// A renamedChooser makes the same decisions for the renamed processes and threads as for the
// original ones.
type renamedChooser struct {
	sim.Chooser
	original map[string]string
	idle     int
}

func (c renamedChooser) Choose(stream string, n uint64) uint64 {
	parts := strings.Split(stream, "/")
	for i, part := range parts {
		was, ok := c.original[part]
		if !ok || i == 0 {
			continue
		}
		parts[i] = was
		if i+1 < len(parts) {
			if n, err := strconv.Atoi(parts[i+1]); err == nil {
				parts[i+1] = strconv.Itoa(n - c.idle)
			}
		}
	}
	return c.Chooser.Choose(strings.Join(parts, "/"), n)
}

// found lists the verdict of a run, and of each finding the judge, the class, the
// instant, the rule, the lock, the thread and the defect, with names as r makes them.
func found(h *sim.Host, v play.Verdict, r *renaming) []string {
	out := []string{string(v.Word)}
	for _, f := range v.Findings {
		lock, thread := f.Lock, f.Thread
		if r != nil {
			lock = r.locks[lock]
			if thread != "" {
				thread = r.thread(thread)
			}
			if f.Check != nil && lock == "" {
				lock = f.Lock // a resource
			}
		}
		defect := ""
		if f.Class == "bug" {
			defect = failure.NewNamer(h, v).Name(f).ID
		}
		out = append(out, fmt.Sprintf("%s %s at %s, %s of %q by %s: %s", f.Judge, f.Class, model.At(f.AtNs), f.Form, lock, thread, defect))
	}
	return out
}

// The names of locks, processes and threads change no verdict, judge or defect of a built-in
// scenario. The name of each of two processes begins the name of the other in one of the
// cases.
//
// Threads get other numbers in the track record only. A lock that draws waits per thread
// would wait differently with another number. A short test plays every third lock of a
// scenario.
func TestNamesDoNotMatter(t *testing.T) {
	all, err := scenarios.Builtin()
	if err != nil {
		t.Fatal(err)
	}
	h := sim.NewHost(t)
	prefixFirst := []string{"a", "ab", "b", "abc", "c", "ba", "aa", "bab", "cc", "bb"}
	prefixLast := []string{"ab", "a", "abc", "b", "ba", "c", "bab", "aa", "bb", "cc"}
	every := 3 / longtest.Size(t, 1, 3)
	for n, sc := range all {
		t.Run(sc.Name, func(t *testing.T) {
			var renamings []renaming
			if sc.Name != "inventory" { // it takes as long as all others
				idle := 0
				if sc.Tag() == "track-record" {
					idle = 1
				}
				renamings = append(renamings, renamingOf(sc, prefixLast, idle))
			}
			if len(sc.Faults) > 0 {
				renamings = append(renamings, renamingOf(sc, prefixFirst, 0))
			}
			testNames(t, h.For(t), sc, renamings, n%every, every)
		})
	}
}

// testNames plays a scenario under its own names, and then once under the names of each renaming,
// on one of every so many of its locks.
func testNames(t *testing.T, h *sim.Host, sc *scenarios.Scenario, renamings []renaming, first, every int) {
	t.Helper()
	if len(renamings) == 0 {
		return
	}
	for i, name := range slices.Sorted(maps.Keys(sc.Expect)) {
		if i%every != first && len(sc.Expect) > 1 {
			continue
		}
		l := scenariotest.Lock(t, name)
		v := play.Run(h, sc, l, 1)
		for _, r := range renamings {
			renamed := r.scenario(sc)
			original := map[string]string{}
			for was, now := range r.processes {
				original[now] = was
			}
			want := found(h, v, &r)
			p := play.Play(h, renamed, l, renamedChooser{sim.NewSeeded(1), original, r.idle})
			got := found(h, play.Judge(h, renamed, l, 1, p), nil)
			if !slices.Equal(got, want) {
				t.Errorf("%s on %s with other names:\n%s\nwant\n%s", sc.Name, name, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	}
}
