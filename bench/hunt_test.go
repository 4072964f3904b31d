package bench

import (
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/bench/command"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// A hunt finds a planted bug that any campaign meets within its first runs, and says that it
// does not find one for which it has no time.
func TestHuntsMeetAPlantedBug(t *testing.T) {
	b := &bench{command.Options{Host: sim.NewHost(t), Rounds: 3}}
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
		used, runs, err := b.hunts(easy, name, time.Minute)
		if err != nil || runs < 1 || used <= 0 {
			t.Errorf("%s with %s: %d runs in %v, error %v", easy.name, name, runs, used, err)
		}
	}
	if used, runs, err := b.hunts(all[0], huntStrategies[0], 0); err != nil || runs > 1 || runs == 0 && used != 0 {
		t.Errorf("without time: %d runs in %v, error %v", runs, used, err)
	}
}

func TestAHuntIsPlayedOnlyIfItIsNamed(t *testing.T) {
	names := func(only ...string) (names []string) {
		for _, p := range (&bench{command.Options{Only: only}}).chosen() {
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
