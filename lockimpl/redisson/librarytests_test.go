package redisson

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"lockstep/internal/longtest"
	"lockstep/lockimpl"
)

// A libraryTest is one test of the library's own lock tests: its steps and numbers, in our words
// and played on the port. The list has the tests of redisson/redisson as of 4.7.0, and tests that
// only older releases had.
type libraryTest struct {
	class, name string
	does        string // steps and expectations, with their numbers
	on          string // releases that have such a lock; "": all
	play        func(*libraryCase)
	// differs has the expectations of the test that some releases do not meet.
	differs []deviation
}

// A deviation is an expectation that releases do not meet. The suite fails if they meet it.
type deviation struct {
	releases string
	missed   []string // in the words of the test
	why      string
}

// libraryCase plays a libraryTest on one release. Expectations that it does not meet are
// collected, since some releases are known not to meet them.
type libraryCase struct {
	*bench
	kind

	missedMu sync.Mutex
	missed   []string
}

func (x *libraryCase) miss(format string, args ...any) {
	x.missedMu.Lock()
	defer x.missedMu.Unlock()
	x.missed = append(x.missed, fmt.Sprintf(format, args...))
}

// expect notes a value that is not the one that the library's test expects.
func (x *libraryCase) expect(what string, got, want any) {
	if fmt.Sprint(got) != fmt.Sprint(want) {
		x.miss("%s: %v, not %v", what, got, want)
	}
}

// within notes a duration outside the bounds of the library's test.
func (x *libraryCase) within(what string, got, least, most time.Duration) {
	if got < least || got > most {
		x.miss("%s: %v, not %v to %v", what, got, least, most)
	}
}

// around is within, with the tolerance of the library's tests of deadlines.
func (x *libraryCase) around(what string, got, want time.Duration) {
	if got < want-100*time.Millisecond || got > want+100*time.Millisecond {
		x.miss("%s: %v, not %v", what, got, want)
	}
}

// succeeds notes a call that failed.
func (x *libraryCase) succeeds(what string, err error) {
	if err != nil {
		x.miss("%s: %s", what, errorWord(err))
	}
}

var full = flag.Bool("full", false, "play the library's own tests with the numbers that they have in the library")

var heavyNames = flag.Int("names", 5000, "with -full: the number of lock names in RedissonLockHeavyTest, which the library plays with 5 000 and with 50 000")

// size returns the size of a test: all with -full, long with LOCKSTEP_LONG=1, else some.
func (x *libraryCase) size(some, long, all int) int {
	x.t.Helper()
	if *full {
		return all
	}
	return longtest.Size(x.t, some, long)
}

// fails notes a call that did not fail with an error.
func (x *libraryCase) fails(what string, err, want error) {
	if !errors.Is(err, want) {
		x.miss("%s: %s, not %s", what, errorWord(err), errorWord(want))
	}
}

// errorWord names an error without the words that differ from run to run.
func errorWord(err error) string {
	for _, known := range []error{lockimpl.ErrNotHeld, lockimpl.ErrReentry, lockimpl.ErrUnknownOutcome, lockimpl.ErrClosed} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	if err == nil {
		return "no error"
	}
	return "error"
}

// object makes a lock object of the kind that is played, named as in most of the library's tests.
func (x *libraryCase) object(c *Client) lockimpl.Lock {
	x.t.Helper()
	return x.bench.lock(c, x.kind, "lock")
}

func (x *libraryCase) newClient(id string, change ...func(*Config)) *Client {
	return x.bench.client(x.Release, id, change...)
}

// thread runs f in a goroutine, as the library's tests run a thread, and returns a function that
// waits for its end.
func thread(f func()) (join func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	return func() { <-done }
}

