// Mutants plays the mutants of the port's client code against the comparisons
// with the library. It writes a table of the results, and one of the rules of the client
// code, into interop/rules.md:
//
//	go run ./interop/mutants [-only id,id] [-by comparison [-story name]] [-parallel n] [-table]
//
// It needs redis-server, Java and Maven. A comparison catches a mutant if the mutant fails it twice
// in a row and the unchanged port passes it. The results are kept in interop/mutants/played.json,
// so that some of the mutants can be played again. A result no longer counts once the mutant, or
// the function that it changes, has changed. With -table the command plays nothing and writes the
// tables from the kept results.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"lockstep/lockimpl/redisson"
)

// comparison is one test of package interop. It compares the port with the library, release by
// release.
type comparison struct {
	name string
	test string
}

// comparisons lists the comparisons that mutants must fail, cheapest first.
var comparisons = []comparison{
	{"kept answers", "TestPortAnswersAsRecorded"},
	{"stories of rules", "TestRules"},
	{"stories of tokens", "TestTokens"},
	{"kept stories", "TestPortTellsAsKept"},
	{"watchdog stories", "TestWatchdog"},
	{"interrupts", "TestInterrupts"},
	{"lost answers", "TestLostAnswers"},
	{"wire, one server", "TestWireOnOneServer"},
	{"unsynced replicas", "TestUnsynced"},
	{"lost answers beside replicas", "TestLostBesideReplicas"},
	{"wire, replicas", "TestWireOfReplicas"},
	{"wire, cluster", "TestWireOfCluster"},
}

// limit is the time that one comparison may take. A mutant that hangs fails at it.
const limit = 6 * time.Minute

// brokenReleases returns the releases on which the mutant breaks its rule, oldest first.
func (m mutant) brokenReleases() ([]string, error) { return releasesNamed("mutant "+m.id, m.releases) }

// releasesNamed returns the releases that a list or a range names, oldest first. An error begins with whose.
func releasesNamed(whose, releases string) ([]string, error) {
	var all []string
	for _, rel := range redisson.Releases {
		all = append(all, rel.Version)
	}
	from, to, ranged := strings.Cut(releases, " to ")
	since, open := strings.CutSuffix(releases, " on")
	switch {
	case releases == "all":
		return all, nil
	case open:
		from, to = since, all[len(all)-1]
	case !ranged:
		list := strings.Split(releases, ", ")
		for _, v := range list {
			if !slices.Contains(all, v) {
				return nil, fmt.Errorf("%s: unknown release %q", whose, v)
			}
		}
		return list, nil
	}
	i, j := slices.Index(all, from), slices.Index(all, to)
	if i < 0 || j < i {
		return nil, fmt.Errorf("%s: unknown releases %q", whose, releases)
	}
	return all[i : j+1], nil
}

// failure matches a line of a test's output that names a release on which it failed.
var failure = regexp.MustCompile(`(?m)^    --- FAIL: [A-Za-z]+/(\S+) `)

// fails returns those of the given releases on which a comparison fails. If the
// comparison does not come to its end, it fails on all of them.
func (p *player) fails(name string, c comparison, releases []string) []string {
	ctx, cancel := context.WithTimeout(p.stop, limit)
	defer cancel()
	run := exec.CommandContext(ctx, p.binary(name), "-story", p.story, "-test.parallel", strconv.Itoa(len(releases)),
		"-test.run", "^"+c.test+"$/^("+strings.Join(releases, "|")+")$")
	run.Dir = filepath.Join(p.root, "interop")
	// A comparison that is skipped fails, and none leaves out a part.
	run.Env = append(os.Environ(), "LOCKSTEP_REQUIRE=all", "LOCKSTEP_LONG=1")
	// The servers and the library are in the process group of the test and end with it.
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	run.Cancel = func() error { return syscall.Kill(-run.Process.Pid, syscall.SIGKILL) }
	run.WaitDelay = 10 * time.Second
	out, err := run.CombinedOutput()
	if err == nil {
		return nil
	}
	var failed []string
	for _, m := range failure.FindAllStringSubmatch(string(out), -1) {
		failed = append(failed, m[1])
	}
	if len(failed) == 0 {
		return releases // a panic, or the limit
	}
	return failed
}

// failsTwice returns the releases on which a comparison fails twice in a row.
func (p *player) failsTwice(name string, c comparison, releases []string) (twice []string) {
	first := p.fails(name, c, releases)
	if len(first) == 0 {
		return nil
	}
	again := p.fails(name, c, first)
	for _, v := range releases {
		if slices.Contains(first, v) && slices.Contains(again, v) {
			twice = append(twice, v)
		}
	}
	return twice
}

// player plays mutants. It takes the sources from root and builds in dir.
type player struct {
	root, dir string
	by        []comparison
	story     string          // part of the names of the stories that are played; "": all
	stop      context.Context // ends when the command is interrupted
}

// unchanged is the name of the build without a mutant.
const unchanged = "port"

func (p *player) binary(name string) string { return filepath.Join(p.dir, name+".test") }

// build compiles the tests of package interop.
func (p *player) build(name, overlay string) error {
	args := []string{"test", "-c", "-tags", "interop", "-o", p.binary(name)}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(p.stop, "go", append(args, "./interop")...)
	cmd.Dir = p.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s does not compile: %w\n%s", name, err, out)
	}
	return nil
}

