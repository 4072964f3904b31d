package cli

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"lockstep/cli/frame"
	"lockstep/internal/counted"
	"lockstep/linearizability/judges"
	"lockstep/report"
	"lockstep/report/sentence"
	"lockstep/scenarios/play"
)

func printHeader(a *frame.App) {
	fmt.Fprintf(a.Out, "%-28s %-21s %-7s %-10s %s\n", "scenario", "lock", "seeds", "verdict", "expected")
}

// printPair prints the verdict of a pair, whether it was expected, and how to replay it.
func printPair(a *frame.App, p *Pair) {
	w := p.worst()
	mark := "yes"
	if !p.asExpected() {
		mark = "NO: " + w.Expected
		if !w.Names() {
			mark += " (lock not named)"
		}
	} else if w.Expected != "held" && w.Expected != "" {
		mark = "yes: " + w.Expected
	}
	fmt.Fprintf(a.Out, "%-28s %-21s %-7s %s %s\n", report.Clip(p.Scenario.Name, 28), report.Clip(p.Lock.Name, 21), p.seeds(),
		a.Paint(string(w.Word), fmt.Sprintf("%-10s", report.Clip(string(w.Word), 10))), report.Clip(mark, 29))
	printWhy(a, w)
}

// printWhy prints the first finding of each judge and the command that replays the run. If the
// verdict was not expected, it first prints a short story of the run.
func printWhy(a *frame.App, v play.Verdict) {
	if !v.AsExpected {
		fmt.Fprint(a.Out, shortStory(v))
	}
	if why := sentence.Verdict(v); why != "" {
		fmt.Fprint(a.Out, report.Wrap(why, "    ", 100))
	}
	if !v.AsExpected && !v.Names() && len(v.Findings) > 0 {
		fmt.Fprint(a.Out, report.Wrap(fmt.Sprintf("%s does not name the lock %s. Nothing is expected of such a lock but that it keeps its promises, and it did not:", v.Scenario.Name, v.Lock.Name), "    ", 100))
	}
	v.ShowLimits(a.Host)
	printFindings(a, v)
	if len(v.Findings) > 0 || v.Why != "" && v.Word != play.VerdictNotApplicable {
		fmt.Fprintf(a.Out, "    replay: %s\n", commandToReplay(v))
	}
}

// printFindings prints the first finding of each judge.
func printFindings(a *frame.App, v play.Verdict) {
	told := map[string]int{}
	for _, f := range v.Findings {
		if told[f.Judge]++; told[f.Judge] > 1 {
			continue
		}
		label := f.Judge
		if f.Class == judges.ClassLimit {
			label += " (limit)"
		}
		fmt.Fprint(a.Out, report.Wrap(label+": "+sentence.Finding(f), "    ", 100))
		if excused := sentence.NotPromised(f); excused != "" {
			fmt.Fprint(a.Out, report.Wrap("not promised here: "+excused, "      ", 100))
		}
	}
}

// printSummary prints how many runs were not as expected, then the lines, and last how to replay a
// run that was not as expected. After the lines of several pairs, which may take more than a
// screen, it prints the numbers once more.
func printSummary(a *frame.App, pairs []*Pair, lines []byte) {
	odd := printTotals(a, pairs)
	if len(lines) > 0 {
		fmt.Fprintf(a.Out, "\n%s", lines)
	}
	again := len(lines) > 0 && len(pairs) > 1
	if again || odd != nil {
		fmt.Fprintln(a.Out)
	}
	if again {
		printTotals(a, pairs)
	}
	if odd != nil {
		fmt.Fprintf(a.Out, "replay: %s\n", commandToReplay(odd.worst()))
	}
}

