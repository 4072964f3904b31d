package report_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"lockstep/internal/browsertest"
	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/model/trace"
	"lockstep/report"
	"lockstep/report/sentence"
	"lockstep/report/site"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	_ "lockstep/scenarios/subject/builtin"
	"lockstep/sim"
)

// verdictOf runs a scenario on a lock with seed 1.
func verdictOf(t *testing.T, sc *scenarios.Scenario, lock string) play.Verdict {
	t.Helper()
	l, err := subject.Find(lock)
	if err != nil {
		t.Fatal(err)
	}
	return play.Run(sim.NewHost(t), sc, l, 1)
}

// played runs a built-in scenario and returns the run that a report shows.
func played(t *testing.T, scenario, lock string) report.Run {
	t.Helper()
	sc, err := scenarios.Find(scenario)
	if err != nil {
		t.Fatal(err)
	}
	v := verdictOf(t, sc, lock)
	return report.Run{
		Scenario: sc.Name, About: sc.About, Lock: lock, Seed: 1, Verdict: string(v.Word), Expected: v.Expected, Why: sentence.Verdict(v),
		Replay: "replay it", Digest: v.Digest(), Record: v.Played.Record, Findings: v.Findings,
	}
}

func html(t testing.TB, r report.Run) []byte {
	t.Helper()
	var pictures []report.Picture
	run := trace.New(r.Record)
	for _, lock := range run.Locks {
		var b bytes.Buffer
		if err := judges.Picture(run, lock, &b); err != nil {
			pictures = append(pictures, report.Picture{Lock: lock, Why: err.Error()})
			continue
		}
		pictures = append(pictures, report.Picture{Lock: lock, HTML: b.String()})
	}
	var b bytes.Buffer
	if err := report.WriteHTML(&b, r, pictures); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// open shows a page from disk.
func open(t testing.TB, browser context.Context, page []byte) *browsertest.Tab {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.html")
	if err := os.WriteFile(file, page, 0o644); err != nil {
		t.Fatal(err)
	}
	return browsertest.Open(t, browser, file)
}

// inView reports whether a mark of a judge is inside the chart, and the chart inside the
// window.
const inView = `(judge => {
	const chart = document.getElementById("chart").getBoundingClientRect();
	return chart.top >= 0 && chart.top < innerHeight && [...document.querySelectorAll(".mark")].some(m => {
		const r = m.querySelector(".find").getBoundingClientRect();
		return m.dataset.judge === judge && r.left >= chart.left + 130 && r.left <= chart.right;
	});
})`

func TestPages(t *testing.T) {
	chromium := browsertest.Start(t)
	for _, c := range []struct {
		what string
		test func(*testing.T, context.Context)
	}{
		{"the page of a story", thePageOfAStory},
		{"stepping", stepping},
		{"a hold nobody knows of", aHoldNobodyKnowsOf},
		{"the legend explains the signs", theLegendExplainsTheSigns},
		{"names that are cut", namesThatAreCut},
		{"filters", filters},
		{"by keyboard", byKeyboard},
		{"light and dark are readable", lightAndDark},
		{"the picture of a page that is served", thePictureOfAServedPage},
		{"the look of a page", theLookOfAPage},
		{"many threads", manyThreads},
		{"names are text", namesAreText},
		{"pages that share a file", pagesThatShareAFile},
		{"the title of a page", theTitleOfAPage},
		{"findings are whole", findingsAreWhole},
		{"the instants of a short run", theInstantsOfAShortRun},
		{"the graph of a campaign", theGraphOfACampaign},
		{"the index on a small screen", theIndexOnASmallScreen},
		{"a long run on a site", aLongRunOnASite},
		{"the index", theIndex},
		{"a served index follows its folder", theServedIndex},
	} {
		t.Run(c.what, func(t *testing.T) { c.test(t, chromium) })
	}
}

// stories lists the five runs that docs/ has pictures of. shows lists texts that the chart
// must contain when the page is opened.
var stories = []struct {
	scenario, lock, judge string
	shows                 []string
}{
	{"misdelete", "setnx-del", "misdelete", []string{"a/1 believes", "b/1 believes", "unlock (DEL) of a/1"}},
	{"unlock-reply-lost", "redisson@3.21.3", "mutual-exclusion", []string{"a/1 believes", "b/1 believes", "both believe", "lost at"}},
	{"one-failed-renewal-ends-it", "redisson@3.43.0", "mutual-exclusion", []string{"a/1 believes", "b/1 believes", "both believe", "error renew request"}},
	{"pause-past-lease", "redisson@4.7.0", "mutual-exclusion", []string{"a/1 believes", "b/1 believes", "both believe", "pause of a"}},
	{"fair-dead-waiters-add-up", "redisson-fair@3.21.3", "liveness", []string{"a/1 believes", "g/1 believes", "crash of f", "in the queue: b/1"}},
}

// The page says that the server has the lock for a thread that does not believe to hold it.
func aHoldNobodyKnowsOf(t *testing.T, chromium context.Context) {
	p := open(t, chromium, html(t, played(t, "interrupted-trylock-renewed-forever", "redisson@4.7.0")))
	if got := p.Text("#state .wrong"); got != "does not believe to hold orders, but the server has it for a/1" {
		t.Errorf("of a/1 the state says %q", got)
	}
	p.Quiet()
}

func thePageOfAStory(t *testing.T, chromium context.Context) {
	for _, s := range stories {
		t.Run(s.scenario, func(t *testing.T) {
			p := open(t, chromium, html(t, played(t, s.scenario, s.lock)))
			if why := p.Text("#findings li p"); !strings.Contains(why, s.judge) {
				t.Errorf("the first finding reads %q", why)
			}
			// When it is opened, the page shows the sentence, the state, the mark, and the
			// events before it in 1280 by 800 pixels.
			for _, selector := range []string{"#findings li p", "#server table", "#threads table", "#chart", "#find"} {
				if bottom := browsertest.Eval[float64](p, `document.querySelector("`+selector+`").getBoundingClientRect().bottom`); bottom > 800 {
					t.Errorf("%s ends at %v", selector, bottom)
				}
			}
			if !browsertest.Eval[bool](p, inView+`("`+s.judge+`")`) {
				t.Error("the finding is not in view")
			}
			seen := browsertest.Eval[[]string](p, `drawn.filter(d => d.text && d.x < W && (d.x2 || d.x + d.w) > LEFT && d.y < shownTall).map(d => d.text)`)
			for _, want := range s.shows {
				if !slices.ContainsFunc(seen, func(text string) bool { return strings.Contains(text, want) }) {
					t.Errorf("%q is not in view", want)
				}
			}
			// Leave the finding and zoom in. One click leads back to it.
			p.Do(chromedp.Focus(chromedp.CSS("#chart")), chromedp.KeyEvent(kb.End))
			for range 6 {
				p.Do(chromedp.KeyEvent("+"))
			}
			if browsertest.Eval[bool](p, inView+`("`+s.judge+`")`) {
				t.Error("the finding is in view before anybody went to it")
			}
			p.Do(chromedp.Click(chromedp.CSS(".go")))
			if !browsertest.Eval[bool](p, inView+`("`+s.judge+`")`) {
				t.Error("after the click the finding is not in view")
			}
			selected := p.Text("#events li[aria-selected=true]")
			if !strings.Contains(selected, "▶") {
				t.Errorf("the list's line is %q", selected)
			}
			arrowsEndWhereTheyBelong(t, p)
			p.Quiet()
		})
	}
}

// An arrow ends on the lane of its own thread, watchdog or server, or between two lanes.
func arrowsEndWhereTheyBelong(t *testing.T, p *browsertest.Tab) {
	t.Helper()
	p.Script(`view(first(), last()); draw()`)
	p.Looks(func(at string) {
		got := browsertest.Eval[[]string](p, `drawn.filter(d => ["message", "lost", "unanswered"].includes(d.kind)).filter(d => {
			const on = geometry.findLastIndex(o => o && d.y2 > o.y && d.y2 < o.y + o.h);
			return on >= 0 && D.lanes[on].kind !== "server" && !d.text.includes(" of " + D.lanes[on].name + ",");
		}).map(d => d.text)`)
		if len(got) > 0 {
			t.Errorf("%s: these end on the lane of another: %q", at, got)
		}
	})
	if n := browsertest.Eval[int](p, `drawn.filter(d => ["message", "lost"].includes(d.kind)).length`); n < 5 {
		t.Errorf("only %d arrows are drawn", n)
	}
}

func stepping(t *testing.T, chromium context.Context) {
	p := open(t, chromium, html(t, played(t, "misdelete", "setnx-del")))
	p.Do(chromedp.Focus(chromedp.CSS("#events")), chromedp.KeyEvent(kb.Home))
	server := `[...document.querySelectorAll("#state td")][0].textContent`
	if names := browsertest.Eval[string](p, `[...document.querySelectorAll("#state th")].map(th => th.textContent).join(" ")`); strings.Contains(names, "queue") {
		t.Errorf("a lock without a queue has one among its rows: %s", names)
	}
	var seen []string
	for range 60 {
		if s := browsertest.Eval[string](p, server); len(seen) == 0 || seen[len(seen)-1] != s {
			seen = append(seen, s)
		}
		p.Do(chromedp.KeyEvent(kb.ArrowRight))
	}
	free := "nobody: the lock is free"
	if want := []string{free, "a/1", free, "b/1", free}; !slices.Equal(seen, want) {
		t.Errorf("step by step the server holds %q, want %q", seen, want)
	}
	last := p.Text("#events li[aria-selected=true]")
	p.Do(chromedp.KeyEvent(kb.ArrowLeft))
	if p.Text("#events li[aria-selected=true]") == last {
		t.Errorf("a step back changes nothing: %s", last)
	}
	// The state contrasts the belief of a thread with the state of the server.
	p.Do(chromedp.Click(chromedp.CSS(".go")))
	if wrong := p.Text("#state .wrong"); !strings.Contains(wrong, "believes to hold orders") || !strings.Contains(wrong, "on the server it is free") {
		t.Errorf("at the finding the state says %q", wrong)
	}
	// The mouse shows another instant and does not change the chosen one.
	chosen := p.Text("#now")
	p.Script(`{const c = document.getElementById("chart"), r = c.getBoundingClientRect();
		c.dispatchEvent(new PointerEvent("pointermove", {clientX: r.left + 140, clientY: r.top + 80, bubbles: true}))}`)
	p.Frame()
	if p.Text("#now") == chosen {
		t.Error("moving over the chart shows no other instant")
	}
	p.Script(`document.getElementById("chart").dispatchEvent(new PointerEvent("pointerleave"))`)
	if p.Text("#now") != chosen {
		t.Error("the chosen instant is lost")
	}
	p.Quiet()
}

// The legend has the signs that the chart draws, and no others.
func theLegendExplainsTheSigns(t *testing.T, chromium context.Context) {
	for _, c := range []struct {
		scenario, lock string
		has, lacks     []string
	}{
		{"misdelete", "setnx-del", []string{"uses a resource", "a finding", "the chosen event", "a client closed"}, []string{"a process died", "two believe"}},
		{"fair-dead-waiters-add-up", "redisson-fair@3.21.3", []string{"a process died"}, []string{"uses a resource"}},
		{"pause-past-lease", "redisson@4.7.0", []string{"two believe to hold", "lost on the way, ⚡ struck by a fault"}, []string{"a process died"}},
	} {
		legend := open(t, chromium, html(t, played(t, c.scenario, c.lock))).Text(".legend")
		for _, want := range c.has {
			if !strings.Contains(legend, want) {
				t.Errorf("%s: the legend lacks %q: %s", c.scenario, want, legend)
			}
		}
		for _, other := range c.lacks {
			if strings.Contains(legend, other) {
				t.Errorf("%s: the legend has %q: %s", c.scenario, other, legend)
			}
		}
	}
}

// Names of lanes are whole where there is room, and words in boxes give way to shorter ones.
func namesThatAreCut(t *testing.T, chromium context.Context) {
	r := long(20)
	r.Record.Params.Processes[0].Name = "warehouse-service"
	p := open(t, chromium, html(t, r))
	if got := browsertest.Eval[string](p, `document.querySelector("#names .name").firstChild.textContent`); got != "warehouse-service/1" {
		t.Errorf("the lane has the name %q", got)
	}
	p.Do(chromedp.EmulateViewport(400, 800))
	p.Frame()
	for text, want := range map[string]string{
		`label(1000, "lock: granted", "lock")`:               "lock: granted",
		`label(inked("lock") + 1, "lock: granted", "lock")`:  "lock",
		`label(inked("lock") - 4, "lock: granted", "lock")`:  "lo…",
		`label(10, "lock: granted", "lock")`:                 "",
		`label(inked("lock: granted"), "lock: granted", "")`: "lock: granted",
	} {
		if got := browsertest.Eval[string](p, text); got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
}

func filters(t *testing.T, chromium context.Context) {
	r := played(t, "unlock-reply-lost", "redisson@3.21.3")
	// The record has another lock, which nobody held.
	r.Record.Add(model.Event{AtNs: r.Record.Events[len(r.Record.Events)-1].AtNs, Kind: model.KindInvoke, Process: "b", Thread: 1, Op: 99, Action: model.ActLock, Lock: "spare"})
	p := open(t, chromium, html(t, r))
	lanes := func() []string {
		return browsertest.Eval[[]string](p, `[...document.querySelectorAll("#chart svg text.name")].map(t => t.firstChild.data)`)
	}
	rows := func() int { return browsertest.Eval[int](p, `document.querySelectorAll("#events li").length`) }
	set := func(id, value string) {
		p.Script(`{const s = document.getElementById(%q); s.value = %q; s.dispatchEvent(new Event("change"))}`, id, value)
	}
	all := rows()
	if got := lanes(); !slices.Equal(got, []string{"a/1", "a watchdog", "b/1", "b watchdog", "server: orders", "server: spare"}) {
		t.Fatalf("lanes %q", got)
	}
	set("lock", "spare")
	if got := lanes(); slices.Contains(got, "server: orders") || rows() >= all {
		t.Errorf("with the lock spare the lanes are %q, and %d of %d lines", got, rows(), all)
	}
	set("lock", "")
	set("process", "b")
	if got := lanes(); slices.Contains(got, "a/1") || !slices.Contains(got, "server: orders") || rows() >= all {
		t.Errorf("with process b the lanes are %q, and %d of %d lines", got, rows(), all)
	}
	set("process", "")
	set("judge", "hold-count")
	marks := browsertest.Eval[[]string](p, `[...new Set([...document.querySelectorAll(".mark")].map(m => m.dataset.judge))]`)
	if !slices.Equal(marks, []string{"hold-count"}) || rows() >= all {
		t.Errorf("with one judge the marks are %q, and %d of %d lines", marks, rows(), all)
	}
	set("judge", "")
	if rows() != all {
		t.Errorf("without filters %d of %d lines", rows(), all)
	}
	p.Quiet()
}

func theLookOfAPage(t *testing.T, chromium context.Context) {
	r := played(t, "unlock-reply-lost", "redisson@3.21.3")
	r.Blame = &report.Curve{Judge: "mutual-exclusion", Of: 9, Runs: 4, Points: []report.CurvePoint{{Kept: 0, Failed: 1}, {Kept: 9, Failed: 4}}}
	p := open(t, chromium, html(t, r))
	if n := browsertest.Eval[int](p, `document.querySelectorAll("#curve circle").length`); n != 2 {
		t.Errorf("the curve has %d points, want 2", n)
	}
	if n := browsertest.Eval[int](p, `drawn.filter(d => d.kind === "lost").length`); n != 1 {
		t.Errorf("%d arrows end in the air, want that of the lost reply", n)
	}
	background := `getComputedStyle(document.body).backgroundColor`
	p.Do(chromedp.Click(chromedp.CSS("#theme")))
	first := browsertest.Eval[string](p, background)
	p.Do(chromedp.Click(chromedp.CSS("#theme")))
	if second := browsertest.Eval[string](p, background); first == second {
		t.Errorf("light and dark are both %s", first)
	}
	// Colour is never the only sign: the bands of two owners also differ in pattern and name
	// their owner.
	if hatches := browsertest.Eval[[]string](p, `[...new Set(drawn.filter(d => d.kind === "belief" || d.kind === "truth").map(d => d.text.match(/[ab].1/)[0] + " " + Object.keys(hatch).find(k => hatch[k] === d.fill)))]`); !slices.Equal(hatches, []string{"a/1 0", "b/1 1"}) {
		t.Errorf("owners and their patterns: %q", hatches)
	}
	if hatches := browsertest.Eval[int](p, `new Set(hatches).size`); hatches != 8 {
		t.Errorf("%d patterns, want one for each of 8 owners", hatches)
	}
	width := `drawn.find(d => d.kind === "belief").w`
	before := browsertest.Eval[float64](p, width)
	p.Do(chromedp.Click(chromedp.CSS("#true")))
	if now := browsertest.Eval[float64](p, width); now == before {
		t.Error("true to time looks like the other axis")
	}
	// Texts do not overlap.
	ghost := open(t, chromium, html(t, played(t, "fair-ghost-after-reply-timeout", "redisson-fair@3.21.3")))
	if said := browsertest.Eval[[]int](ghost, `[notes.length, notes.filter((a, i) => notes.some((b, j) => i < j && a.x < b.x + b.w && b.x < a.x + a.w && Math.abs(a.y - b.y) < 11)).length]`); said[0] < 4 || said[1] != 0 {
		t.Errorf("of %d words %d lie on others", said[0], said[1])
	}
	// The page describes the mark under the mouse.
	if told := browsertest.Eval[string](p, `{const d = drawn.find(d => d.kind === "lost"); under((d.x + d.x2) / 2, (d.y + d.y2) / 2)}`); !strings.Contains(told, "lost at") {
		t.Errorf("of the lost message the mouse learns %q", told)
	}
	p.Quiet()
	// Porcupine's picture opens as a page of its own and shows the faults, too.
	if text := pictureOf(t, p.Context); !strings.Contains(text, "answered released") || !strings.Contains(text, "drop unlock reply of a") {
		t.Errorf("porcupine's picture reads %q", text)
	}
}

// The keyboard can do everything that the mouse can do.
func byKeyboard(t *testing.T, chromium context.Context) {
	p := open(t, chromium, html(t, played(t, "unlock-reply-lost", "redisson@3.21.3")))
	var reached []string
	for range 40 {
		p.Do(chromedp.KeyEvent(kb.Tab))
		reached = append(reached, browsertest.Eval[string](p, `document.activeElement.id || document.activeElement.className`))
		if now := browsertest.Eval[string](p, `getComputedStyle(document.activeElement).outlineStyle`); now == "none" && reached[len(reached)-1] != "" {
			t.Errorf("nobody sees that %s has the focus", reached[len(reached)-1])
		}
	}
	for _, want := range []string{"theme", "go", "state", "lock", "process", "judge", "back", "next", "in", "out", "all", "true", "find", "chart", "events", "picture"} {
		if !slices.Contains(reached, want) {
			t.Errorf("Tab does not reach %s, of %q", want, reached)
		}
	}
	width := func() float64 { return browsertest.Eval[float64](p, `S.u1 - S.u0`) }
	press := func(key string) float64 {
		p.Do(chromedp.KeyEvent(key))
		return width()
	}
	p.Do(chromedp.Focus(chromedp.CSS("#chart")))
	whole := press("0")
	near := press("+")
	if far := press("-"); near >= whole || far <= near {
		t.Errorf("widths %v, after + %v, after - %v", whole, near, far)
	}
	p.Do(chromedp.Focus(chromedp.CSS("#events")), chromedp.KeyEvent(kb.Home))
	chosen := func() string { return p.Text("#events li[aria-selected=true]") }
	begin := chosen()
	p.Do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown))
	down := chosen()
	p.Do(chromedp.KeyEvent(kb.ArrowUp), chromedp.KeyEvent(kb.ArrowUp))
	if down == begin || chosen() != begin {
		t.Errorf("the list goes from %q down to %q and up to %q", begin, down, chosen())
	}
	p.Do(chromedp.KeyEvent("f"))
	if got := chosen(); !strings.Contains(got, "▶") {
		t.Errorf("f goes to %q", got)
	}
	p.Quiet()
}