// play plays a mutant until comparisons have caught it on each release that has the rule. The result
// adds to the earlier results of the mutant.
func (p *player) play(m mutant, result played) (played, error) {
	var err error
	if result.Mutant, err = m.digest(p.root); err != nil {
		return result, err
	}
	releases, err := m.brokenReleases()
	if err != nil {
		return result, err
	}
	releases = slices.DeleteFunc(releases, func(v string) bool { return slices.Contains(result.caughtOn(), v) })
	if len(releases) == 0 {
		return result, nil
	}
	overlay, err := m.overlay(p.root, p.dir)
	if err != nil {
		return result, err
	}
	if err := p.build(m.id, overlay); err != nil {
		return result, err
	}
	defer func() { _ = os.Remove(p.binary(m.id)) }()
	for _, c := range p.by {
		if p.story == "" {
			again := func(name string) bool { return name == c.name }
			result.Passed, result.Unusable = slices.DeleteFunc(result.Passed, again), slices.DeleteFunc(result.Unusable, again)
		}
		caught := p.failsTwice(m.id, c, releases)
		var bad []string // the releases on which the unchanged port fails
		if len(caught) > 0 {
			bad = p.fails(unchanged, c, caught)
		}
		if err := p.stop.Err(); err != nil {
			return result, err // a comparison that was stopped counts as failed
		}
		caught = slices.DeleteFunc(caught, func(v string) bool { return slices.Contains(bad, v) })
		if len(caught) > 0 {
			result.Caught = append(result.Caught, catch{c.name, strings.Join(caught, ", ")})
		}
		if releases = slices.DeleteFunc(releases, func(v string) bool { return slices.Contains(caught, v) }); len(releases) == 0 {
			return result, nil
		}
		switch {
		case p.story != "": // one of the other stories may catch it
		case len(bad) > 0:
			result.Unusable = append(result.Unusable, c.name)
		default:
			result.Passed = append(result.Passed, c.name)
		}
	}
	return result, nil
}

// options are the flags of the command.
type options struct {
	only, by, story string
	parallel        int
	table           bool
}

func main() {
	var o options
	flag.StringVar(&o.only, "only", "", "play these mutants only: their IDs, with commas between them")
	flag.StringVar(&o.by, "by", "", "play this comparison only, and add what it catches to what is known")
	flag.StringVar(&o.story, "story", "", "with -by: play only the stories, losses and lines whose name has this in it")
	flag.IntVar(&o.parallel, "parallel", 2, "the number of mutants that are played at once")
	flag.BoolVar(&o.table, "table", false, "play nothing; write the tables from the kept results")
	flag.Parse()
	stop, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(stop, o, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

// choose returns the mutants and the comparisons that the options name.
func (o options) choose(rest []string) ([]mutant, []comparison, error) {
	if len(rest) > 0 {
		return nil, nil, fmt.Errorf("%q is no option; the command takes options only", rest[0])
	}
	if o.parallel < 1 {
		return nil, nil, fmt.Errorf("-parallel %d: at least 1", o.parallel)
	}
	if o.story != "" && o.by == "" {
		return nil, nil, errors.New("-story needs -by: it plays a part of one comparison")
	}
	chosen := mutants
	if o.only != "" {
		chosen = nil
		for _, id := range strings.Split(o.only, ",") {
			i := slices.IndexFunc(mutants, func(m mutant) bool { return m.id == id })
			if i < 0 {
				return nil, nil, fmt.Errorf("no mutant is called %q", id)
			}
			chosen = append(chosen, mutants[i])
		}
	}
	by := comparisons
	if o.by != "" {
		i := slices.IndexFunc(comparisons, func(c comparison) bool { return c.name == o.by })
		if i < 0 {
			return nil, nil, fmt.Errorf("no comparison is called %q", o.by)
		}
		by = comparisons[i : i+1]
	}
	return chosen, by, nil
}

func run(stop context.Context, o options, rest []string) error {
	chosen, by, err := o.choose(rest)
	if err != nil {
		return err
	}
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	all, err := readPlayed(root)
	if err != nil {
		return fmt.Errorf("run it from the root of the repository: %w", err)
	}
	if _, err := all.forgetStale(root); err != nil {
		return err
	}
	if o.table {
		return writeTables(root, all)
	}
	for _, program := range []string{"redis-server", "java", "mvn"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("the comparisons need %s: %w", program, err)
		}
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	p := &player{root: root, dir: dir, by: by, story: o.story, stop: stop}
	if err := p.build(unchanged, ""); err != nil {
		return err
	}
	var mu sync.Mutex
	var problems []error
	var work sync.WaitGroup
	turn := make(chan bool, o.parallel)
	for _, m := range chosen {
		work.Go(func() {
			turn <- true
			defer func() { <-turn }()
			if stop.Err() != nil {
				return
			}
			var known played
			if o.by != "" {
				mu.Lock()
				known = all[m.id]
				mu.Unlock()
			}
			result, err := p.play(m, known)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case stop.Err() != nil:
				return
			case err != nil:
				problems = append(problems, err)
				return
			}
			all[m.id] = result
			fmt.Println(m.id, "-", result.text())
			if err := all.write(root); err != nil { // at once, so that an interrupt does not lose it
				problems = append(problems, err)
			}
		})
	}
	work.Wait()
	if stop.Err() != nil {
		problems = append(problems, errors.New("interrupted; the results so far are kept"))
	}
	return errors.Join(append(problems, writeTables(root, all))...)
}
