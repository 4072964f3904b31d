package site_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"lockstep/internal/browsertest"
	"lockstep/report"
	"lockstep/report/site"
)

// folderOf writes files into a new folder.
func folderOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// source returns the source of a repository. Its pages of recordings are no more than their
// links, and a recording whose name has the word foreign has no page.
func source(t *testing.T, repository string, index report.Index) site.Source {
	t.Helper()
	root, err := os.OpenRoot(repository)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return site.Source{Repository: root, Index: index, Page: func(recording, shared string, links ...report.Link) ([]byte, error) {
		if strings.Contains(recording, "foreign") {
			return nil, errors.New("a foreign lock")
		}
		page := fmt.Sprintf("<!doctype html><title>%s</title><a href=\"%s\">code</a>", recording, shared)
		for _, l := range links {
			page += fmt.Sprintf("<a href=\"%s\">%s</a>", l.To, l.Text)
		}
		return []byte(page), nil
	}}
}

func write(t *testing.T, dir string, s site.Source) site.Written {
	t.Helper()
	f, err := site.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	w, err := f.Write(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func read(t *testing.T, dir, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAFolderOfSomebodyElseIsRefused(t *testing.T) {
	for _, c := range []struct {
		rule  string
		files map[string]string
		says  string
	}{
		{"it has a file", map[string]string{"letter.txt": "dear"}, "is not empty, and no site was written there before"},
		{"it has a folder", map[string]string{"below/letter.txt": "dear"}, "is not empty"},
		{"its list is not that of a site", map[string]string{".lockstep-site": "letter.txt\n"}, "is not the list of a site"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			dir := folderOf(t, c.files)
			if _, err := site.Open(dir); err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), dir) {
				t.Errorf("it says %v", err)
			}
			for name, text := range c.files {
				if read(t, dir, name) != text {
					t.Errorf("%s is changed", name)
				}
			}
		})
	}
	if _, err := site.Open(filepath.Join(folderOf(t, map[string]string{"file": ""}), "file")); err == nil {
		t.Error("a file is taken for a folder")
	}
}

func TestASiteIsRenewed(t *testing.T) {
	repository := folderOf(t, map[string]string{"README.md": "# R", "docs/a.md": "# A\n\n[r](../results/x/1.lockstep)", "docs/b/c.md": "# C", "results/x/1.lockstep": ""})
	dir := filepath.Join(t.TempDir(), "new", "site")
	if w := write(t, dir, source(t, repository, report.Index{})); w.Documents != 3 || w.Runs != 1 || len(w.Without) != 0 {
		t.Errorf("it wrote %+v", w)
	}
	before := time.Now().Add(-time.Hour)
	for _, name := range []string{"docs/a.html", "README.html"} {
		if err := os.Chtimes(filepath.Join(dir, name), before, before); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "CNAME"), []byte("mine"), 0o644), os.RemoveAll(filepath.Join(repository, "docs/b")),
		os.WriteFile(filepath.Join(repository, "README.md"), []byte("# Anew"), 0o644)); err != nil {
		t.Fatal(err)
	}
	write(t, dir, source(t, repository, report.Index{}))
	if info, err := os.Stat(filepath.Join(dir, "docs/a.html")); err != nil || info.ModTime().After(before.Add(time.Minute)) {
		t.Errorf("what did not change was written again (%v)", err)
	}
	if !strings.Contains(read(t, dir, "README.html"), "Anew") {
		t.Error("what changed was not written")
	}
	for _, gone := range []string{"docs/b/c.html", "docs/b"} {
		if _, err := os.Stat(filepath.Join(dir, gone)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s is still there (%v)", gone, err)
		}
	}
	if read(t, dir, "CNAME") != "mine" {
		t.Error("a file of somebody else is changed")
	}
}

