package survey

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"lockstep/explore"
	"lockstep/internal/browsertest"
	"lockstep/internal/longtest"
	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	_ "lockstep/scenarios/subject/builtin"
	"lockstep/sim"
)

func find(t *testing.T, name string) *subject.Subject {
	t.Helper()
	l, err := subject.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// surveyOf surveys a lock by these campaigns.
func surveyOf(t *testing.T, h *sim.Host, l *subject.Subject, o Options, parts []string) Lock {
	t.Helper()
	var played []Part
	for _, name := range parts {
		p, err := Play(h, l, o, name)
		if err != nil {
			t.Fatal(err)
		}
		played = append(played, p)
	}
	return Sum(l, o.Runs, played)
}

// TestASurveyOfALock surveys an old lock with known defects, in a few runs.
func TestASurveyOfALock(t *testing.T) {
	h, lock := sim.NewHost(t), find(t, "redisson@3.4.2")
	o := Options{Runs: 6, Seed: 1, Budget: 5}
	l := surveyOf(t, h, lock, o, Parts())
	if want := len(Campaigns()) * len(Promises); len(l.Cells) != want {
		t.Fatalf("%d cells; want %d", len(l.Cells), want)
	}
	var bugs []Cell
	for _, c := range l.Cells {
		if c.Word == Bug {
			bugs = append(bugs, c)
		}
	}
	if len(bugs) == 0 || len(bugs[0].Defects) == 0 {
		t.Fatalf("no bug that is a known defect in %+v", l.Cells)
	}
	for _, c := range []struct {
		promise, faults string
		want            Word
		reason          string
	}{
		{"fair", NoFaults, NotPromised, "its waiters have no order"},
		{"lost hold told", "pause", NotPromised, "it does not tell a holder that the hold is gone"},
		{"fencing", "crash", NotPromised, "it gives no fencing token"},
		{"not freed by another", NoFaults, Held, ""},
	} {
		if got := l.Cell(c.promise, c.faults); got.Word != c.want || got.Reason != c.reason {
			t.Errorf("%s, %s: %q (%s), %q; want %q, %q", c.promise, c.faults, got.Word, got.Why, got.Reason, c.want, c.reason)
		}
	}
	if runs := o.Runs*(len(Campaigns())-1) + 2*explore.FamilyRuns; l.Judged()+l.Odd != runs { // and the stories
		t.Errorf("%d runs were judged and %d were odd; want %d in all", l.Judged(), l.Odd, runs)
	}
	for _, c := range l.Cells {
		if (c.Word == Bug) != (c.Recording != "") || (c.Word == Limit) != (len(c.Excuses) > 0) {
			t.Errorf("%s, %s: %+v", c.Promise, c.Faults, c)
		}
	}

	rec, sc, of, err := play.ReadRecording("x", []byte(l.Recordings[bugs[0].Recording]))
	if err != nil {
		t.Fatal(err)
	}
	v, diverged := play.Replay(h, rec, sc, of)
	shown := false
	for _, f := range v.Findings {
		shown = shown || f.Class == judges.ClassBug && f.Judge == judgeOf(bugs[0].Promise)
	}
	if diverged != "" || v.Digest() != rec.Digest || !shown {
		t.Errorf("the recording of the bug: diverged %q, digest %s of %s, findings %v", diverged, v.Digest(), rec.Digest, v.Findings)
	}

	names := Parts()
	again := surveyOf(t, h, lock, o, names[:longtest.Size(t, 2, len(names))])
	if whole := len(again.Cells) == len(l.Cells); whole && !reflect.DeepEqual(again, l) || !reflect.DeepEqual(again.Cells, l.Cells[:len(again.Cells)]) {
		t.Error("surveyed twice, it differs")
	}
	testWriting(t, Survey{Command: "simrun survey", Options: o, Locks: []Lock{l}}, bugs[0])
}

func judgeOf(promise string) string {
	for _, p := range Promises {
		if p.Name == promise {
			return p.Judge
		}
	}
	return ""
}

func testWriting(t *testing.T, s Survey, bug Cell) {
	t.Helper()
	var lines, markdown, html bytes.Buffer
	if err := s.WriteJSON(&lines); err != nil {
		t.Fatal(err)
	}
	if err := s.WriteMarkdown(&markdown); err != nil {
		t.Fatal(err)
	}
	if err := s.WritePage(&html); err != nil {
		t.Fatal(err)
	}
	read, _, err := Read(&lines)
	if err != nil {
		t.Fatal(err)
	}
	s.Locks[0].Recordings = nil
	if !reflect.DeepEqual(read, s) {
		t.Errorf("read %+v; want %+v", read, s)
	}
	file := RecordingFile(s.Locks[0].Name, bug.Recording)
	for _, written := range []string{markdown.String(), html.String()} {
		if !strings.Contains(written, "fair: not promised: its waiters have no order") {
			t.Errorf("no reason in:\n%s", written)
		}
		if !strings.Contains(written, file) {
			t.Errorf("no link to %s in:\n%s", file, written)
		}
	}
}

// A recording that gives another run, which a lock with chance of its own may do, is not kept.
func TestARecordingMustRepeat(t *testing.T) {
	h, lock := sim.NewHost(t), find(t, "setnx-del")
	text := "lockstep: 1\nname: one\nlocks: [setnx-del]\nprocesses: {a: {}}\nsteps: {a/1: [lock: {name: x}, unlock: x]}\n"
	sc, err := scenarios.Parse("one.yaml", []byte(text), subject.Find)
	if err != nil {
		t.Fatal(err)
	}
	recorded := play.Run(h, sc, lock, 1).Recording()
	var same, other strings.Builder
	if err := recorded.Write(&same, nil); err != nil {
		t.Fatal(err)
	}
	recorded.Digest = strings.Repeat("0", len(recorded.Digest))
	if err := recorded.Write(&other, nil); err != nil {
		t.Fatal(err)
	}
	c := campaign{host: h, lock: lock}
	for text, want := range map[string]bool{same.String(): true, other.String(): false} {
		if repeats, err := c.repeats(text); repeats != want || err != nil {
			t.Errorf("repeats: %t, %v, want %t", repeats, err, want)
		}
	}
}

func TestASurveyThatIsNoneIsRefused(t *testing.T) {
	for _, text := range []string{"", "{}\n", `{"lock":"x"}` + "\n", "survey\n", `{"survey":"simrun survey"}` + "\n{\n"} {
		if _, _, err := Read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "not a survey") {
			t.Errorf("%q: %v; want an error", text, err)
		}
	}
}

