// Package browsertest shows pages in Chromium for tests: it opens them from disk, runs scripts in
// them, and notes forbidden actions of a page.
package browsertest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Start starts Chromium, which ends with the test. It skips the test if Chromium is not
// installed.
func Start(t testing.TB) context.Context {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		if os.Getenv("LOCKSTEP_REQUIRE") == "all" {
			t.Fatal("chromium is not installed")
		}
		t.Skip("chromium is not installed: apt-get install chromium")
	}
	options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
		chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.WindowSize(1280, 800))
	alloc, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, stop := chromedp.NewContext(alloc)
	t.Cleanup(stop)
	if err := chromedp.Do(ctx); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// A Tab is a page that was opened. bad lists the forbidden things that the page did.
type Tab struct {
	Context context.Context
	t       testing.TB
	mu      sync.Mutex
	bad     []string
}

// Open shows a page from disk, 1280 by 800 pixels large. It may ask for these other files; a
// name that ends with a slash stands for all files below it.
func Open(t testing.TB, browser context.Context, file string, others ...string) *Tab {
	t.Helper()
	ctx, stop := chromedp.NewContext(browser)
	t.Cleanup(stop)
	ctx, stop = context.WithTimeout(ctx, 2*time.Minute) // the browser may hang
	t.Cleanup(stop)
	p := &Tab{t: t, Context: ctx}
	allowed := func(address string) bool {
		asked, err := url.Parse(address)
		if err != nil || asked.Scheme != "file" || asked.Host != "" {
			return false
		}
		return asked.Path == file || slices.ContainsFunc(others, func(o string) bool {
			return asked.Path == o || strings.HasSuffix(o, "/") && strings.HasPrefix(asked.Path, o)
		})
	}
	note := func(format string, args ...any) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.bad = append(p.bad, fmt.Sprintf(format, args...))
	}
	err := chromedp.Listen(ctx, func(e any) {
		switch e := e.(type) {
		case *network.EventRequestWillBeSent:
			if !strings.HasPrefix(e.Request.URL, "data:") && !allowed(e.Request.URL) {
				note("requested %s", e.Request.URL)
			}
		case *runtime.EventExceptionThrown:
			note("threw %s", e.ExceptionDetails.Text)
		case *runtime.EventConsoleAPICalled:
			note("wrote to the console: %s", e.Type)
		case *log.EventEntryAdded:
			note("made the browser say %s: %s", e.Entry.Level, e.Entry.Text)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Do(chromedp.EmulateViewport(1280, 800), chromedp.Navigate((&url.URL{Scheme: "file", Path: file}).String()))
	return p
}

// Do does something with the page.
func (p *Tab) Do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.Context, actions...); err != nil {
		p.t.Fatal(err)
	}
}

// Eval returns the value of a script.
func Eval[T any](p *Tab, script string) T {
	p.t.Helper()
	got, err := chromedp.Run(p.Context, chromedp.Evaluate[T](script))
	if err != nil {
		p.t.Fatal(err)
	}
	return got
}

// Text returns the text of the first element of a selector.
func (p *Tab) Text(selector string) string {
	p.t.Helper()
	s, err := chromedp.Run(p.Context, chromedp.Text(chromedp.CSS(selector)))
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

// Script runs a script and ignores its result.
func (p *Tab) Script(format string, args ...any) {
	p.t.Helper()
	p.Do(chromedp.Evaluate[chromedp.Void](fmt.Sprintf(format, args...)))
}

// Frame waits for the page to be drawn.
func (p *Tab) Frame() {
	p.t.Helper()
	p.Do(chromedp.Evaluate[chromedp.Void](`new Promise(f => requestAnimationFrame(() => requestAnimationFrame(f)))`, chromedp.EvalAwaitPromise))
}

// Quiet fails the test if the page asked for a file that it may not ask for, threw an error or
// wrote to the console.
func (p *Tab) Quiet() {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.bad {
		p.t.Error("the page", b)
	}
}

// Looks shows the page in three widths, light and dark, and calls look for each.
func (p *Tab) Looks(look func(at string)) {
	p.t.Helper()
	for _, width := range []int64{400, 1000, 1600} {
		p.Do(chromedp.EmulateViewport(width, 900))
		for _, theme := range []string{"light", "dark"} {
			if Eval[string](p, `document.documentElement.dataset.theme`) != theme {
				p.Script(`document.getElementById("theme").click()`)
			}
			p.Frame()
			look(fmt.Sprintf("%d pixels wide, %s", width, theme))
		}
	}
}

// CutOff lists the elements of a selector that are partly outside the page, or partly outside a box
// around them that cuts off its contents.
const CutOff = `(selector => [...document.querySelectorAll(selector)].filter(e => {
	const text = document.createRange();
	text.selectNodeContents(e);
	const r = text.getBoundingClientRect();
	if (r.width === 0) return false; // it is not shown
	if (r.left < 0 || r.right > document.documentElement.clientWidth + 0.5) return true;
	for (let box = e.parentElement; box && box !== document.body; box = box.parentElement) {
		const b = box.getBoundingClientRect(), cuts = getComputedStyle(box).overflow !== "visible" || box.tagName === "svg";
		if (cuts && (r.left < b.left - 0.5 || r.right > b.right + 0.5 || r.top < b.top - 0.5 || r.bottom > b.bottom + 0.5)) return true;
	}
	return false;
}).map(e => e.textContent.trim()))`

// Faint lists the texts of the page whose contrast with their background is less than 4.5, computed as
// WCAG 2 does. It leaves out hidden texts, and the texts of buttons that cannot be pressed.
const Faint = `(() => {
	const ink = document.createElement("canvas").getContext("2d", {willReadFrequently: true}), seen = new Map();
	const rgba = colour => {
		ink.clearRect(0, 0, 1, 1);
		ink.fillStyle = colour;
		ink.fillRect(0, 0, 1, 1);
		return [...ink.getImageData(0, 0, 1, 1).data];
	};
	const light = ([r, g, b]) => {
		const [x, y, z] = [r, g, b].map(c => c / 255).map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
		return 0.2126 * x + 0.7152 * y + 0.0722 * z;
	};
	const contrast = (a, b) => {
		if (!seen.has(a + b)) {
			const [x, y] = [light(rgba(a)), light(rgba(b))];
			seen.set(a + b, (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05));
		}
		return seen.get(a + b);
	};
	const behind = e => {
		for (; e; e = e.parentElement) {
			const c = getComputedStyle(e).backgroundColor;
			if (c !== "transparent" && !c.endsWith(", 0)")) return c;
		}
		return "white";
	};
	const faint = [], walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	for (let n; n = walk.nextNode();) {
		const e = n.parentElement;
		if (!n.data.trim() || !e.checkVisibility() || e.closest("svg, script, :disabled")) continue;
		const ratio = contrast(getComputedStyle(e).color, behind(e));
		if (ratio < 4.5) faint.push(ratio.toFixed(1) + ": " + n.data.trim().slice(0, 60));
	}
	return faint;
})()`
