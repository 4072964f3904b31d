package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockstep/explore"
	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// A hunt finds a planted bug that any campaign meets within its first runs, and says that it
// does not find one for which it has no time.
func TestHuntsMeetAPlantedBug(t *testing.T) {
	b := &bench{Options: Options{Host: sim.NewHost(t), Rounds: 3}}
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
	if easy.planted == nil {
		t.Fatal("the lock that grants to all is not hunted")
	}
	for _, name := range huntStrategies {
		ends, err := chaseOf([]quarry{easy}, name, 1, time.Minute).hunt(b.Host)
		if err != nil || len(ends) != 1 || ends[0].Runs < 1 || ends[0].Used <= 0 {
			t.Errorf("%s with %s: %+v, error %v", easy.name, name, ends, err)
		}
	}
	for _, g := range grounds(all) {
		if len(g) < 2 || all[g[0]].lock != "redisson@3.4.2" {
			continue
		}
		var bugs []quarry
		for _, i := range g {
			bugs = append(bugs, all[i])
		}
		ends, err := served(t, b, chaseOf(bugs, huntStrategies[0], 1, 0))
		if err != nil || len(ends) != len(bugs) {
			t.Fatalf("without time: %+v, error %v", ends, err)
		}
		for _, e := range ends {
			if e.Runs > 1 || e.Runs == 0 && e.Used != 0 {
				t.Errorf("without time: %+v", e)
			}
		}
		return
	}
	t.Error("no campaign hunts several bugs")
}

// served asks for a hunt as another process does.
func served(t *testing.T, b *bench, c chase) (ends []huntEnd, err error) {
	t.Helper()
	var in, out bytes.Buffer
	if err := json.NewEncoder(&in).Encode(c); err != nil {
		t.Fatal(err)
	}
	if err := b.ServeHunts(&in, &out); err != nil {
		return nil, err
	}
	return ends, json.NewDecoder(&out).Decode(&ends)
}

// A process that ends without an answer is an error that says what it wrote.
func TestAHunterThatFailsSaysWhy(t *testing.T) {
	b := &bench{Options: Options{Hunter: func() *exec.Cmd { return exec.Command("sh", "-c", "echo no memory >&2; exit 3") }}}
	_, err := b.huntAway([]quarry{{name: "easy", lock: plainLock}}, huntStrategies[0], 1, 0)
	if err == nil || !strings.Contains(err.Error(), "no memory") || b.hunter != nil {
		t.Errorf("error %v, and the process is %v", err, b.hunter)
	}
}

// The median is over the seeds. It is known when enough hunts met the bug sooner than the others
// were given up.
func TestTheMedianOfHunts(t *testing.T) {
	for _, c := range []struct {
		used, runs string
		want       time.Duration
		in         int
	}{
		{"30 60 10", "300 600 100", 30, 300},
		{"30 60 10", "300 0 100", 30, 300},
		{"60 60 10", "0 0 100", 60, 0},
		{"30 20 10", "300 0 100", 20, 0}, // the second may be met after 25
		{"20 60 60", "0 0 0", 60, 0},     // whatever the first one comes to
		{"20 20 20", "0 5 6", 20, 6},
		{"20 20 20", "0 0 6", 20, 0},
		{"10 20 30 40", "1 2 3 4", 30, 3},
		{"7", "5", 7, 5},
		{"", "", 0, 0},
	} {
		var h hunted
		for _, text := range strings.Fields(c.used) {
			used, _ := strconv.Atoi(text)
			h.Used = append(h.Used, time.Duration(used))
		}
		for _, text := range strings.Fields(c.runs) {
			runs, _ := strconv.Atoi(text)
			h.Runs = append(h.Runs, runs)
		}
		if used, runs := h.median(); used != c.want || runs != c.in {
			t.Errorf("of %s in %s runs: %d, %d runs; want %d, %d", c.used, c.runs, used, runs, c.want, c.in)
		}
	}
}

// A made-up bug is met after need, if the limit is not below.
type madeUp struct {
	name string
	lock string
	need func(seed uint64) time.Duration
}

var madeUps = []madeUp{
	{"easy", plainLock, func(uint64) time.Duration { return 5 }},
	{"hard", plainLock, func(seed uint64) time.Duration { return time.Duration(100 * seed) }},
	{"lost", fairLock, func(uint64) time.Duration { return 1 << 40 }},
}