// surveyed is the survey that little returns; nil: it has not been made.
var surveyed *Lock

// little returns the survey of a slow setnx-cad that does not promise all that it might. Several tests
// read it. Each reading of its clock is a minute later than the one before.
func little(t *testing.T) Lock {
	t.Helper()
	if surveyed == nil {
		waived := *find(t, "setnx-cad")
		waived.Promises = model.Promises{
			model.JudgeTidy:      {Waived: true, Source: "an operator sweeps"},
			model.JudgeMisdelete: {Waived: true, Unjudged: true, Source: "it does not say what its server holds"},
		}
		var clock time.Duration
		slow := func() time.Duration { clock += time.Minute; return clock }
		h := sim.NewHost(t)
		o, err := Fit(h, &waived, Options{Runs: 40, Seed: 1, Budget: 20, Seconds: 1}, slow)
		if err != nil {
			t.Fatal(err)
		}
		l := surveyOf(t, h, &waived, o, Parts())
		surveyed = &l
	}
	l := *surveyed
	l.Cells = slices.Clone(l.Cells)
	return l
}

// For a promise that is waived, and for a class of faults that a lock does not have, the survey
// gives the reason.
func TestWhatIsNotAskedHasAReason(t *testing.T) {
	l := little(t)
	all := strings.Join(l.Reasons(), "\n")
	for _, want := range []string{
		"not freed by another: not judged: it does not say what its server holds", "re-entrant: not promised: it counts no levels of a hold",
		"nothing left behind: not promised: an operator sweeps", "faults of the class watchdog: no such fault: nothing renews a hold of the lock",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
}

// A lock may keep a promise in all drawn schedules, and break it in a story.
func TestASurveyTellsStories(t *testing.T) {
	l := little(t)
	if got := l.Summary("one owner at a time"); got.String() != "bug: stories" || got.Recording == "" {
		t.Errorf("one owner at a time: %s; want a bug that only the stories show, with a recording", got)
	}
	if told := l.Cell("one owner at a time", Stories); told.Runs < 180 || !slices.Contains(told.Defects, "late-unlock") {
		t.Errorf("%+v; want late-unlock in some 200 runs", told)
	}
	// In the survey of an older program, which told none, the tables have no such column.
	l.Cells = slices.DeleteFunc(l.Cells, func(c Cell) bool { return c.Faults == Stories })
	s := Survey{Versions: explore.CurrentVersions().Untold(), Locks: []Lock{l}}
	var markdown, page bytes.Buffer
	if err := errors.Join(s.WriteMarkdown(&markdown), s.WritePage(&page)); err != nil {
		t.Fatal(err)
	}
	for _, written := range []string{markdown.String(), page.String()} {
		if strings.Contains(written, "campaign stories") || strings.Contains(written, "| "+Stories+" |") || strings.Contains(written, "<th>"+Stories+"</th>") {
			t.Errorf("stories in the tables of a survey without:\n%s", written)
		}
	}
}

// TestCosts checks the cost of locks whose protocol is known. A request and its reply take one
// round trip.
func TestCosts(t *testing.T) {
	h := sim.NewHost(t)
	for _, c := range []struct {
		lock             string
		acquire, unlock  Exchange
		handOverMessages int
	}{
		{"none", Exchange{}, Exchange{}, 0},
		{"setnx-del", Exchange{1, 2}, Exchange{1, 2}, 4},     // DEL and its reply, SET and its reply
		{"setnx-get-del", Exchange{1, 2}, Exchange{2, 4}, 6}, // GET and its reply, too
		{"reference", Exchange{1, 2}, Exchange{1, 2}, 5},     // a push to the waiter, too
	} {
		got, err := Measure(h, find(t, c.lock))
		if err != nil {
			t.Errorf("%s: %v", c.lock, err)
			continue
		}
		if got.Acquire != c.acquire || got.Unlock != c.unlock || got.HandOverMessages != c.handOverMessages {
			t.Errorf("%s: %+v; want an acquire %v, an unlock %v, a hand-over of %d messages", c.lock, got, c.acquire, c.unlock, c.handOverMessages)
		}
	}
	polls, err := Measure(h, find(t, "setnx-del"))
	if err != nil {
		t.Fatal(err)
	}
	woken, err := Measure(h, find(t, "redisson@4.7.0"))
	if err != nil {
		t.Fatal(err)
	}
	if polls.HandOverMs <= woken.HandOverMs || polls.TenWaiters <= woken.TenWaiters {
		t.Errorf("waiters that ask: %+v; waiters that are woken: %+v", polls, woken)
	}
}

func TestASummarySaysTheWorst(t *testing.T) {
	l := Lock{Cells: []Cell{
		{Promise: "fair", Faults: NoFaults, Word: Held, Runs: 3},
		{Promise: "fair", Faults: "crash", Word: Limit, Runs: 2},
		{Promise: "fair", Faults: "pause", Word: Bug, Runs: 1, Recording: "r"},
		{Promise: "fair", Faults: "network", Word: Bug, Runs: 1, Recording: "s"},
		{Promise: "fencing", Faults: NoFaults, Word: Bug, Recording: "t"},
		{Promise: "fencing", Faults: "crash", Word: Bug, Recording: "u"},
		{Promise: "re-entrant", Faults: NoFaults, Word: Held, Runs: 5},
		{Promise: "re-entrant", Faults: "server", Word: NoSuchFault},
	}}
	for promise, want := range map[string]string{"fair": "bug: pause, network", "fencing": "bug without a fault", "re-entrant": "held"} {
		if got := l.Summary(promise).String(); got != want {
			t.Errorf("%s: %q; want %q", promise, got, want)
		}
	}
	if s := l.Summary("fair"); s.Recording != "r" || s.Runs != 7 {
		t.Errorf("fair: %+v", s)
	}
}

// Each campaign has its own mark. A cell has the marks of the campaigns that its words name.
func TestACellHasTheMarksOfItsCampaigns(t *testing.T) {
	var s Survey
	for _, name := range Campaigns() {
		s.Locks = append(s.Locks, Lock{Cells: []Cell{{Promise: "fair", Faults: name, Word: Held}}})
	}
	named := map[string]string{}
	for i, m := range s.Legend() {
		if other := named[m.Letter]; len(m.Letter) != 1 || other != "" || m.Campaign == "" {
			t.Errorf("%s has the mark %q, as %q", Campaigns()[i], m.Letter, other)
		}
		named[m.Letter] = m.Campaign
	}
	if len(named) != len(Campaigns()) {
		t.Errorf("%d marks of %d campaigns", len(named), len(Campaigns()))
	}
	for _, c := range []struct {
		sum         Summary
		marks, text string
	}{
		{Summary{Word: Bug, Campaigns: []string{"pause", Stories}}, "PK", "bug"},
		{Summary{Word: Limit, Campaigns: []string{"network"}}, "N", "limit"},
		{Summary{Word: Bug, Campaigns: []string{NoFaults, "pause"}}, "0", "bug"},
		{Summary{Word: Held, Campaigns: []string{NoFaults, "pause"}}, "", "held"},
		{Summary{Word: NotPromised, Campaigns: []string{NoFaults}}, "", "–"},
	} {
		marks := ""
		for _, m := range c.sum.Marks() {
			marks += m.Letter
		}
		if marks != c.marks || c.sum.Short() != c.text || c.sum.Sign() == "" {
			t.Errorf("%+v: %q, %q, %q", c.sum, c.sum.Short(), marks, c.sum.Sign())
		}
	}
}

// The table of promises fits on a telephone and on a screen, and none of its rows is as high as its words were.
func TestTheTableOfPromisesFits(t *testing.T) {
	chromium := browsertest.Start(t)
	f, err := os.Open(filepath.Join("..", "..", "results", LocksFile))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	s, _, err := Read(f)
	if err != nil {
		t.Fatal(err)
	}
	var html bytes.Buffer
	if err := s.WritePage(&html); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), PageFile)
	if err := os.WriteFile(file, html.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	p := browsertest.Open(t, chromium, file)
	for width, most := range map[int64]float64{400: 120, 1280: 90} {
		p.Do(chromedp.EmulateViewport(width, 900))
		p.Frame()
		got := browsertest.Eval[[]float64](p, `(() => {
			const table = document.querySelector(".promises"), root = document.documentElement;
			return [table.parentElement.scrollWidth - table.parentElement.clientWidth, root.scrollWidth - root.clientWidth,
				Math.max(...[...table.querySelectorAll("tbody tr")].map(r => r.getBoundingClientRect().height)), table.querySelectorAll("tbody tr").length];
		})()`)
		if got[0] > 0 || got[1] > 0 || got[2] > most || int(got[3]) != len(s.Locks) {
			t.Errorf("%d pixels: the table is %v too wide, the page %v, the highest row is %v high, and there are %v rows of %d", width, got[0], got[1], got[2], got[3], len(s.Locks))
		}
		// One of the two texts of a cell is shown.
		if hidden := browsertest.Eval[float64](p, `[...document.querySelectorAll(".promises td:not(.n)")].filter(e => !!e.querySelector(".word").offsetParent === !!e.querySelector(".sign").offsetParent).length`); hidden > 0 {
			t.Errorf("%d pixels: %v cells show both or neither of their word and their sign", width, hidden)
		}
		if faint := browsertest.Eval[[]string](p, browsertest.Faint); len(faint) > 0 {
			t.Errorf("%d pixels: %d texts are faint: %q", width, len(faint), faint[:min(len(faint), 5)])
		}
	}
	p.Quiet()
}

