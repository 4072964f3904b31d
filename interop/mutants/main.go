// Mutants plays the mutants of the port's client code against the comparisons
// with the library and writes into docs/fidelity.md which comparison catches
// which mutant:
//
//	go run ./interop/mutants [-only id,id] [-by comparison] [-parallel n] [-table]
//
// It needs redis-server, Java and Maven. Each comparison must pass on the port as
// it is before it can catch a mutant, and it catches one that fails it twice in
// a row. With -table nothing is played, and the table is written from what is
// kept. What was played is kept in interop/mutants/played.json, so that some of
// the mutants can be played anew; a mutant that has changed since counts as not
// played.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
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

// comparison is one test of package interop. It holds the port against the
// library, release by release.
type comparison struct {
	name string
	test string
}

// comparisons are all that a mutant is held against, cheapest first.
var comparisons = []comparison{
	{"kept answers", "TestPortAnswersAsRecorded"},
	{"stories of rules", "TestRules"},
	{"watchdog stories", "TestWatchdog"},
	{"interrupts", "TestInterrupts"},
	{"lost answers", "TestLostAnswers"},
	{"wire, one server", "TestWireOnOneServer"},
	{"unsynced replicas", "TestUnsynced"},
	{"lost answers beside replicas", "TestLostBesideReplicas"},
}

// limit is how long one comparison may take; a port that hangs is caught by it.
const limit = 6 * time.Minute

// on gives the releases that the rule holds for, oldest first.
func (m mutant) on() ([]string, error) {
	var all []string
	for _, rel := range redisson.Releases {
		all = append(all, rel.Version)
	}
	from, to, ranged := strings.Cut(m.releases, " to ")
	since, open := strings.CutSuffix(m.releases, " on")
	switch {
	case m.releases == "all":
		return all, nil
	case open:
		from, to = since, all[len(all)-1]
	case !ranged:
		list := strings.Split(m.releases, ", ")
		for _, v := range list {
			if !slices.Contains(all, v) {
				return nil, fmt.Errorf("mutant %s: unknown release %q", m.id, v)
			}
		}
		return list, nil
	}
	i, j := slices.Index(all, from), slices.Index(all, to)
	if i < 0 || j < i {
		return nil, fmt.Errorf("mutant %s: unknown releases %q", m.id, m.releases)
	}
	return all[i : j+1], nil
}

// failure is a line of a test's output: a release that the port does otherwise on.
var failure = regexp.MustCompile(`(?m)^    --- FAIL: [A-Za-z]+/(\S+) `)

// fails gives the releases on which a comparison fails, of those named. All of
// them fail if it does not come to its end.
func fails(binary, interop string, c comparison, releases []string) []string {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	run := exec.CommandContext(ctx, binary, "-test.parallel", strconv.Itoa(len(releases)),
		"-test.run", "^"+c.test+"$/^("+strings.Join(releases, "|")+")$")
	run.Dir = interop
	// Its servers and the library are of its group, and end with it.
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

// failsTwice gives the releases of which a comparison fails twice in a row.
func failsTwice(binary, interop string, c comparison, releases []string) (twice []string) {
	first := fails(binary, interop, c, releases)
	if len(first) == 0 {
		return nil
	}
	again := fails(binary, interop, c, first)
	for _, v := range releases {
		if slices.Contains(first, v) && slices.Contains(again, v) {
			twice = append(twice, v)
		}
	}
	return twice
}

// player plays mutants in a tree.
type player struct {
	root, dir string
	by        []comparison
}

func (p *player) build(name, overlay string) (string, error) {
	binary := filepath.Join(p.dir, name+".test")
	args := []string{"test", "-c", "-tags", "interop", "-o", binary}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.Command("go", append(args, "./interop")...)
	cmd.Dir = p.root
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s does not compile: %w\n%s", name, err, out)
	}
	return binary, nil
}

// play gives the first comparison that catches a mutant.
func (p *player) play(m mutant) (played, error) {
	result := played{Mutant: m.digest()}
	releases, err := m.on()
	if err != nil {
		return result, err
	}
	overlay, err := m.overlay(p.root, p.dir)
	if err != nil {
		return result, err
	}
	binary, err := p.build(m.id, overlay)
	if err != nil {
		return result, err
	}
	defer func() { _ = os.Remove(binary) }()
	for _, c := range p.by {
		caught := failsTwice(binary, filepath.Join(p.root, "interop"), c, releases)
		if len(caught) == 0 {
			result.Passed = append(result.Passed, c.name)
			continue
		}
		bad := fails(filepath.Join(p.dir, "port.test"), filepath.Join(p.root, "interop"), c, caught)
		caught = slices.DeleteFunc(caught, func(v string) bool { return slices.Contains(bad, v) })
		if len(caught) > 0 {
			result.CaughtBy, result.On, result.Passed = c.name, strings.Join(caught, ", "), nil
			return result, nil
		}
		result.Unusable = append(result.Unusable, c.name)
	}
	return result, nil
}

func main() {
	only := flag.String("only", "", "play these mutants only, by id")
	parallel := flag.Int("parallel", 2, "mutants played at once")
	tableOnly := flag.Bool("table", false, "play nothing; write the table from what is kept")
	by := flag.String("by", "", "hold the mutants against this comparison only, and keep what it catches")
	flag.Parse()
	if err := run(*only, *by, *parallel, *tableOnly); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(only, name string, parallel int, tableOnly bool) error {
	root, err := os.Getwd()
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(root, playedFile)); err != nil {
		return fmt.Errorf("run it from the root of the repository: %w", err)
	}
	if tableOnly {
		all, err := readPlayed(root)
		if err != nil {
			return err
		}
		return writeTable(root, all)
	}
	chosen := mutants
	if only != "" {
		chosen = nil
		for _, id := range strings.Split(only, ",") {
			i := slices.IndexFunc(mutants, func(m mutant) bool { return m.id == id })
			if i < 0 {
				return fmt.Errorf("no mutant is called %q", id)
			}
			chosen = append(chosen, mutants[i])
		}
	}
	by := comparisons
	if name != "" {
		by = slices.DeleteFunc(slices.Clone(comparisons), func(c comparison) bool { return c.name != name })
		if len(by) == 0 {
			return fmt.Errorf("no comparison is called %q", name)
		}
	}
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	p := &player{root: root, dir: dir, by: by}
	if _, err := p.build("port", ""); err != nil {
		return err
	}
	all, err := readPlayed(root)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var failed error
	var work sync.WaitGroup
	turn := make(chan bool, parallel)
	for _, m := range chosen {
		work.Go(func() {
			turn <- true
			defer func() { <-turn }()
			result, err := p.play(m)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = err
				return
			}
			if len(by) < len(comparisons) && result.CaughtBy == "" {
				fmt.Println(m.id, "- not caught by", name)
				return
			}
			all[m.id] = result
			fmt.Println(m.id, "-", result.text())
			if err := all.write(root); err != nil { // now, so that a run that is stopped is not lost
				failed = err
			}
		})
	}
	work.Wait()
	if failed != nil {
		return failed
	}
	return writeTable(root, all)
}