// contrast computes the contrast of two colours of the page as WCAG 2 defines it.
const contrast = `((a, b) => {
	const ink = document.createElement("canvas").getContext("2d", {willReadFrequently: true}), style = getComputedStyle(document.documentElement);
	const light = name => {
		ink.fillStyle = style.getPropertyValue("--" + name);
		ink.fillRect(0, 0, 1, 1);
		const [r, g, b] = [...ink.getImageData(0, 0, 1, 1).data].map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
		return 0.2126 * r + 0.7152 * g + 0.0722 * b;
	};
	const [x, y] = [light(a), light(b)];
	return (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
})`

func lightAndDark(t *testing.T, chromium context.Context) {
	p := open(t, chromium, html(t, played(t, "misdelete", "redisson@4.7.0"))) // a run that held
	if got := browsertest.Eval[float64](p, `document.querySelector("header").getBoundingClientRect().height`); got > 100 {
		t.Errorf("the head of the page takes %v pixels", got)
	}
	pairs := [][2]string{
		{"fg", "bg"}, {"fg", "lane"}, {"fg", "card"}, {"fg", "bar"}, {"soft", "bg"}, {"soft", "lane"}, {"bad", "bg"}, {"bad", "badbg"}, {"bad", "lane"},
		{"warn", "warnbg"}, {"warn", "card"}, {"good", "goodbg"}, {"odd", "oddbg"}, {"fault", "bg"}, {"mark", "bg"}, {"mark", "card"}, {"bg", "bad"}, {"bg", "warn"}, {"bg", "mark"},
	}
	for i := range 8 {
		pairs = append(pairs, [2]string{"fg", fmt.Sprintf("o%d", i)})
	}
	var seen []string
	for range 2 {
		theme := browsertest.Eval[string](p, `document.documentElement.dataset.theme`)
		seen = append(seen, theme)
		for _, c := range pairs {
			if got := browsertest.Eval[float64](p, fmt.Sprintf(`%s(%q, %q)`, contrast, c[0], c[1])); got < 4.5 {
				t.Errorf("%s: %s on %s has a contrast of %.1f, want 4.5", theme, c[0], c[1], got)
			}
		}
		p.Do(chromedp.Click(chromedp.CSS("#theme")))
	}
	slices.Sort(seen)
	if !slices.Equal(seen, []string{"dark", "light"}) {
		t.Errorf("themes %q", seen)
	}
}