// pool runs tasks on threads, numbered from 1, and waits for their end.
func pool(threads, tasks int, task func(o lockimpl.Owner, i int)) {
	next := make(chan int, tasks)
	for i := range tasks {
		next <- i
	}
	close(next)
	var all sync.WaitGroup
	for n := range threads {
		all.Go(func() {
			for i := range next {
				task(lockimpl.Owner(n+1), i)
			}
		})
	}
	all.Wait()
}

func (x *libraryCase) acquired(l lockimpl.Lock, o lockimpl.Owner, opt lockimpl.LockOptions) {
	x.t.Helper()
	x.must(l.Lock(background, o, opt))
}

func (x *libraryCase) unlocked(l lockimpl.Lock, o lockimpl.Owner) error {
	_, err := l.Unlock(background, o)
	return err
}

// restart loses the server's data, ends the client's connections, and refuses new ones for
// half a second.
func (x *libraryCase) restart(client string) {
	x.m.FlushAll()
	x.mu.Lock()
	for _, w := range x.conns[client] {
		_ = w.Conn.Close()
	}
	x.mu.Unlock()
	x.refuse(errors.New("connection refused"))
	time.AfterFunc(500*time.Millisecond, func() { x.refuse(nil) })
}

// kinds are the kinds of lock that a class tests.
func (c libraryTest) fair() bool { return strings.Contains(c.class, "Fair") }

func (c libraryTest) appliesTo(rel *Release) bool { return c.on == "" || rel.isOneOf(c.on) }

func (c libraryTest) deviationOf(rel *Release) (d deviation, is bool) {
	for _, d := range c.differs {
		if rel.isOneOf(d.releases) {
			return d, true
		}
	}
	return deviation{}, false
}

// played returns the expectations that a release does not meet.
func (c libraryTest) played(t *testing.T, rel *Release) (missed []string) {
	bubble(t, func(b *bench) {
		b.keepNone()
		x := &libraryCase{bench: b, kind: kind{rel, c.fair()}}
		c.play(x)
		synctest.Wait()
		x.missedMu.Lock()
		defer x.missedMu.Unlock()
		missed = slices.Compact(slices.Sorted(slices.Values(x.missed)))
	})
	return missed
}

// The library's own tests, on every release. An older release may not meet the expectations of a later
// release's test. The list states such a difference with its reason, and the suite tests the
// difference, too. A short test plays each test on the newest release and where it differs.
func TestTheLibrarysOwnTests(t *testing.T) {
	for _, c := range libraryTests {
		t.Run(c.class+"/"+c.name, func(t *testing.T) {
			releases := slices.DeleteFunc(slices.Clone(Releases), func(rel *Release) bool { return !c.appliesTo(rel) })
			for i, rel := range releases {
				want, differs := c.deviationOf(rel)
				if !differs && i < len(releases)-1 && !longtest.Asked() {
					continue
				}
				t.Run(rel.Version, func(t *testing.T) {
					same(t, "expectations that are not met", c.played(t, rel), slices.Sorted(slices.Values(want.missed)))
				})
			}
		})
	}
}

// Each entry is complete, and no test is listed twice or as both played and left out.
func TestTheListOfTheLibrarysTests(t *testing.T) {
	seen := map[string]bool{}
	once := func(class, name string) {
		t.Helper()
		if id := class + "." + name; seen[id] {
			t.Errorf("%s is listed twice", id)
		} else {
			seen[id] = true
		}
	}
	for _, c := range libraryTests {
		once(c.class, c.name)
		if c.does == "" || c.play == nil {
			t.Errorf("%s.%s says nothing, or plays nothing", c.class, c.name)
		}
		for _, d := range c.differs {
			if len(d.missed) == 0 || d.why == "" {
				t.Errorf("%s.%s: the deviation of %s has no numbers or no reason", c.class, c.name, d.releases)
			}
			for v := range strings.FieldsSeq(d.releases) {
				if rel, err := Find(v); err != nil || !c.appliesTo(rel) {
					t.Errorf("%s.%s: a deviation of %q, on which it is not played", c.class, c.name, v)
				}
			}
		}
	}
	for _, o := range libraryTestsLeftOut {
		for name := range strings.FieldsSeq(o.names) {
			once(o.class, name)
		}
		if o.why == "" {
			t.Errorf("%s %s: left out without a reason", o.class, o.names)
		}
	}
}