// After an interruption the folder is still known as a site, and the next call writes all.
func TestAnInterruptedSiteIsWrittenAgain(t *testing.T) {
	repository := folderOf(t, map[string]string{"docs/a.md": "# A\n\n[r](../results/1.lockstep) [r](../results/2.lockstep)", "results/1.lockstep": "", "results/2.lockstep": ""})
	dir := filepath.Join(t.TempDir(), "site")
	f, err := site.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	s := source(t, repository, report.Index{})
	s.Progress = func(done, of int, recording string) {
		if done != 0 || of != 2 || recording != "1.lockstep" {
			t.Errorf("told of recording %d of %d, %s", done, of, recording)
		}
		stop()
	}
	if _, err := f.Write(ctx, s); !errors.Is(err, context.Canceled) {
		t.Errorf("it says %v", err)
	}
	if list := read(t, dir, ".lockstep-site"); !strings.Contains(list, "results/1.html\n") || strings.Contains(list, "results/2.html\n") {
		t.Errorf("the list is %q", list)
	}
	s.Progress = nil
	write(t, dir, s)
	if !strings.Contains(read(t, dir, ".lockstep-site"), "results/2.html\n") {
		t.Error("the list lacks a page")
	}
}

func TestDocuments(t *testing.T) {
	repository := folderOf(t, map[string]string{
		"README.md": "# Front\n\nfirst words [of a](docs/a.md)\n\nsecond words\n\n## Later\n\nlater words\n",
		"docs/a.md": "<!-- a note -->\n# A *title*\n\n## One thing\n\n" +
			"[b](b.md#a-place) [code](../sim/world.go) [folder](../results) [run](../results/x/1.lockstep) [alone](../results/foreign.lockstep) [data](../results/x.jsonl)\n\n" +
			"![picture](p.png) [out](https://example.org/x) [here](#one-thing) [nowhere](gone.md) <b>bold</b> a<br>b <!-- hidden -->\n\n" +
			"| n | s |\n|--:|---|\n| 1 | `x|y` |\n\n<div onclick=\"evil()\">block</div>\n\n## Two\n\n```sh\ngo <run>\n```\n\n## Three\n\n![wide](p.png)\n",
		"docs/b.md": "# B\n\n## A place\n", "results/b.md": "# B\n", "docs/p.png": "\x89PNG", "sim/world.go": "package sim",
		"results/x/1.lockstep": "", "results/foreign.lockstep": "# a recording", "results/x.jsonl": "{}", "results/y.jsonl": "{}",
	})
	dir := filepath.Join(t.TempDir(), "site")
	index := report.Index{Runs: []report.IndexRun{
		{Scenario: "s", Lock: "l", Seed: 7, Verdict: "bug", Recording: "x/1.lockstep"}, {Scenario: "out", Lock: "l", Verdict: "bug", Recording: "../docs/secret.lockstep"}}}
	w := write(t, dir, source(t, repository, index))
	if w.Documents != 4 || w.Runs != 1 || len(w.Without) != 2 || w.Without["foreign.lockstep"] == nil || w.Without["../docs/secret.lockstep"] == nil {
		t.Errorf("it wrote %+v", w)
	}
	page := read(t, dir, "docs/a.html")
	for _, want := range []string{
		`<title>A title · Lockstep</title>`, `<a href="../docs/b.html#a-place">b</a>`, `<a href="../results/index.html">folder</a>`, `<a href="../results/x/1.html">run</a>`,
		`<a href="../results/foreign.lockstep">alone</a>`, `<a href="../results/x.jsonl">data</a>`, `<img src="../docs/p.png" alt="picture">`, `<a href="https://example.org/x">out</a>`,
		`<a href="#one-thing">here</a>`, "&lt;b&gt;bold&lt;/b&gt; a<br>b", `<th align="right">n</th>`, "&lt;div onclick=", `<pre tabindex="0"><code class="language-sh">go &lt;run&gt;`,
		`<p><img src="../docs/p.png" alt="picture"> `, `<div class="wide picture" tabindex="0" role="region" aria-label="picture"><img src="../docs/p.png" alt="wide"></div>`,
		`<summary>3 chapters</summary>`, `<a href="#two">Two</a>`, `<h2 id="one-thing">`, " code ", " nowhere ",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	for _, not := range []string{"world.go", "gone", "a note", "hidden --", "<div onclick"} {
		if strings.Contains(page, not) {
			t.Errorf("the page has %s", not)
		}
	}
	// Documents with one title are told apart by their paths.
	for _, name := range []string{"docs/b", "results/b"} {
		if want := "<title>B (" + name + ".md) · Lockstep</title>"; !strings.Contains(read(t, dir, name+".html"), want) {
			t.Errorf("%s.html has no %s", name, want)
		}
	}
	front, at := read(t, dir, "index.html"), 0
	for _, next := range []string{`first words <a href="docs/a.html">of a</a>`, `<li><a href="results/index.html">Runs</a>`, "second words", "later words"} {
		i := strings.Index(front[at:], next)
		if i < 0 {
			t.Fatalf("the front page is not the README with the parts of the site behind its first paragraph: %q is not in its place", next)
		}
		at += i
	}
	if strings.Contains(front, "Survey") {
		t.Error("the front page leads to a part that is not there")
	}
	if runs := read(t, dir, "results/index.html"); !strings.Contains(runs, `href="../results/x/1.html"`) || strings.Contains(runs, "secret") {
		t.Error("the list of the runs does not lead to the run")
	}
	for name, there := range map[string]bool{"results/x.jsonl": true, "results/y.jsonl": false, "results/x/1.lockstep": false, "docs/secret.html": false, "docs/p.png": true} {
		if _, err := os.Stat(filepath.Join(dir, name)); (err == nil) != there {
			t.Errorf("%s: there: %v, want %v", name, err == nil, there)
		}
	}
	var entries [][]string
	text, _ := strings.CutPrefix(read(t, dir, "search.js"), "// Each place of the site: its address, its title, its heading and its text.\nwindow.siteIndex = ")
	if err := json.Unmarshal([]byte(strings.TrimSuffix(text, ";\n")), &entries); err != nil {
		t.Fatal(err)
	}
	for _, want := range [][]string{
		{"docs/a.html#two", "A title", "Two", "go <run>"}, {"README.html#later", "Front", "Later", "later words"}, {"results/x/1.html", "s on l, seed 7", "bug", ""},
	} {
		if !slices.ContainsFunc(entries, func(e []string) bool { return slices.Equal(e, want) }) {
			t.Errorf("the search does not know %q; it knows %q", want, entries)
		}
	}
}

// whole writes the site of this repository, with pages of recordings that have only links.
func whole(t *testing.T) (dir string) {
	t.Helper()
	file := filepath.Join("..", "..", "results", "verdicts.jsonl")
	in, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	index, err := report.ReadIndex(in, file)
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "site")
	w := write(t, dir, source(t, filepath.Join("..", ".."), index))
	if w.Documents < 50 || w.Runs < 100 {
		t.Fatalf("the site has only %+v", w)
	}
	return dir
}