// A page of simrun serve opens porcupine's picture with the faults, as a page on disk does.
func thePictureOfAServedPage(t *testing.T, chromium context.Context) {
	page := html(t, played(t, "unlock-reply-lost", "redisson@3.21.3"))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write(page)
	}))
	defer server.Close()
	ctx, stop := chromedp.NewContext(chromium)
	defer stop()
	if err := chromedp.Do(ctx, chromedp.Navigate(server.URL)); err != nil {
		t.Fatal(err)
	}
	if text := pictureOf(t, ctx); !strings.Contains(text, "answered released") || !strings.Contains(text, "drop unlock reply of a") {
		t.Errorf("porcupine's picture reads %q", text)
	}
}

// pictureOf clicks for porcupine's picture and returns its text.
func pictureOf(t *testing.T, ctx context.Context) string {
	t.Helper()
	text, err := chromedp.Run(pictureTab(t, ctx), chromedp.Text(chromedp.CSS("#canvas")))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func pictureTab(t *testing.T, ctx context.Context) context.Context {
	t.Helper()
	opened := chromedp.WaitNewTarget(ctx, func(i *target.Info) bool { return strings.HasPrefix(i.URL, "blob:") })
	if err := chromedp.Do(ctx, chromedp.Click(chromedp.CSS(".picture"))); err != nil {
		t.Fatal(err)
	}
	picture, stop := chromedp.NewContext(ctx, chromedp.WithTargetID(<-opened))
	t.Cleanup(stop)
	return picture
}

// Of a hundred threads only the active ones are shown.
func manyThreads(t *testing.T, chromium context.Context) {
	r := played(t, "misdelete", "setnx-del")
	r.Record.Params.Processes[1].Threads = 100
	p := open(t, chromium, html(t, r))
	threads := `[...document.querySelectorAll("#chart svg text.name")].map(t => t.firstChild.data).filter(t => t.includes("/"))`
	if got := browsertest.Eval[[]string](p, threads); !slices.Equal(got, []string{"a/1", "b/1"}) {
		t.Errorf("the lanes are %q", got)
	}
	// All threads are too many for the window. They scroll, and the server stays in place.
	p.Do(chromedp.Click(chromedp.CSS("#quiet")))
	names := func() []string {
		p.Frame()
		return browsertest.Eval[[]string](p, `[...document.querySelectorAll("#chart svg text.name")].map(t => t.firstChild.data)`)
	}
	top := names()
	p.Script(`chart.scrollTop = 1e6`)
	end := names()
	if !slices.Contains(top, "a/1") || !slices.Contains(top, "server: orders") || !slices.Contains(end, "b/100") || !slices.Contains(end, "server: orders") || slices.Contains(end, "a/1") {
		t.Errorf("the lanes are %q above and %q below", top, end)
	}
	if got := browsertest.Eval[float64](p, `chart.getBoundingClientRect().height`); got > 800 {
		t.Errorf("the chart has %v pixels", got)
	}
	p.Quiet()
}

func namesAreText(t *testing.T, chromium context.Context) {
	r := played(t, "misdelete", "setnx-del")
	const evil = `</script><img src=x onerror="document.title='gone'"><script>document.title='gone'</script>`
	r.Scenario, r.About, r.Lock, r.Why = evil, evil, evil, evil
	r.Findings[0].Detail, r.Findings[0].Judge = judges.Defect{Text: evil}, evil
	r.Record.Params.Processes[0].Name = evil
	for i := range r.Record.Events {
		e := &r.Record.Events[i]
		if e.Process == "a" {
			e.Process = evil
		}
		if e.Lock == "orders" {
			e.Lock = evil
		}
		if e.State != nil && e.State.Owner == "a/1" {
			e.State.Owner = evil + "/1"
		}
	}
	p := open(t, chromium, html(t, r))
	if title := browsertest.Eval[string](p, `document.title`); !strings.HasPrefix(title, "bug </script>") {
		t.Errorf("the title is %q", title)
	}
	if n := browsertest.Eval[int](p, `document.querySelectorAll("img").length`); n != 0 {
		t.Error("a name became an element")
	}
	if got := p.Text("#findings li p"); !strings.Contains(got, evil) {
		t.Errorf("the finding reads %q", got)
	}
	p.Quiet()
	// A name does not become an element in porcupine's picture, either.
	picture := pictureTab(t, p.Context)
	elements, err := chromedp.Run(picture, chromedp.Evaluate[int](`document.querySelectorAll("img").length + (document.title === "gone" ? 1 : 0)`))
	if err != nil || elements != 0 {
		t.Errorf("in porcupine's picture a name became %d elements (%v)", elements, err)
	}
	if text, err := chromedp.Run(picture, chromedp.Text(chromedp.CSS("#canvas"))); err != nil || !strings.Contains(text, "onerror") {
		t.Errorf("porcupine's picture reads %q (%v)", text, err)
	}
}

// Pages of a folder have their code, their styles and the frame of the pictures in one file.
func pagesThatShareAFile(t *testing.T, chromium context.Context) {
	r := played(t, "unlock-reply-lost", "redisson@3.21.3")
	var picture, page, alone, shared bytes.Buffer
	if err := judges.Picture(trace.New(r.Record), "orders", &picture); err != nil {
		t.Fatal(err)
	}
	pictures := []report.Picture{{Lock: "orders", HTML: picture.String()}, {Lock: "spare", Why: "of no use"}}
	if err := errors.Join(report.WriteHTML(&alone, r, pictures), report.WriteShared(&shared),
		report.WritePage(&page, r, pictures, "../page.js", report.Link{Text: "all <runs>", To: "../index.html"})); err != nil {
		t.Fatal(err)
	}
	if page.Len() > alone.Len()/2 {
		t.Errorf("the page has %d bytes, and %d alone", page.Len(), alone.Len())
	}
	dir := t.TempDir()
	file, script := filepath.Join(dir, "below", "run.html"), filepath.Join(dir, "page.js")
	if err := errors.Join(os.Mkdir(filepath.Dir(file), 0o755), os.WriteFile(file, page.Bytes(), 0o644), os.WriteFile(script, shared.Bytes(), 0o644)); err != nil {
		t.Fatal(err)
	}
	p, q := browsertest.Open(t, chromium, file, script), open(t, chromium, alone.Bytes())
	const look = `[getComputedStyle(document.body).backgroundColor, document.getElementById("now").textContent, document.querySelectorAll("#events li").length,
		document.querySelectorAll("#chart svg text.name").length, document.getElementById("chart").offsetHeight].join()`
	if got, want := browsertest.Eval[string](p, look), browsertest.Eval[string](q, look); got != want {
		t.Errorf("the page that shares its code shows %s, and the page alone %s", got, want)
	}
	if got := browsertest.Eval[string](p, `{const a = document.querySelector("header a"); a.textContent + " " + a.getAttribute("href")}`); got != "all <runs> ../index.html" {
		t.Errorf("the page leads to %q", got)
	}
	if browsertest.Eval[int](q, `document.querySelectorAll("a").length`) != 0 {
		t.Error("the page alone leads somewhere")
	}
	// The picture is the same.
	var drawn [2]string
	for i, tab := range []*browsertest.Tab{p, q} {
		var err error
		if drawn[i], err = chromedp.Run(pictureTab(t, tab.Context), chromedp.Evaluate[string](`document.documentElement.outerHTML`)); err != nil {
			t.Fatal(err)
		}
	}
	if drawn[0] != drawn[1] || !strings.Contains(drawn[0], "answered released") {
		t.Errorf("the pictures of the two pages differ, or are empty: %d and %d bytes", len(drawn[0]), len(drawn[1]))
	}
	p.Quiet()
	q.Quiet()
}

// Pages of runs that were made small share the name of the scenario, and differ in the title.
func theTitleOfAPage(t *testing.T, chromium context.Context) {
	r := played(t, "misdelete", "setnx-del")
	p := open(t, chromium, html(t, r))
	const want = "bug misdelete: misdelete on setnx-del, seed 1: unlock of a/1 (DEL, sent at 5.009s) ended the hold of b/1 on orders at 5.014s"
	if got := browsertest.Eval[string](p, `document.title`); got != want {
		t.Errorf("the title is %q, want %q", got, want)
	}
	if got := p.Text("h1"); !strings.Contains(got, "misdelete on setnx-del, seed 1: misdelete") {
		t.Errorf("the heading is %q", got)
	}
	r.Findings, r.Verdict = nil, "held"
	if got := browsertest.Eval[string](open(t, chromium, html(t, r)), `document.title`); got != "held: misdelete on setnx-del, seed 1" {
		t.Errorf("the title of a run that held is %q", got)
	}
}

// The first two findings are whole, and a click opens the others.
func findingsAreWhole(t *testing.T, chromium context.Context) {
	r := played(t, "unlock-reply-lost", "redisson@3.21.3")
	if len(r.Findings) < 3 {
		t.Fatalf("the run has %d findings, want more than two", len(r.Findings))
	}
	p := open(t, chromium, html(t, r))
	const shown = `[...document.querySelectorAll("li[data-judge]")].filter(e => e.checkVisibility()).length`
	p.Looks(func(at string) {
		if got := browsertest.Eval[[]string](p, browsertest.CutOff+`("li[data-judge], #state td")`); len(got) > 0 {
			t.Errorf("%s: these are cut off: %q", at, got)
		}
		if got := browsertest.Eval[[]string](p, browsertest.Faint); len(got) > 0 {
			t.Errorf("%s: these texts are faint: %q", at, got)
		}
		if got := browsertest.Eval[int](p, shown); got != 2 {
			t.Errorf("%s: %d findings are shown, want 2", at, got)
		}
		// On a narrow screen the chart comes before the state, and both after the findings.
		got := browsertest.Eval[[]string](p, `["told", "chart", "state"].sort((a, b) => document.getElementById(a).getBoundingClientRect().top - document.getElementById(b).getBoundingClientRect().top)`)
		if want := browsertest.Eval[bool](p, `innerWidth <= 900`); want != slices.Equal(got, []string{"told", "chart", "state"}) {
			t.Errorf("%s: from the top come %q", at, got)
		}
	})
	if got := p.Text("#others summary"); got != fmt.Sprintf("%d more findings", len(r.Findings)-2) {
		t.Errorf("below them stands %q", got)
	}
	p.Do(chromedp.Click(chromedp.CSS("#others summary")))
	p.Looks(func(at string) {
		if got := browsertest.Eval[[]string](p, browsertest.CutOff+`("li[data-judge]")`); len(got) > 0 || browsertest.Eval[int](p, shown) != len(r.Findings) {
			t.Errorf("%s: opened, these are cut off: %q", at, got)
		}
	})
	p.Quiet()
}

// The page of a run has as many decimals as its text.
func theInstantsOfAShortRun(t *testing.T, chromium context.Context) {
	for want, instants := range map[string][]int64{
		"0.001s 0.103s 31.000s":                   {1_002_000, 103_003_999},
		"0.001002s 0.003003s 31.000000s":          {1_002_000, 3_003_999},
		"0.000007001s 0.000007002s 31.000000000s": {7_001, 7_002},
	} {
		p := open(t, chromium, html(t, invoked(instants...)))
		if got := browsertest.Eval[string](p, `[...document.querySelectorAll("#events time")].map(x => x.textContent).join(" ")`); got != want {
			t.Errorf("the instants are %s, want %s", got, want)
		}
		p.Quiet()
	}
}

func theGraphOfACampaign(t *testing.T, chromium context.Context) {
	var b bytes.Buffer
	x := report.Index{Title: "Lockstep", Campaigns: []report.Campaign{{Sentence: "so it was", Ran: 100_000, Curve: []report.IndexPoint{{Runs: 1, States: 2}, {Runs: 100_000, States: 1_234_567}}}}}
	if err := report.WriteIndex(&b, x); err != nil {
		t.Fatal(err)
	}
	p := open(t, chromium, b.Bytes())
	const labels = ".campaign svg text, .graph span"
	p.Looks(func(at string) {
		if got := browsertest.Eval[[]string](p, browsertest.CutOff+`("`+labels+`")`); len(got) > 0 {
			t.Errorf("%s: these are cut off: %q", at, got)
		}
		if got := browsertest.Eval[[]string](p, `[...document.querySelectorAll("`+labels+`")].filter(e => e.getBoundingClientRect().height >= 10).map(e => e.textContent)`); !slices.Equal(got, []string{"1234567 states", "0", "100000 runs"}) {
			t.Errorf("%s: these labels are large enough: %q", at, got)
		}
		if got := browsertest.Eval[float64](p, `document.querySelector("polyline").getBoundingClientRect().height`); got < 60 {
			t.Errorf("%s: the curve is %v pixels tall", at, got)
		}
	})
	p.Quiet()
}

// Where a table has no room, each of its rows is a card.
func theIndexOnASmallScreen(t *testing.T, chromium context.Context) {
	const why = "c/1 was granted orders at 26.341s before a/1, which had first tried at 26.002s and still waited"
	x := report.Index{Title: "Lockstep: a/folder/with-a-long-name"}
	for _, lock := range []string{"redisson-fair@3.11.0", "redisson-fair@3.12.4", "redisson-fair@3.21.3", "redisson-fair@3.43.0"} {
		r := report.IndexRun{Scenario: "fair-sleeps-on-an-old-lease", Lock: lock, Seed: 15131201981207, Verdict: "bug", Expected: "held", Waits: report.Waits{Granted: 2, P50Ns: 1e6, MaxNs: 4e9}}
		r.Findings = append(r.Findings, struct {
			Judge string `json:"judge"`
			Why   string `json:"why"`
		}{"fifo", why})
		x.Runs = append(x.Runs, r)
	}
	x.Campaigns = []report.Campaign{{Name: "explore/redisson-nonreentrant-fair@4.7.0+full-none-and-more", Sentence: "simrun explore --lock redisson-fair@3.11.0 --faults network,crash,clock", Groups: []report.IndexGroup{{
		Judge: "mutual-exclusion", Class: "bug", Op: "force_unlock", Faults: []string{"late reply of subscribe", "crash"}, Runs: 466, FirstSeed: 184296018279081, Size: 5, Why: why,
	}}}}
	var b bytes.Buffer
	if err := report.WriteIndex(&b, x); err != nil {
		t.Fatal(err)
	}
	p := open(t, chromium, b.Bytes())
	p.Looks(func(at string) {
		if got := browsertest.Eval[[]float64](p, `[document.documentElement.scrollWidth, document.documentElement.clientWidth]`); got[0] > got[1] {
			t.Errorf("%s: the page is %v pixels wide", at, got[0])
		}
		if got := browsertest.Eval[[]string](p, browsertest.CutOff+`("h1, h2, p, .groups td, .runs td")`); len(got) > 0 {
			t.Errorf("%s: these are cut off: %q", at, got)
		}
		if got := browsertest.Eval[[]string](p, browsertest.Faint); len(got) > 0 {
			t.Errorf("%s: these texts are faint: %q", at, got)
		}
		// A sentence has room for some words in a line.
		for _, table := range []string{".groups", ".runs"} {
			if got := browsertest.Eval[float64](p, `document.querySelector("`+table+` td:last-child").getBoundingClientRect().width`); got < 200 {
				t.Errorf("%s: in %s a sentence has %v pixels", at, table, got)
			}
		}
	})
	p.Do(chromedp.EmulateViewport(400, 900))
	if got := p.Text(".groups tr.row"); !strings.Contains(got, "bug") || !strings.Contains(got, "mutual-exclusion") {
		t.Errorf("a card reads %q", got)
	}
	if got := browsertest.Eval[string](p, `getComputedStyle(document.querySelector(".groups td:nth-child(6)"), "::before").content`); !strings.Contains(got, "first seed") {
		t.Errorf("the seed of a card is named %q", got)
	}
	p.Quiet()
}

// long returns a run with that many events. Every five events change the owner.
func long(events int) report.Run {
	rec := &model.Record{Params: model.Params{Lock: "redisson@4.7.0", Timing: model.Timing{Watchdog: 30 * time.Second}, Processes: []model.ProcessParams{{Name: "a", Threads: 1}, {Name: "b", Threads: 1}}}}
	for i := 0; len(rec.Events) < events; i++ {
		at, msg := int64(i)*10_000_000, i+1
		process := []string{"a", "b"}[i%2]
		state := &model.LockState{}
		if i%2 == 0 {
			state = &model.LockState{Owner: "a/1", Count: 1, ExpiresMs: at/1e6 + 30_000}
		}
		rec.Add(model.Event{AtNs: at, Kind: model.KindSend, Process: process, Msg: msg, Script: "renew", Locks: []string{"orders"}})
		rec.Add(model.Event{AtNs: at + 1e6, Kind: model.KindExec, Process: process, Msg: msg, Script: "renew", Locks: []string{"orders"}, Reply: "1"})
		rec.Add(model.Event{AtNs: at + 1e6, Kind: model.KindState, Lock: "orders", Msg: msg, State: state})
		rec.Add(model.Event{AtNs: at + 2e6, Kind: model.KindDeliver, Process: process, Msg: msg, Dir: "reply"})
		rec.Add(model.Event{AtNs: at + 3e6, Kind: model.KindPublish, Channel: "channel", Text: "0"})
	}
	mid := rec.Events[len(rec.Events)*2/3].AtNs
	return report.Run{
		Scenario: "long", Lock: "redisson@4.7.0", Verdict: "bug", Record: rec,
		Findings: []judges.Finding{{Judge: model.JudgeMisdelete, Verdict: judges.Broken, Class: judges.ClassBug, Detail: judges.Defect{Text: "it is so"}, AtNs: mid}},
	}
}

// A run of 200 000 events is cut around the finding, and is a page of a site like any other: a reader comes to it from the
// front page, steps through it, filters it and goes back.
func aLongRunOnASite(t *testing.T, chromium context.Context) {
	repository := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(repository, "docs"), 0o755), os.Mkdir(filepath.Join(repository, "results"), 0o755),
		os.WriteFile(filepath.Join(repository, "README.md"), []byte("# Front\n\n[the long run](results/long.lockstep)\n"), 0o644),
		os.WriteFile(filepath.Join(repository, "results", "long.lockstep"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(repository)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	dir := filepath.Join(t.TempDir(), "site")
	folder, err := site.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := folder.Write(t.Context(), site.Source{Repository: root, Page: func(_, shared string, links ...report.Link) ([]byte, error) {
		var b bytes.Buffer
		err := report.WritePage(&b, long(200_000), nil, shared, links...)
		return b.Bytes(), err
	}}); err != nil {
		t.Fatal(err)
	}
	p := browsertest.Open(t, chromium, filepath.Join(dir, "index.html"), dir+"/")
	follow := func(selector string) {
		t.Helper()
		if _, err := chromedp.Run(p.Context, chromedp.WaitEvent(cdppage.LoadEventFired, nil, chromedp.Click(chromedp.CSS(selector)))); err != nil {
			t.Fatal(err)
		}
	}
	follow("main p a")
	if got := p.Text("#cut"); !strings.Contains(got, "200000 events") || !strings.Contains(got, "left out") {
		t.Errorf("the page says %q", got)
	}
	chosen := func() string { return p.Text("#events li[aria-selected=true]") }
	p.Do(chromedp.Click(chromedp.CSS(".go")))
	if got := chosen(); !strings.Contains(got, "▶") || !browsertest.Eval[bool](p, inView+`("misdelete")`) {
		t.Errorf("the button goes to %q", got)
	}
	if got := p.Text("#events .gap"); !strings.Contains(got, "events left out") {
		t.Errorf("the list says %q", got)
	}
	found := chosen()
	p.Do(chromedp.Focus(chromedp.CSS("#chart")))
	for _, key := range []string{"+", "-", "0", "f", kb.ArrowRight} {
		p.Do(chromedp.KeyEvent(key))
	}
	if chosen() == found {
		t.Error("a step on changes nothing")
	}
	lanes := `document.querySelectorAll("#chart svg text.name").length`
	all := browsertest.Eval[int](p, lanes)
	p.Script(`{const s = document.getElementById("process"); s.value = "b"; s.dispatchEvent(new Event("change"))}`)
	if got := browsertest.Eval[int](p, lanes); got >= all {
		t.Errorf("with one process %d of %d lanes are shown", got, all)
	}
	p.Looks(func(at string) {
		if got := browsertest.Eval[[]float64](p, `[document.documentElement.scrollWidth, document.documentElement.clientWidth]`); got[0] > got[1] {
			t.Errorf("%s: the page is %v pixels wide", at, got[0])
		}
	})
	follow("header a")
	if got := p.Text("h1"); got != "Front" {
		t.Errorf("the way back leads to %q", got)
	}
	p.Quiet()
}

func TestALongRunFitsInTwoMegabytes(t *testing.T) {
	var b bytes.Buffer
	if err := report.WriteHTML(&b, long(200_000), nil); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 2<<20 {
		t.Errorf("the page has %d bytes", b.Len())
	}
}

func TestTwoThousandEventsFitInTwoMegabytes(t *testing.T) {
	queued := crowd(2000, 100)
	for i := range queued.Record.Events {
		if s := queued.Record.Events[i].State; s != nil {
			s.Deadlines = map[string]int64{}
			for n := range 99 {
				who := model.ThreadName("a", n+1)
				s.Queue = append(s.Queue, who)
				s.Deadlines[who] = queued.Record.Events[i].AtNs/1e6 + int64(n)*5000
			}
		}
	}
	var b bytes.Buffer
	found := crowd(2000, 100)
	for i := range 5000 {
		f := found.Findings[0]
		f.Detail = judges.Defect{Text: fmt.Sprintf("so it is, %d times, as was told before and will be told again, at the length of a finding", i)}
		found.Findings = append(found.Findings, f)
	}
	for _, r := range []report.Run{queued, found, long(2000)} {
		b.Reset()
		if err := report.WriteHTML(&b, r, nil); err != nil {
			t.Fatal(err)
		}
		if b.Len() > 2<<20 || bytes.Contains(b.Bytes(), []byte("left out.</p>")) {
			t.Errorf("%s: %d bytes", r.Scenario, b.Len())
		}
		more := strings.Contains(b.String(), "4901 more findings of the same judges are left out")
		if more != (len(r.Findings) == 5001) {
			t.Errorf("%s: of %d findings it says that some are left out: %v", r.Scenario, len(r.Findings), more)
		}
	}
	// The page loads nothing from elsewhere.
	for _, s := range []string{"http://", "https://", "src=", "@import"} {
		if i := bytes.Index(bytes.ReplaceAll(b.Bytes(), []byte("http://www.w3.org/2000/svg"), nil), []byte(s)); i >= 0 {
			t.Errorf("the page has %s", s)
		}
	}
}

func theIndex(t *testing.T, chromium context.Context) {
	lines := `{"scenario":"one","lock":"x@1.10.0","seed":1,"verdict":"held","expected":"held","as_expected":true,"findings":[],"waits":{"granted":2,"p50_ns":1000000,"p90_ns":2000000,"p99_ns":2000000,"max_ns":2000000}}
{"scenario":"one","lock":"x@1.10.0","seed":2,"verdict":"held","expected":"held","as_expected":true,"findings":[],"waits":{"granted":2,"p50_ns":3000000,"p90_ns":3000000,"p99_ns":3000000,"max_ns":4000000000}}
{"scenario":"one","lock":"x@1.9.0","seed":1,"verdict":"bug","expected":"bug fifo","as_expected":true,"findings":[{"judge":"fifo","why":"so"}],"recording":"one/x/1.lockstep"}
{"scenario":"two","lock":"<b>y</b>","seed":1,"verdict":"bug","expected":"held","as_expected":false,"findings":[{"judge":"fifo","why":"it is so"}]}
{"group":"g","judge":"lease","class":"bug","op":"unlock","faults":["pause"],"runs":3,"first_seed":7,"size_events":4,"why":"so"}
{"campaign":"simrun explore --lock y","runs":10,"missing":0,"steps":99,"states":[{"runs":1,"states":2},{"runs":10,"states":5}]}
`
	x, err := report.ReadIndex(strings.NewReader(lines), "verdicts.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	x.Tables = []report.Table{{Title: "Which judge sees what", Head: []string{"fault", "<i>judge</i>"},
		Rows: [][]report.TableCell{{{Text: "a | b"}, {Text: "killed", Recording: "k/1.lockstep"}}}}}
	x.EachRecording(func(recording string, link *string) { *link = "./to/" + recording })
	var b bytes.Buffer
	if err := report.WriteIndex(&b, x); err != nil {
		t.Fatal(err)
	}
	p := open(t, chromium, b.Bytes())
	cells := browsertest.Eval[[]string](p, `[...document.querySelectorAll(".matrix tr")].map(r => [...r.children].map(c => c.textContent).join("|"))`)
	if want := []string{"scenario|1.9.0|1.10.0", "one|✗ bug|✓ held", "scenario|<b>y</b>", "two|✗ bug!"}; !slices.Equal(cells, want) {
		t.Errorf("the matrices are %q, want %q", cells, want)
	}
	leads := browsertest.Eval[[]string](p, `[...document.querySelectorAll(".matrix a")].map(a => a.getAttribute("href"))`)
	if len(leads) != 3 || leads[0] != "./to/one/x/1.lockstep" || !browsertest.Eval[bool](p, `document.querySelector("`+leads[1]+`").textContent.includes("x@1.10.0")`) {
		t.Errorf("the cells lead to %q, want the report, and lines of the list", leads)
	}
	if got := p.Text(".written"); !strings.Contains(got, "Which judge sees what") || !strings.Contains(got, "<i>judge</i>") || !strings.Contains(got, "a | b") || strings.Contains(got, "words") {
		t.Errorf("the table beside the verdicts reads %q", got)
	}
	if got := browsertest.Eval[string](p, `document.querySelector(".written a").getAttribute("href")`); got != "./to/k/1.lockstep" {
		t.Errorf("its cell leads to %q", got)
	}
	if got := browsertest.Eval[string](p, `document.querySelector(".waits title").textContent`); got != "of 2 that were granted, half waited at most 3ms, 90% 3ms, 99% 3ms, all 4s" {
		t.Errorf("the waits of the two seeds: %q", got)
	}
	shown := `[...document.querySelectorAll(".list .row:not(.written *)")].filter(r => !r.hidden).map(r => r.children[1].textContent)`
	if got := browsertest.Eval[[]string](p, shown); !slices.Equal(got, []string{"lease", "two", "one", "one"}) {
		t.Errorf("rows %q: what was not expected comes first, seeds alike are one row", got)
	}
	p.Do(chromedp.SendKeys(chromedp.CSS("#filter"), "<b>y"))
	if got := browsertest.Eval[[]string](p, shown); !slices.Equal(got, []string{"two"}) {
		t.Errorf("filtered: %q", got)
	}
	if got := browsertest.Eval[int](p, `document.querySelectorAll("polyline").length`); got != 1 {
		t.Error("no curve of new states")
	}
	p.Quiet()

	_, err = report.ReadIndex(strings.NewReader(lines+"{\"seed\":1}\n"), "verdicts.jsonl")
	if err == nil || !strings.Contains(err.Error(), "verdicts.jsonl:7: neither a run nor a group") {
		t.Errorf("a line that is no verdict: %v", err)
	}
}

func theServedIndex(t *testing.T, chromium context.Context) {
	var state atomic.Value
	state.Store("before")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := state.Load().(string)
		if r.URL.Path == "/stamp" {
			_, _ = io.WriteString(w, now)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if err := report.WriteIndex(w, report.Index{Title: now, Stamp: now}); err != nil {
			t.Error(err)
		}
	}))
	defer server.Close()
	ctx, stop := chromedp.NewContext(chromium)
	defer stop()
	if err := chromedp.Do(ctx, chromedp.Navigate(server.URL), chromedp.SendKeys(chromedp.CSS("#filter"), "a b")); err != nil {
		t.Fatal(err)
	}
	change := chromedp.Func(func(context.Context, *chromedp.Target) error { state.Store("after"); return nil })
	if _, err := chromedp.Run(ctx, chromedp.WaitEvent(cdppage.LoadEventFired, nil, change)); err != nil {
		t.Fatal(err)
	}
	if title, err := chromedp.Run(ctx, chromedp.Title()); err != nil || title != "after" {
		t.Errorf("the title is %q (%v)", title, err)
	}
	if typed, err := chromedp.Run(ctx, chromedp.Value(chromedp.CSS("#filter"))); err != nil || typed != "a b" {
		t.Errorf("what was typed is %q (%v)", typed, err)
	}
}