const (
	libraryTestsFile   = "library-tests.md"
	libraryTestsBegin  = "<!-- library tests: written by go test ./lockimpl/redisson -run TestTheTableOfTheLibrarysTests -update -->\n"
	libraryTestsEnding = "<!-- end of library tests -->\n"
)

// libraryTestsTable is the table of library-tests.md. TestTheLibrarysOwnTests checks its cells.
func libraryTestsTable() string {
	var b strings.Builder
	b.WriteString("| test | what it does and expects |")
	rule := "\n|---|---|"
	for _, rel := range Releases {
		b.WriteString(" " + rel.Version + " |")
		rule += "---|"
	}
	b.WriteString(rule + "\n")
	var deviations []string
	for _, c := range libraryTests {
		fmt.Fprintf(&b, "| %s `%s` | %s |", strings.TrimPrefix(c.class, "Redisson"), c.name, c.does)
		for _, rel := range Releases {
			cell := " yes |"
			if !c.appliesTo(rel) {
				cell = " – |"
			} else if _, differs := c.deviationOf(rel); differs {
				cell = " no |"
			}
			b.WriteString(cell)
		}
		b.WriteString("\n")
		for _, d := range c.differs {
			deviations = append(deviations, fmt.Sprintf("| %s `%s` | %s | %s | %s |\n", strings.TrimPrefix(c.class, "Redisson"), c.name,
				strings.Join(strings.Fields(d.releases), ", "), strings.Join(d.missed, "; "), d.why))
		}
	}
	b.WriteString("\nWhat the releases with \"no\" do instead:\n\n| test | releases | seen, and not expected | why |\n|---|---|---|---|\n")
	b.WriteString(strings.Join(deviations, ""))
	b.WriteString("\nNot played:\n\n| class | tests | why |\n|---|---|---|\n")
	for _, o := range libraryTestsLeftOut {
		names := "all"
		if o.names != "" {
			names = "`" + strings.Join(strings.Fields(o.names), "`, `") + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", strings.TrimPrefix(o.class, "Redisson"), names, o.why)
	}
	return b.String()
}

func TestTheTableOfTheLibrarysTests(t *testing.T) {
	text, err := os.ReadFile(libraryTestsFile)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), libraryTestsBegin)
	kept, after, ended := strings.Cut(rest, libraryTestsEnding)
	if !found || !ended {
		t.Fatalf("%s has no markers of the table", libraryTestsFile)
	}
	table := libraryTestsTable()
	if *update {
		if err := os.WriteFile(libraryTestsFile, []byte(before+libraryTestsBegin+table+libraryTestsEnding+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if kept != table {
		t.Errorf("the table of the library's tests in %s is not that of this package; go test ./lockimpl/redisson -run %s -update writes it", libraryTestsFile, t.Name())
	}
}

// registered reports whether the watchdog has an entry of a lock.
func (c *Client) registered(lock string) bool {
	switch w := c.watchdog.(type) {
	case *timerWatchdog:
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.timers[lock] != nil
	case *entryWatchdog:
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.entries[lock] != nil
	case *taskWatchdog:
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.entries[lock] != nil
	}
	panic("redisson: a watchdog that the tests do not know")
}

// sortedDeadlines returns the time from now until each deadline of a fair lock's waiters, soonest
// first.
func (x *libraryCase) sortedDeadlines(name string) (ahead []time.Duration) {
	for _, score := range slices.Sorted(maps.Values(x.scores(DeadlinesName(name)))) {
		ahead = append(ahead, time.Duration(score-float64(time.Now().UnixMilli()))*time.Millisecond)
	}
	return ahead
}
