package bench

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/bench/command"
	"lockstep/explore"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// A hunt finds a planted bug that any campaign meets within its first runs, and says that it
// does not find one for which it has no time.
func TestHuntsMeetAPlantedBug(t *testing.T) {
	b := &bench{Options: command.Options{Host: sim.NewHost(t), Rounds: 3}}
	all, err := quarries(b.Host)
	if err != nil {
		t.Fatal(err)
	}
	planted := 0
	var easy quarry
	rows, err := scenarios.Tagged("track-record")
	if err != nil {
		t.Fatal(err)
	}
	for _, sc := range rows {
		if !slices.ContainsFunc(all, func(q quarry) bool { return strings.Contains(q.name, sc.Name) }) {
			t.Errorf("no bug of %s is hunted", sc.Name)
		}
	}
	for _, q := range all {
		if strings.Contains(q.name, model.JudgeWant+" ") && strings.Contains(q.name, "no name: ") {
			t.Errorf("%s: no drawn scenario has a want", q.name)
		}
		if _, err := subject.Find(q.lock); err != nil {
			t.Errorf("%s: %v", q.name, err)
		}
		if strings.HasPrefix(q.name, "planted: ") {
			planted++
		}
		if q.lock == subject.PlantedPrefix+"acquire-grants-to-all" {
			easy = q
		}
	}
	if planted != len(subject.PlantedBugs()) || len(all) < planted+15 {
		t.Errorf("%d bugs, %d of them planted", len(all), planted)
	}
	if easy.seek == nil {
		t.Fatal("the lock that grants to all is not hunted")
	}
	for _, name := range huntStrategies {
		used, runs, err := b.huntOnce(easy, name, 1, time.Minute)
		if err != nil || runs < 1 || used <= 0 {
			t.Errorf("%s with %s: %d runs in %v, error %v", easy.name, name, runs, used, err)
		}
	}
	if used, runs, err := b.huntOnce(all[0], huntStrategies[0], 1, 0); err != nil || runs > 1 || runs == 0 && used != 0 {
		t.Errorf("without time: %d runs in %v, error %v", runs, used, err)
	}
}

// The median is over the seeds. A hunt that did not meet the bug counts with the limit.
func TestTheMedianOfHunts(t *testing.T) {
	h := hunted{Used: []time.Duration{30, 60, 10}, Runs: []int{300, 0, 100}}
	if used, runs := h.medians(); used != 30 || runs != 300 {
		t.Errorf("%v, %d runs; want that of the middle", used, runs)
	}
	h = hunted{Used: []time.Duration{60, 60, 10}, Runs: []int{0, 0, 100}}
	if used, runs := h.medians(); used != 60 || runs != 0 {
		t.Errorf("%v, %d runs; most hunts did not meet it", used, runs)
	}
}

// A hunt that was interrupted goes on with the hunts that are left. A call with other rounds, or
// of another machine, begins anew.
func TestAHuntGoesOn(t *testing.T) {
	hunts := map[string]int{}
	quarries := func(last int) (all []quarry) {
		for _, name := range []string{"one", "two"} {
			all = append(all, quarry{name, plainLock, func(_ *sim.Host, p explore.Plan, _ func() bool) (int, error) {
				if len(hunts) == last {
					return 0, errors.New("interrupted")
				}
				hunts[fmt.Sprint(name, p.Strategy, p.Seed)]++
				return int(p.Seed), nil
			}})
		}
		return all
	}
	b := &bench{Options: command.Options{Rounds: 3, Command: "bench --only hunt"}}
	hunt := func(r *report, last int, m measurement) (*report, error) {
		b.earlier = r.unfinished(m)
		b.keep = func(s section, all []hunted) error {
			m.Section, m.Hunted, m.Unfinished = s, all, len(all) < 2*len(huntStrategies) || len(all[len(all)-1].Runs) < 3
			r.put(m)
			return nil
		}
		_, err := b.huntEach(quarries(last), time.Minute, 0)
		var data bytes.Buffer
		if err := r.WriteData(&data); err != nil {
			t.Fatal(err)
		}
		again, bad := readReport(data.Bytes())
		if bad != nil {
			t.Fatal(bad)
		}
		return again, err
	}
	now := measurement{Part: "hunt", Rounds: 3, Machine: []string{"one"}}
	all := 2 * len(huntStrategies) * 3
	first := all/2 + 1
	r, err := hunt(&report{}, first, now)
	if err == nil || len(hunts) != first {
		t.Fatalf("%d hunts, error %v", len(hunts), err)
	}
	var page strings.Builder
	if err := r.WritePage(&page); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"**Not complete: ", "| one | " + plainLock + " | ", "1 of 2 bugs were hunted."} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("no %q in\n%s", want, &page)
		}
	}
	for _, other := range []measurement{
		{Part: "hunt", Rounds: 4, Machine: now.Machine}, {Part: "hunt", Rounds: 3, Machine: []string{"two"}}, {Part: "hunt", Rounds: 3, Machine: now.Machine, Quick: true},
		{Part: "hunt", Rounds: 3, Machine: now.Machine, Versions: explore.CurrentVersions()}, {Part: "step", Rounds: 3, Machine: now.Machine},
	} {
		if r.unfinished(other) != nil {
			t.Errorf("%+v goes on with what was measured otherwise", other)
		}
	}
	r, err = hunt(r, -1, now)
	if err != nil || len(hunts) != all {
		t.Fatalf("%d of %d hunts, error %v", len(hunts), all, err)
	}
	for name, n := range hunts {
		if n != 1 {
			t.Errorf("the hunt %s was played %d times", name, n)
		}
	}
	if r.unfinished(now) != nil || len(r.all) != 1 || len(r.all[0].Section.Rows) != 2 || len(r.all[0].Section.Goals) != 2 {
		t.Errorf("at the end: %+v", r.all)
	}
}

func TestAHuntIsPlayedOnlyIfItIsNamed(t *testing.T) {
	names := func(only ...string) (names []string) {
		for _, p := range (&bench{Options: command.Options{Only: only}}).chosen() {
			names = append(names, p.name)
		}
		return names
	}
	if got := names(); slices.Contains(got, "hunt") || len(got) != len(parts)-1 {
		t.Errorf("without names these parts are measured: %v", got)
	}
	if got := names("step", "hunt"); !slices.Equal(got, []string{"step", "hunt"}) {
		t.Errorf("of step and hunt these are measured: %v", got)
	}
}
