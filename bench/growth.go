package bench

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"lockstep/report/sentence"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/sim"
)

// curve measures how the cost of a run grows with one number.
type curve struct {
	what, lock string
	sizes      []int
	scenario   func(n int) *scenarios.Scenario
	// why says why the cost grows faster than linearly.
	why string
}

// growthSteps is the number of steps that the longest of these runs may take.
const growthSteps = 1_000_000

var curves = []curve{
	{"clients", plainLock, []int{2, 5, 10, 20, 50, 100, 200}, manyClients,
		"Every release is published to all clients that wait, and each that is woken asks again: of n clients the last one's turn comes after n releases, so n clients send about n² messages. " +
			"That is what the library does, and it must be played as it is."},
	{"operations", plainLock, []int{10, 100, 1000, 10_000, 40_000}, steps,
		"The record is kept in memory until it is judged, 3.4 KB an operation; what else a longer run costs was not looked into."},
	{"waiters in the fair queue", fairLock, []int{1, 10, 100, 300, 1000}, fairWaiters,
		"The scripts of the fair lock read queue and deadlines, and the record has the whole queue whenever it changes: n waiters are n changes of a queue of up to n. " +
			"Judging looks through the queue at each change, and the search copies it with each step that changes it: n² too."},
}

// manyClients has n processes, each with two critical sections.
func manyClients(n int) *scenarios.Scenario {
	var processes, steps strings.Builder
	for i := range n {
		fmt.Fprintf(&processes, "  p%d: {threads: 1}\n", i)
		fmt.Fprintf(&steps, "  p%d/1: [{repeat: {times: 2, steps: [{with_lock: {name: x, steps: [{sleep: 1ms}]}}]}}]\n", i)
	}
	return mustParse("lockstep: 1\nname: clients\nabout: Many clients.\nlocks: [" + plainLock + "]\nprocesses:\n" + processes.String() + "steps:\n" + steps.String())
}

// fairWaiters has n threads that queue behind one holder and take their turns.
func fairWaiters(n int) *scenarios.Scenario {
	return mustParse(fmt.Sprintf(`
lockstep: 1
name: waiters
about: Many waiters in one queue.
locks: [%s]
processes:
  a: {threads: 1}
  b: {threads: %d}
steps:
  a/1: [{lock: x}, {sleep: 1s}, {unlock: x}]
  b/*: [{at: 100ms}, {with_lock: {name: x, steps: [{sleep: 1ms}]}}]
`, fairLock, n))
}

// law returns the exponent of a power law through the upper half of the points.
func law(sizes []int, costs []float64) float64 {
	var n, sx, sy, sxx, sxy float64
	from := (len(sizes) - 1) / 2
	for i := from; i < len(sizes); i++ {
		x, y := math.Log(float64(sizes[i])), math.Log(costs[i])
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	return (n*sxy - sx*sy) / (n*sxx - sx*sx)
}

// linear is the exponent up to which a law counts as linear.
const linear = 1.15

func (b *bench) growth() (section, error) {
	s := section{
		Title: "How cost grows",
		Text:  []string{"One run of each size; processor time of playing it and of judging it. The law is a power through the upper half of the sizes."},
		Head:  []string{"", "n", "played", "judged", "for each n", "events", "steps", "verdict"},
	}
	long := *b.Host
	long.MostSteps = growthSteps
	for _, c := range curves {
		sizes := c.sizes
		if b.Quick {
			sizes = sizes[:len(sizes)-2]
		}
		l := mustLock(c.lock)
		var played, judged []float64
		var undecided []string
		for _, n := range sizes {
			sc := c.scenario(n)
			var p play.Played
			var v play.Verdict
			costs := inTurn(1,
				func() float64 { p = play.Play(&long, sc, l, sim.NewSeeded(1)); return 1 },
				func() float64 { v = play.Judge(&long, sc, l, 1, p); return 1 })
			played, judged = append(played, cpuOf(costs[0][0])), append(judged, cpuOf(costs[1][0]))
			if v.Word != play.VerdictHeld && v.Word != play.VerdictUndecided {
				return s, fmt.Errorf("%s, %d: %s: %s", c.what, n, v.Word, sentence.Verdict(v))
			}
			last := len(played) - 1
			s.row(c.what, strconv.Itoa(n), span(played[last]), span(judged[last]), span((played[last]+judged[last])/float64(n)),
				strconv.Itoa(len(p.Record.Events)), strconv.Itoa(p.Steps), string(v.Word))
			if why := sentence.Verdict(v); why != "" {
				undecided = append(undecided, fmt.Sprintf("With %d it is undecided: %s.", n, why))
			}
		}
		play, judge := law(sizes, played), law(sizes, judged)
		text := fmt.Sprintf("**%s**: playing grows as n^%.2f, judging as n^%.2f.", c.what, play, judge)
		if max(play, judge) > linear {
			text += " " + c.why
		}
		s.After = append(s.After, strings.Join(append([]string{text}, undecided...), " "))
	}
	return s, nil
}