func TestTheSiteOfThisRepository(t *testing.T) {
	chromium := browsertest.Start(t)
	dir := whole(t)
	for _, c := range []struct {
		what string
		test func(*testing.T, context.Context, string)
	}{
		{"every link leads somewhere, on any host", everyLinkLeadsSomewhere},
		{"on small and large screens, light and dark", onAllScreens},
		{"the search, by keyboard", theSearchByKeyboard},
	} {
		t.Run(c.what, func(t *testing.T) { c.test(t, chromium, dir) })
	}
}

// crawl reads the pages of a site that a host serves in a folder, and returns the links that
// lead out of the folder or to a file or a place that is not there.
const crawl = `(async files => {
	const there = new Set(files), bad = [], pages = new Map(), base = location.href.replace(/[^/]*$/, "");
	for (const f of files.filter(f => f.endsWith(".html"))) {
		const text = await (await fetch(base + f.split("/").map(encodeURIComponent).join("/"))).text();
		pages.set(f, new DOMParser().parseFromString(text, "text/html"));
	}
	let links = 0;
	for (const [f, page] of pages) {
		for (const e of page.querySelectorAll("[href], [src]")) {
			const to = e.getAttribute("href") ?? e.getAttribute("src"), at = new URL(f.split("/").map(encodeURIComponent).join("/"), base);
			const u = new URL(to, at);
			if (u.protocol === "data:") continue;
			if (u.protocol === "https:" && e.tagName === "A" || to.startsWith("http://") && e.tagName === "A") continue;
			links++;
			if (to.startsWith("/") || !u.href.startsWith(base)) { bad.push(f + " leads out: " + to); continue; }
			const name = decodeURIComponent(u.pathname.slice(new URL(base).pathname.length));
			if (!there.has(name)) bad.push(f + " leads nowhere: " + to);
			else if (u.hash && !pages.get(name)?.getElementById(decodeURIComponent(u.hash.slice(1)))) bad.push(f + " leads to no place: " + to);
		}
	}
	return [String(links), ...bad];
})`