// Runs that take too long are halved. They never come below the sample.
func TestASlowLockPlaysFewerRuns(t *testing.T) {
	for _, c := range []struct {
		name      string
		runs      int
		each, all time.Duration
		want      int
	}{
		{"in time", 300, 10 * time.Millisecond, 3 * time.Second, 300},
		{"a little slow", 300, 11 * time.Millisecond, 3 * time.Second, 150},
		{"slow", 300, 100 * time.Millisecond, 3 * time.Second, 18},
		{"never below the sample", 300, time.Hour, time.Second, 18},
		{"few", 12, time.Hour, time.Second, 12},
	} {
		if got := halved(c.runs, c.each, c.all); got != c.want {
			t.Errorf("%s: %d runs; want %d", c.name, got, c.want)
		}
	}
	l := little(t)
	if held := l.Cell("one owner at a time", NoFaults); l.Runs != 10 || held.Runs != 10 {
		t.Errorf("%d runs, and %d in a cell; want 10", l.Runs, held.Runs)
	}
	var b bytes.Buffer
	if err := (Survey{Options: Options{Runs: 40}, Locks: []Lock{l}}).WriteMarkdown(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"these met fewer: setnx-cad 10. ", "\n* restart with data, restart without data, failover, script flush, stall: `setnx-cad`\n"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page does not say %q:\n%s", want, b.String())
		}
	}
}