// hunts are the hunts that were played, each with its limit.
type hunts struct {
	played []string
	last   int // the number of hunts before an interrupt; -1: there is none
}

var madeUpLimits = []time.Duration{20, 250, 400}

// hunt goes on with a report. It returns the report that a later call reads.
func (x *hunts) hunt(t *testing.T, r *report, m measurement) (*report, error) {
	t.Helper()
	b := &bench{Options: Options{Rounds: 3, Command: "bench --only hunt"}}
	b.once = func(bugs []quarry, name string, seed uint64, limit time.Duration) (ends []huntEnd, err error) {
		if len(x.played) == x.last {
			return nil, errors.New("interrupted")
		}
		var names []string
		for _, q := range bugs {
			names = append(names, q.name)
			i := slices.IndexFunc(madeUps, func(m madeUp) bool { return m.name == q.name })
			if need := madeUps[i].need(seed); need <= limit {
				ends = append(ends, huntEnd{need, int(need)})
			} else {
				ends = append(ends, huntEnd{limit, 0})
			}
		}
		x.played = append(x.played, fmt.Sprintf("%s %s %d %d", strings.Join(names, "+"), name, seed, limit))
		return ends, nil
	}
	b.earlier = r.unfinished(m)
	b.keep = func(s section, all []hunted) error {
		m.Section, m.Hunted, m.Unfinished = s, all, true
		r.put(m)
		return nil
	}
	var all []quarry
	for _, m := range madeUps {
		all = append(all, quarry{name: m.name, lock: m.lock})
	}
	_, err := b.huntEach(all, 3, madeUpLimits, 0)
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

// Each strategy hunts all bugs with each seed and the first limit. If the median is not known, the hunts
// that met nothing are repeated with the next limit. The default has all limits, the baseline has all but
// the last one, and each other strategy has only the first one.
func TestHuntsGetMoreTimeWhereTheMedianIsNotKnown(t *testing.T) {
	x := &hunts{last: -1}
	r, err := x.hunt(t, &report{}, measurement{Part: "hunt", Rounds: 3})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for n, played := range []string{
		"easy+hard %s 1 20, lost %s 1 20, easy+hard %s 2 20, lost %s 2 20, easy+hard %s 3 20, lost %s 3 20",
		// The limit 250 meets hard with the seeds 1 and 2, so its median is known. The seed 3 gets no
		// more time than that. The median of lost is beyond each limit once two hunts have met nothing.
		"hard %s 1 250, lost %s 1 250, hard %s 2 250, lost %s 2 250, hard %s 3 200",
		"lost %s 1 400, lost %s 2 400",
	} {
		for _, hunt := range strings.Split(played, ", ") {
			for k, name := range huntStrategies {
				if n == 0 || n == 1 && k < 2 || k == 1 {
					want = append(want, strings.ReplaceAll(hunt, "%s", name))
				}
			}
		}
	}
	if !slices.Equal(x.played, want) {
		t.Errorf("played\n%s\nwant\n%s", strings.Join(x.played, "\n"), strings.Join(want, "\n"))
	}
	s := r.all[0].Section
	for i, want := range [][]string{{"easy", "5.00 ns (5)", "5.00 ns (5)", "5.00 ns (5)"}, {"hard", "200 ns (200)", "200 ns (200)", "> 20.0 ns"}, {"lost", "> 250 ns", "> 400 ns", "> 20.0 ns"}} {
		if row := s.Rows[i]; row[0] != want[0] || !slices.Equal(row[2:5], want[1:]) {
			t.Errorf("row %d is %q, want %q", i, row, want)
		}
	}
	text := strings.Join(s.After, "\n")
	if !strings.Contains(text, "Within 20.0 ns, plain met the bug in 3 of 9 hunts, and has 1 of 3 medians. The sum of its medians is 455 ns, if those beyond 250 ns count as 250 ns.") ||
		!strings.Contains(text, "\nWithin 20.0 ns, tapct met the bug in 3 of 9 hunts, and has 1 of 3 medians.") || strings.Contains(text, "not all played") {
		t.Errorf("below the table: %s", text)
	}
	if len(s.Goals) != 2 || s.Goals[0].Met || s.Goals[0].Measured != "1.00" || s.Goals[1].Met || s.Goals[1].Measured != "2" || s.Goals[1].Short != "Beyond that: lost." {
		t.Errorf("the goals are %+v", s.Goals)
	}
}

// A hunt that was interrupted goes on with the hunts that are left. A call with other rounds, or
// of another machine, begins anew.
func TestAHuntGoesOn(t *testing.T) {
	whole := &hunts{last: -1}
	now := measurement{Part: "hunt", Rounds: 3, Machine: []string{"one"}}
	want, err := whole.hunt(t, &report{}, now)
	if err != nil {
		t.Fatal(err)
	}
	for first := range len(whole.played) {
		x := &hunts{last: first}
		r, err := x.hunt(t, &report{}, now)
		if err == nil || len(x.played) != first {
			t.Fatalf("%d of %d hunts, error %v", len(x.played), first, err)
		}
		if first == 2 {
			var page strings.Builder
			if err := r.WritePage(&page); err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"**Not complete: ", "| easy | " + plainLock + " | 5.00 ns (5) | 5.00 ns (5) |   |", " Its hunts are not all played: each bug was hunted with at least 0 of 3 seeds.", "No bug was hunted with tapct."} {
				if !strings.Contains(page.String(), want) {
					t.Errorf("no %q in\n%s", want, &page)
				}
			}
			for _, other := range []measurement{
				{Part: "hunt", Rounds: 4, Machine: now.Machine}, {Part: "hunt", Rounds: 3, Machine: []string{"two"}}, {Part: "hunt", Rounds: 3, Machine: now.Machine, Quick: true},
				{Part: "hunt", Rounds: 3, Machine: now.Machine, Versions: explore.CurrentVersions()}, {Part: "step", Rounds: 3, Machine: now.Machine},
			} {
				if r.unfinished(other) != nil {
					t.Errorf("%+v goes on with hunts that were measured otherwise", other)
				}
			}
		}
		x.last = -1
		r, err = x.hunt(t, r, now)
		if err != nil || !slices.Equal(x.played, whole.played) {
			t.Fatalf("interrupted after %d hunts: error %v, played\n%s", first, err, strings.Join(x.played, "\n"))
		}
		if !reflect.DeepEqual(r.all[0].Section, want.all[0].Section) {
			t.Errorf("interrupted after %d hunts: %+v, want %+v", first, r.all[0].Section, want.all[0].Section)
		}
	}
}

