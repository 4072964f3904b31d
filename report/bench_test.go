package report_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"lockstep/internal/browsertest"
	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/report"
)

// zooming turns the mouse wheel over the chart once per frame, in and out. It returns the
// milliseconds between frames, as the median and the 95th percentile, and then the
// milliseconds that the page took to open.
const zooming = `(async () => {
	const chart = document.getElementById("chart"), at = chart.getBoundingClientRect(), frames = [];
	const frame = () => new Promise(requestAnimationFrame);
	document.getElementById("all").click();
	let before = await frame();
	for (let i = 0; i < 120; i++) {
		chart.dispatchEvent(new WheelEvent("wheel", {deltaY: i % 40 < 20 ? -100 : 100, clientX: at.left + at.width * (0.3 + 0.4 * (i % 7) / 7), clientY: at.top + 90, bubbles: true, cancelable: true}));
		const now = await frame();
		frames.push(now - before);
		before = now;
	}
	frames.sort((a, b) => a - b);
	const painted = performance.getEntriesByName("first-contentful-paint")[0];
	const opened = Math.max(painted ? painted.startTime : 0, performance.getEntriesByType("navigation")[0].loadEventEnd);
	return [frames[60], frames[114], opened];
})()`

// crowd returns a record of threads that all wait for one lock and hold it in turn.
func crowd(events, threads int) report.Run {
	rec := &model.Record{Params: model.Params{Lock: "redisson@4.7.0", Timing: model.Timing{Watchdog: 30 * time.Second}, Processes: []model.ProcessParams{{Name: "a", Threads: threads}}}}
	op, msg := 0, 0
	call := func(at int64, thread int, do model.Action, script model.Role, reply string, outcome model.Outcome, state *model.LockState) {
		op++
		msg++
		rec.Add(model.Event{AtNs: at, Kind: model.KindInvoke, Process: "a", Thread: thread, Op: op, Action: do, Lock: "orders"})
		rec.Add(model.Event{AtNs: at, Kind: model.KindSend, Process: "a", Op: op, Msg: msg, Script: script, Locks: []string{"orders"}})
		rec.Add(model.Event{AtNs: at + 1e6, Kind: model.KindExec, Process: "a", Op: op, Msg: msg, Script: script, Locks: []string{"orders"}, Reply: reply})
		rec.Add(model.Event{AtNs: at + 1e6, Kind: model.KindState, Lock: "orders", Msg: msg, State: state})
		rec.Add(model.Event{AtNs: at + 2e6, Kind: model.KindDeliver, Process: "a", Op: op, Msg: msg, Dir: "reply"})
		rec.Add(model.Event{AtNs: at + 2e6, Kind: model.KindReturn, Process: "a", Thread: thread, Op: op, Action: do, Lock: "orders", Outcome: outcome})
	}
	for at, n := int64(0), 0; len(rec.Events) < events; n++ {
		thread := n%threads + 1
		owner := model.ThreadName("a", thread)
		call(at, thread, model.ActLock, "acquire", "nil", model.Granted, &model.LockState{Owner: owner, Count: 1, ExpiresMs: at/1e6 + 30_000})
		call(at+5e6, thread, model.ActUnlock, "unlock", "1", model.Released, &model.LockState{})
		at += 10e6
	}
	mid := rec.Events[len(rec.Events)*2/3].AtNs
	return report.Run{
		Scenario: "crowd", Lock: "redisson@4.7.0", Verdict: "bug", Record: rec,
		Findings: []judges.Finding{{Judge: model.JudgeFIFO, Verdict: judges.Broken, Class: judges.ClassBug, Detail: judges.Defect{Text: "it is so"}, AtNs: mid}},
	}
}

// BenchmarkPage measures in the browser how long a reader waits for the page. The goals are 33 ms from frame to
// frame and one second until the page is drawn. On 2 busy cores a frame took 16.7 ms, that of the screen, and a page
// of 20 000 events was drawn in 0.4 to 0.6 s.
func BenchmarkPage(b *testing.B) {
	chromium := browsertest.Start(b)
	for _, c := range []struct {
		what string
		run  report.Run
	}{
		{"2000 events, 2 threads", crowd(2000, 2)},
		{"2000 events, 100 threads", crowd(2000, 100)},
		{"20000 events, cut to 4000", crowd(20_000, 100)},
	} {
		b.Run(c.what, func(b *testing.B) {
			var page bytes.Buffer
			if err := report.WriteHTML(&page, c.run, nil); err != nil {
				b.Fatal(err)
			}
			var sum [3]float64
			for b.Loop() {
				p := open(b, chromium, page.Bytes())
				got, err := chromedp.Run(p.Context, chromedp.Evaluate[[3]float64](zooming, chromedp.EvalAwaitPromise))
				if err != nil {
					b.Fatal(err)
				}
				for i := range got {
					sum[i] += got[i]
				}
				p.Do(chromedp.Navigate("about:blank"))
			}
			for i, unit := range []string{"frame-ms", "frame95-ms", "open-ms"} {
				b.ReportMetric(sum[i]/float64(b.N), unit)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}