// waiting returns the times of a lock whose waiters may wait 250 ms by design.
func waiting(times func(time.Duration) model.Timing) func(time.Duration) model.Timing {
	return func(watchdog time.Duration) model.Timing {
		t := times(watchdog)
		t.Waits = 250 * time.Millisecond
		return t
	}
}

// If the threads of a lock do not watch the contexts of their holds, the promise to tell of a lost hold is
// judged on the lock by handles, and the other promises on the lock itself.
func TestTheLockByHandlesIsJudgedForWhatItTells(t *testing.T) {
	const planted = subject.PlantedPrefix + "reference-handles-of-one-owner"
	locks := []string{planted, "reference-handle"}
	for _, handles := range locks[:longtest.Size(t, 1, len(locks))] {
		lock := *find(t, "reference")
		lock.Handles, lock.Times = handles, waiting(lock.Times)
		names := Campaigns()
		l := surveyOf(t, sim.NewHost(t), &lock, Options{Runs: 1, Seed: 1, Budget: 1}, names[:longtest.Size(t, 2, len(names))])
		if l.WaitsMs != 250 {
			t.Errorf("a waiter of the lock may wait %d ms by design, want 250", l.WaitsMs)
		}
		for _, c := range l.Cells {
			judged := ""
			if c.Promise == "lost hold told" {
				judged = handles
			}
			broken := c.Word != Held && c.Word != Limit
			// In one of the stories with other faults the server loses a level of a hold.
			lost := c.Faults == Stories && c.Word == Limit && slices.Equal(c.Excuses, []string{"memory of a call removed by another hand"})
			if c.Lock != judged || c.Promise == "re-entrant" && c.Word != Held && !lost || broken && judged == "reference-handle" {
				t.Errorf("%s, %s: %+v; want that %q was judged", c.Promise, c.Faults, c, judged)
			}
		}
		want := "lost hold told: judged on " + handles + ", the same lock taken by handles, whose contexts tell"
		if all := l.Reasons(); !slices.Contains(all, want) {
			t.Errorf("the reasons are %q; want %q", all, want)
		}
		// The recording of a bug names the lock that was judged.
		bug := l.Summary("lost hold told")
		if handles == planted && (bug.Word != Bug || !strings.HasPrefix(bug.Recording, planted+".") || !strings.Contains(l.Recordings[bug.Recording], `"lock":"`+planted+`"`)) {
			t.Errorf("%+v; want a bug with a recording of %s", bug, planted)
		}
	}
}