// It goes on with the hunts on a lock in whose records older judges find the same.
func TestAHuntGoesOnWithOtherJudges(t *testing.T) {
	now := measurement{Part: "hunt", Versions: explore.CurrentVersions()}
	for _, name := range []string{plainLock, "redisson-handle@4.7.0"} {
		lock, err := subject.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		same := judges.VersionOf(lock.Traits)
		for version, kept := range map[int]int{same: 1, same - 1: 0} {
			before := measurement{Part: "hunt", Versions: now.Versions, Unfinished: true, Hunted: []hunted{{Lock: name}}}
			before.Versions.Judges = version
			r := &report{all: []measurement{before}}
			if got := r.unfinished(now); got == nil || len(got.Hunted) != kept {
				t.Errorf("hunts on %s with judges %d: it goes on with %+v", name, version, got)
			}
			r.all[0].Versions.World--
			if r.unfinished(now) != nil {
				t.Errorf("hunts on %s: it goes on with those of another world", name)
			}
		}
	}
}

// After a change of the stories it plays the hunts of told anew, and no others.
func TestAHuntGoesOnWithOtherStories(t *testing.T) {
	now := measurement{Part: "hunt", Versions: explore.CurrentVersions()}
	for _, stories := range []int{now.Versions.Stories - 1, explore.NotUsed} {
		before := measurement{Part: "hunt", Versions: now.Versions, Unfinished: true}
		before.Versions.Stories = stories
		for _, name := range huntStrategies {
			before.Hunted = append(before.Hunted, hunted{Lock: plainLock, Strategy: name})
		}
		r := &report{all: []measurement{before}}
		got := r.unfinished(now)
		if got == nil || len(got.Hunted) != len(huntStrategies)-1 || slices.ContainsFunc(got.Hunted, func(h hunted) bool { return h.Strategy == explore.StrategyTold }) {
			t.Errorf("after stories %d: it goes on with %+v", stories, got)
		}
	}
}

func TestAHuntIsPlayedOnlyIfItIsNamed(t *testing.T) {
	names := func(only ...string) (names []string) {
		for _, p := range (&bench{Options: Options{Only: only}}).chosen() {
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