func everyLinkLeadsSomewhere(t *testing.T, chromium context.Context, dir string) {
	var files []string
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(files)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.StripPrefix("/a/folder/", http.FileServer(http.Dir(dir))))
	defer server.Close()
	ctx, stop := chromedp.NewContext(chromium)
	defer stop()
	// The pages themselves may fetch nothing, so the reader is another page.
	if err := chromedp.Do(ctx, chromedp.Navigate(server.URL+"/a/folder/site.js")); err != nil {
		t.Fatal(err)
	}
	got, err := chromedp.Run(ctx, chromedp.Evaluate[[]string](crawl+"("+string(list)+")", chromedp.EvalAwaitPromise))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s links in %d files", got[0], len(files))
	for _, bad := range got[1:min(len(got), 20)] {
		t.Error(bad)
	}
	if n := len(got[0]); n < 4 {
		t.Errorf("only %s links were found", got[0])
	}
}

func onAllScreens(t *testing.T, chromium context.Context, dir string) {
	for _, name := range []string{"index.html", "docs/index.html", "docs/reports.html", "results/survey.html", "results/index.html"} {
		p := browsertest.Open(t, chromium, filepath.Join(dir, name), dir+"/")
		p.Looks(func(at string) {
			if got := browsertest.Eval[[]float64](p, `[document.documentElement.scrollWidth, document.documentElement.clientWidth]`); got[0] > got[1] {
				t.Errorf("%s, %s: the page is %v pixels wide", name, at, got[0])
			}
			// A picture is wide enough to be read.
			if got := browsertest.Eval[[]float64](p, `[...document.querySelectorAll(".picture img")].map(e => e.getBoundingClientRect().width).filter(w => w < 900)`); len(got) > 0 {
				t.Errorf("%s, %s: pictures are %v pixels wide", name, at, got)
			}
			// The names of the locks leave room for the columns beside them.
			if got := browsertest.Eval[float64](p, `(e => e && innerWidth < 600 ? e.getBoundingClientRect().width : 0)(document.querySelector(".wide tbody td:first-child"))`); name == "results/survey.html" && got > 160 {
				t.Errorf("%s, %s: the first column is %v pixels wide", name, at, got)
			}
			if got := browsertest.Eval[[]string](p, browsertest.Faint); len(got) > 0 {
				t.Errorf("%s, %s: %d texts are faint: %q", name, at, len(got), got[:min(len(got), 5)])
			}
			// The table of promises is as wide as the screen, or is moved beside the names of the locks.
			if name != "results/survey.html" {
				return
			}
			if got := browsertest.Eval[[]float64](p, `(e => {
				const name = e.querySelector("tbody td"), before = name.getBoundingClientRect().left;
				e.scrollLeft = innerWidth < 600 ? 200 : 0;
				const moved = Math.abs(name.getBoundingClientRect().left - before);
				e.scrollLeft = 0;
				return [innerWidth > 1200 ? e.scrollWidth - e.clientWidth : 0, moved];
			})(document.querySelector(".wide"))`); got[0] > 0 || got[1] > 1 {
				t.Errorf("%s, %s: the table of promises is %v pixels too wide, and moved its names by %v", name, at, got[0], got[1])
			}
		})
		p.Quiet()
	}
}