// printNext prints the commands that say more about the pairs. shown reports whether the findings of each
// pair were printed, and recording returns the file of a recording of a pair, or "".
func printNext(a *frame.App, pairs []*Pair, shown bool, recording func(*Pair) string) {
	var commands []string
	several := len(byScenario(pairs)) > 1
	if several {
		commands = append(commands, frame.Simrun()+" list explains each scenario")
	}
	broke := func(p *Pair) bool {
		word := p.worst().Word
		return word != play.VerdictHeld && word != play.VerdictNotApplicable
	}
	odd := slices.IndexFunc(pairs, func(p *Pair) bool { return !p.asExpected() })
	i := odd
	if i < 0 {
		i = slices.IndexFunc(pairs, broke)
	}
	switch {
	case i < 0:
	case recording(pairs[i]) != "":
		commands = append(commands, fmt.Sprintf("%s shows a run", frame.Command("replay", recording(pairs[i]))))
	case several && !shown && odd < 0: // the summary has a command for an unexpected run
		commands = append(commands, fmt.Sprintf("%s shows its findings on each lock", frame.Command("run", pairs[i].Scenario.ShortName())))
	}
	if len(commands) > 0 {
		fmt.Fprintf(a.Out, "next: %s\n", strings.Join(commands, ";\n      "))
	}
}

// byScenario returns the pairs of each scenario. The pairs of a scenario follow one another.
func byScenario(pairs []*Pair) (all [][]*Pair) {
	for i, p := range pairs {
		if i == 0 || pairs[i-1].Scenario != p.Scenario {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], p)
	}
	return all
}

// reasons returns why a scenario applies to none of its locks, each reason once.
func reasons(pairs []*Pair) string {
	var all []string
	for _, p := range pairs {
		if why := p.worst().Lacks; !slices.Contains(all, why) {
			all = append(all, why)
		}
	}
	return strings.Join(all, "; ")
}

// mostFirst returns the keys of a count, the largest first.
func mostFirst(count map[string]int) []string {
	return slices.SortedFunc(maps.Keys(count), func(x, y string) int {
		return cmp.Or(cmp.Compare(count[y], count[x]), cmp.Compare(x, y))
	})
}

// printScenarios prints a line per scenario: on how many locks it was played, the runs, whether
// all of them were as expected, and on how many locks each verdict came out. Scenarios that
// apply to none of the locks follow by the reason. If pairs follow, their header is the last
// line.
func printScenarios(a *frame.App, pairs []*Pair, pairsFollow bool) {
	fmt.Fprintf(a.Out, "%-36s %5s %7s  %-8s  %s\n", "scenario", "locks", "runs", "expected", "verdicts by locks")
	lacking := map[string]int{} // the scenarios that apply to no lock, by the reason
	for _, locks := range byScenario(pairs) {
		mark := "yes"
		count := map[play.Word]int{}
		for _, p := range locks {
			count[p.worst().Word]++
			if !p.asExpected() {
				mark = "NO"
			}
		}
		if count[play.VerdictNotApplicable] == len(locks) {
			lacking[reasons(locks)]++
			continue
		}
		var verdicts []string
		for _, w := range bestFirst {
			if count[w] > 0 {
				verdicts = append(verdicts, fmt.Sprintf("%d %s", count[w], w))
			}
		}
		fmt.Fprintf(a.Out, "%-36s %5d %7d  %-8s  %s\n", report.Clip(locks[0].Scenario.Name, 36), len(locks), runsOf(locks), mark, strings.Join(verdicts, ", "))
	}
	for i, lacks := range mostFirst(lacking) {
		if i == 0 {
			fmt.Fprintf(a.Out, "\nScenarios that are %s on each of these locks:\n", play.VerdictNotApplicable)
		}
		fmt.Fprintf(a.Out, "    %s: %s\n", counted.Of(lacking[lacks], "scenario"), lacks)
	}
	if pairsFollow {
		fmt.Fprintln(a.Out)
		printHeader(a)
	}
}

// printTotals prints how many runs of the pairs were not as expected, and returns the last pair
// that has such a run, or nil.
func printTotals(a *frame.App, pairs []*Pair) (last *Pair) {
	var odd uint64
	na := 0
	for _, p := range pairs {
		if n := p.unexpectedRuns(); n > 0 {
			odd += n
			last = p
		}
		if p.worst().Word == play.VerdictNotApplicable {
			na++
		}
	}
	fmt.Fprintf(a.Out, "%s of %s of scenario and lock; %d not as expected", counted.Of(runsOf(pairs), "run"), counted.Of(len(pairs)-na, "pair"), odd)
	if na > 0 {
		fmt.Fprintf(a.Out, "; %s %s", counted.Of(na, "pair"), play.VerdictNotApplicable)
	}
	fmt.Fprintln(a.Out)
	return last
}