// Locks whose servers can have the same faults stand together.
func TestASurveySaysWhichFaultsTheServersCouldHave(t *testing.T) {
	s := Survey{Locks: []Lock{{Name: "a", ServerFaults: []string{"stall", "failover"}}, {Name: "b", ServerFaults: []string{"stall"}},
		{Name: "c", ServerFaults: []string{"stall", "failover"}}, {Name: "d", ServerFaults: []string{}}}}
	want := []Weather{{"stall, failover", []string{"a", "c"}}, {"stall", []string{"b"}}, {"none", []string{"d"}}}
	if got := s.Weathers(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %v; want %v", got, want)
	}
}

// A survey that an older program wrote has an older name of a promise.
func TestAnOlderSurveyIsReadWithTheNewNames(t *testing.T) {
	s, _, err := Read(strings.NewReader(`{"survey":"simrun survey"}
{"lock":"a","cells":[{"promise":"live after a crash","faults":"none","word":"bug"},{"promise":"fair","faults":"none","word":"held"}]}
`))
	if err != nil {
		t.Fatal(err)
	}
	for promise, want := range map[string]Word{"no waiter is forgotten": Bug, "fair": Held, "live after a crash": ""} {
		if got := s.Locks[0].Summary(promise).Word; got != want {
			t.Errorf("%s: %q; want %q", promise, got, want)
		}
	}
}