func theSearchByKeyboard(t *testing.T, chromium context.Context, dir string) {
	p := browsertest.Open(t, chromium, filepath.Join(dir, "docs", "design.html"), dir+"/")
	const active = `document.activeElement.id || document.activeElement.textContent`
	var reached []string
	for range 9 {
		p.Do(chromedp.KeyEvent(kb.Tab))
		reached = append(reached, browsertest.Eval[string](p, active))
		if browsertest.Eval[string](p, `getComputedStyle(document.activeElement).outlineStyle`) == "none" {
			t.Errorf("nobody sees that %s has the focus", reached[len(reached)-1])
		}
	}
	if want := []string{"to the text", "Lockstep", "Survey", "Track record", "Findings", "Runs", "Documents", "words", "theme"}; !slices.Equal(reached, want) {
		t.Errorf("Tab reaches %q, want %q", reached, want)
	}
	p.Do(chromedp.KeyEvent("/"))
	if got := browsertest.Eval[string](p, active); got != "words" {
		t.Errorf("/ leads to %q", got)
	}
	// The driver sends the characters of keys apart from the keys, one after another.
	ask := func(words string) {
		p.Script(`{const box = document.getElementById("words"); box.value = %q; box.dispatchEvent(new Event("input"))}`, words)
	}
	ask("Misdelete setnx-del seed 1")
	p.Do(chromedp.WaitVisible(chromedp.CSS("#found a")))
	if got := browsertest.Eval[string](p, `document.querySelector("#found b").textContent`); !strings.HasPrefix(got, "misdelete on setnx-del, seed 1") {
		t.Errorf("first stands %q", got)
	}
	if got := browsertest.Eval[int](p, `document.querySelectorAll("#found mark").length`); got < 4 {
		t.Errorf("%d words are marked", got)
	}
	if got := browsertest.Eval[[]string](p, browsertest.Faint); len(got) > 0 {
		t.Errorf("faint: %q", got)
	}
	p.Do(chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowDown), chromedp.KeyEvent(kb.ArrowUp))
	if got := browsertest.Eval[bool](p, `document.activeElement === document.querySelector("#found a")`); !got {
		t.Error("the arrow keys do not lead to what was found")
	}
	p.Do(chromedp.KeyEvent(kb.Escape))
	if browsertest.Eval[bool](p, `document.getElementById("found").checkVisibility()`) || browsertest.Eval[string](p, active) != "words" {
		t.Error("Escape does not end the search")
	}
	ask("nosuchwordanywhere")
	if got := p.Text("#found p"); got != "nothing has all these words" {
		t.Errorf("of a word that is nowhere it says %q", got)
	}
	// Enter goes to the first place.
	ask("misdelete setnx-del seed 1")
	p.Do(chromedp.WaitVisible(chromedp.CSS("#found a")))
	if _, err := chromedp.Run(p.Context, chromedp.WaitEvent(cdppage.LoadEventFired, nil, chromedp.KeyEvent(kb.Enter))); err != nil {
		t.Fatal(err)
	}
	if got, want := browsertest.Eval[string](p, `decodeURIComponent(location.pathname)`), filepath.ToSlash(dir)+"/results/misdelete/setnx-del/1.html"; got != want {
		t.Errorf("Enter leads to %q, want %q", got, want)
	}
	p.Quiet()
}
