package cli

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/cli/frame"
	"lockstep/explore"
	"lockstep/internal/filetest"
	"lockstep/sim"
)

// recorded makes a folder of results with one failing run in a new working directory. It
// returns the recording of the run.
func recorded(t *testing.T) (recording string) {
	t.Helper()
	t.Chdir(t.TempDir())
	if code, _, stderr := call(t, "run", "misdelete", "--lock", "setnx-del", "--seed", "1", "--out", "r"); code != frame.ExitOK {
		t.Fatal(stderr)
	}
	return "r/misdelete/setnx-del/1.lockstep"
}

func TestReport(t *testing.T) {
	recording := recorded(t)
	t.Run("a page", func(t *testing.T) {
		code, out, stderr := call(t, "report", recording)
		if code != frame.ExitOK || stderr != "" || out != "misdelete-setnx-del-1.html\n" {
			t.Fatalf("exit %d, %q, %q", code, out, stderr)
		}
		page := filetest.Read(t, "misdelete-setnx-del-1.html")
		for _, want := range []string{"<!doctype html>", "ended the hold of b/1 on orders at 5.014s", ">Cause: a known defect: SETNX-misdelete, ", "porcupine’s own picture of orders", "go run ./cmd/simrun replay " + recording} {
			if !strings.Contains(page, want) {
				t.Errorf("the page has no %q", want)
			}
		}
	})
	t.Run("it replaces what was there, whole or not at all", func(t *testing.T) {
		filetest.Write(t, "out.html", "before")
		filetest.Write(t, "changed.lockstep", strings.Replace(filetest.Read(t, recording), `"digest":"`, `"digest":"0`, 1))
		if code, _, stderr := call(t, "report", "changed.lockstep", "-o", "out.html"); code != frame.ExitUndecided || !strings.Contains(stderr, "not the same again") {
			t.Errorf("exit %d: %s", code, stderr)
		}
		if got := filetest.Read(t, "out.html"); got != "before" {
			t.Errorf("of a run that is not the same again the file holds %.40q", got)
		}
		if code, _, stderr := call(t, "report", recording, "-o", "out.html"); code != frame.ExitOK {
			t.Errorf("exit %d: %s", code, stderr)
		}
		if got := filetest.Read(t, "out.html"); !strings.HasSuffix(got, "</html>\n") {
			t.Errorf("it ends in %q", got[len(got)-20:])
		}
		if left, err := filepath.Glob(".writing-*"); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	t.Run("as text", func(t *testing.T) {
		code, out, _ := call(t, "report", "--text", recording)
		if replayed, text, _ := call(t, "replay", recording); replayed != frame.ExitOK || !strings.Contains(text, "cause: a known defect: SETNX-misdelete, ") {
			t.Errorf("the replay: exit %d\n%s", replayed, text)
		}
		if code != frame.ExitOK || !strings.Contains(out, "cause: a known defect: SETNX-misdelete, ") || !strings.Contains(out, "held by b/1 ×1, until 13.015s") || !strings.Contains(out, "▶ 5.014s misdelete (bug)") {
			t.Errorf("exit %d\n%s", code, out)
		}
	})
	t.Run("as a diagram", func(t *testing.T) {
		if code, out, _ := call(t, "report", "--mermaid", recording); code != frame.ExitOK || !strings.HasPrefix(out, "sequenceDiagram\n") {
			t.Errorf("exit %d\n%s", code, out)
		}
	})
	t.Run("as a trace", func(t *testing.T) {
		code, out, _ := call(t, "report", "--format", "perfetto", recording)
		if code != frame.ExitOK || !json.Valid([]byte(out)) || !strings.Contains(out, `"name":"lock orders"`) {
			t.Errorf("exit %d\n%s", code, out)
		}
		if code, said, stderr := call(t, "report", recording, "--format", "perfetto", "-o", "trace.json"); code != frame.ExitOK || said != "trace.json\n" || filetest.Read(t, "trace.json") != out {
			t.Errorf("into a file: exit %d, %q, %q", code, said, stderr)
		}
	})
	t.Run("each format by its name", func(t *testing.T) {
		for _, format := range []string{"text", "mermaid"} {
			_, short, _ := call(t, "report", recording, "--"+format)
			if code, out, stderr := call(t, "report", recording, "--format", format); code != frame.ExitOK || out != short || out == "" {
				t.Errorf("%s: exit %d, %q, %q", format, code, out, stderr)
			}
		}
		if code, out, stderr := call(t, "report", recording, "--format", "page"); code != frame.ExitOK || out != "misdelete-setnx-del-1.html\n" {
			t.Errorf("page: exit %d, %q, %q", code, out, stderr)
		}
	})
	t.Run("with what is to blame", func(t *testing.T) {
		code, out, _ := call(t, "report", "--blame", "--runs", "2", recording, "-o", "blame.html")
		if code != frame.ExitOK || !strings.Contains(out, "misdelete is broken in all of 2 runs with none of the") {
			t.Errorf("exit %d\n%s", code, out)
		}
		if !strings.Contains(filetest.Read(t, "blame.html"), "Which decision made it inevitable") {
			t.Error("the page has no curve")
		}
	})
	t.Run("a folder", func(t *testing.T) {
		code, out, stderr := call(t, "report", "r")
		if code != frame.ExitOK || out != filepath.FromSlash("r-report/index.html")+", with 1 report\n" {
			t.Fatalf("exit %d, %q, %q", code, out, stderr)
		}
		if index := filetest.Read(t, "r-report/index.html"); !strings.Contains(index, `href="./misdelete/setnx-del/1.html"`) || !strings.Contains(index, "9.89ms, at most 2.02s") {
			t.Error("the index does not lead to the report, or knows no waits")
		}
		page, shared := filetest.Read(t, "r-report/misdelete/setnx-del/1.html"), filetest.Read(t, "r-report/page.js")
		for _, want := range []string{"ended the hold of b/1 on orders at 5.014s", `src="../../page.js"`, `href="../../index.html"`} {
			if !strings.Contains(page, want) {
				t.Errorf("the report has no %q", want)
			}
		}
		if code := "function showState("; strings.Contains(page, code) || !strings.Contains(shared, code) {
			t.Error("the code is in the report, or not in the file beside it")
		}
	})
	t.Run("a folder of folders, with a table beside them", func(t *testing.T) {
		if err := os.CopyFS("all/below", os.DirFS("r")); err != nil {
			t.Fatal(err)
		}
		filetest.Write(t, "all/kill-table.jsonl", `{"bug":"one","judge":"fifo","kills":[{"runs":3,"first":["fifo"]},{"runs":0}],"in":"a lock","what":"it never ends","at_most":9}`+"\n")
		code, out, stderr := call(t, "report", "all")
		if code != frame.ExitOK || out != filepath.FromSlash("all-report/index.html")+", with 1 report\n" {
			t.Fatalf("exit %d, %q, %q", code, out, stderr)
		}
		const link = `href="./below/misdelete/setnx-del/1.html"`
		if index := filetest.Read(t, "all-report/index.html"); !strings.Contains(index, "Planted bugs") || !strings.Contains(index, "it never ends") || !strings.Contains(index, "1 of 2") || strings.Count(index, link) != 2 {
			t.Error("the index has not the table, or the matrix and the list do not both lead to the report")
		}
	})
	t.Run("a folder with a recording that leads out of it", func(t *testing.T) {
		line := strings.Replace(filetest.Read(t, "r/verdicts.jsonl"), "misdelete/setnx-del/1.lockstep", "../secret.lockstep", 1)
		if err := os.Mkdir("evil", 0o755); err != nil {
			t.Fatal(err)
		}
		filetest.Write(t, "evil/verdicts.jsonl", line)
		filetest.Write(t, "secret.lockstep", filetest.Read(t, recording))
		code, _, stderr := call(t, "report", "evil", "-o", "evil-out")
		if code != frame.ExitUndecided || stderr != "simrun: without a report: 1 recording outside of evil, of which nothing is read; report a folder that has them, such as .\n" {
			t.Errorf("exit %d: %s", code, stderr)
		}
		if _, err := os.Stat("secret.html"); err == nil {
			t.Error("it wrote outside of its folder")
		}
	})
	t.Run("a folder with a recording of a lock that the program does not know", func(t *testing.T) {
		if err := os.CopyFS("foreign", os.DirFS("r")); err != nil {
			t.Fatal(err)
		}
		filetest.Write(t, "foreign/misdelete/setnx-del/1.lockstep", strings.ReplaceAll(filetest.Read(t, recording), `"lock":"setnx-del"`, `"lock":"a-foreign-lock"`))
		code, out, stderr := call(t, "report", "foreign", "-o", "foreign-out")
		if code != frame.ExitUndecided || out != filepath.FromSlash("foreign-out/index.html")+", with 0 reports\n" || stderr != "simrun: without a report: 1 recording of locks that this program does not know\n" {
			t.Errorf("exit %d, %q, %q", code, out, stderr)
		}
	})
	for file, want := range map[string]int{"misdelete/setnx-del/1.lockstep": frame.ExitUndecided, "verdicts.jsonl": frame.ExitUsage, "other": frame.ExitOK} {
		t.Run("a folder in which a FIFO is "+file, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, file)
			if err := errors.Join(os.CopyFS(dir, os.DirFS("r")), os.RemoveAll(file), syscall.Mkfifo(file, 0o600)); err != nil {
				t.Fatal(err)
			}
			if a := answered(t, "a FIFO", "report", dir, "-o", filepath.Join(t.TempDir(), "out")); a.Code != want || strings.Contains(a.Errors, "is not a regular file") != (want != frame.ExitOK) {
				t.Error(a)
			}
		})
	}

	bad := []struct {
		rule string
		args []string
		says string
	}{
		{"nothing", nil, "one recording or one folder of results, got 0"},
		{"two", []string{recording, recording}, "got 2"},
		{"no such file", []string{"no.lockstep"}, "simrun: there is no file no.lockstep; report takes a recording, a file SEED.lockstep, or a folder of results\n"},
		{"no recording", []string{"out.html"}, "out.html:1:"},
		{"into itself", []string{recording, "-o", recording}, "is the recording itself; name another file"},
		{"into a folder", []string{recording, "-o", "r"}, "is a folder"},
		{"text and diagram", []string{recording, "--text", "--mermaid"}, "one of them"},
		{"two formats", []string{recording, "--text", "--format", "perfetto"}, "report: --format and --text: give one of them"},
		{"an unknown format", []string{recording, "--format", "html"}, "known are page, text, mermaid, perfetto"},
		{"a trace with a curve", []string{recording, "--blame", "--format", "perfetto"}, "no curve"},
		{"a folder as a trace", []string{"r", "--format", "perfetto"}, "are for a recording"},
		{"a trace into the recording", []string{recording, "--format", "perfetto", "-o", recording}, "is the recording itself"},
		{"a diagram with a curve", []string{recording, "--blame", "--mermaid"}, "no curve"},
		{"runs without blame", []string{recording, "--runs", "3"}, "belongs to --blame"},
		{"no runs", []string{recording, "--blame", "--runs", "0"}, "from 1"},
		{"a folder as text", []string{"r", "--text"}, "are for a recording"},
		{"a folder without results", []string{"r/misdelete"}, "holds no results"},
		{"an unknown option", []string{recording, "--html"}, "report knows --blame, --format, --mermaid, --out, --quiet, --runs, --text"},
	}
	for _, c := range bad {
		t.Run(c.rule, func(t *testing.T) {
			code, out, stderr := call(t, append([]string{"report"}, c.args...)...)
			if code != frame.ExitUsage || out != "" || !strings.Contains(stderr, c.says) {
				t.Errorf("exit %d, %q, %q", code, out, stderr)
			}
		})
	}
}

// The reports of a folder take minutes, so stderr shows how many are written, and which is next.
func TestReportOfAFolderTellsItsProgress(t *testing.T) {
	recorded(t)
	var out, stderr strings.Builder
	a := &frame.App{Program: testProgram(), Host: sim.NewHost(t), Out: &out, Err: &stderr, Pace: time.Nanosecond}
	if code := a.Run([]string{"report", "r"}); code != frame.ExitOK {
		t.Fatal(stderr.String())
	}
	if got := stderr.String(); got != "0 of 1 reports; now misdelete/setnx-del/1.lockstep\n" {
		t.Errorf("on stderr stands %q", got)
	}
}

func TestServeStaysOnThisMachine(t *testing.T) {
	recorded(t)
	for addr, says := range map[string]string{
		"0.0.0.0:7420": "on this machine only", ":7420": "on this machine only", "192.0.2.1:80": "on this machine only",
		"example.org:80": "on this machine only", "[::]:80": "on this machine only", "127.0.0.1": "with its port",
	} {
		code, out, stderr := call(t, "serve", "r", "--addr", addr)
		if code != frame.ExitUsage || out != "" || !strings.Contains(stderr, says) {
			t.Errorf("%s: exit %d, %q, %q", addr, code, out, stderr)
		}
	}
	for _, addr := range []string{"127.0.0.1:0", "localhost:7420", "[::1]:80", "127.8.8.8:1"} {
		if err := onLoopback(addr); err != nil {
			t.Errorf("%s: %v", addr, err)
		}
	}
	for header, own := range map[string]bool{
		"localhost": true, "localhost:7420": true, "127.0.0.1": true, "[::1]": true, "[::1]:80": true,
		"example.org": false, "localhost.example.org": false, "localhost:example.org": false, "]localhost[": false, "example.org:80@localhost": false, "[localhost": false, "": false,
	} {
		if ownHost(header) != own {
			t.Errorf("the Host %q: %v", header, !own)
		}
	}
	if code, _, stderr := call(t, "serve", "r/misdelete"); code != frame.ExitUsage || !strings.Contains(stderr, "holds no results") {
		t.Errorf("a folder without results: exit %d, %s", code, stderr)
	}
}

func TestServe(t *testing.T) {
	recording := recorded(t)
	filetest.Write(t, "secret.lockstep", filetest.Read(t, recording))
	if err := os.Symlink("../secret.lockstep", "r/link.lockstep"); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot("r")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = root.Close() }()
	s := &folderServer{app: &frame.App{Program: testProgram(), Host: sim.NewHost(t)}, root: root, dir: "r"}
	get := func(method, host, path string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "http://"+host+"/", nil)
		r.URL.Path = path
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}
	cases := []struct {
		rule, method, host, path string
		code                     int
		says                     string
	}{
		{"the index", "GET", "127.0.0.1:7420", "/", 200, `href="./run/misdelete/setnx-del/1.lockstep"`},
		{"how long calls waited", "GET", "localhost", "/", 200, "9.89ms, at most 2.02s"},
		{"a report", "GET", "localhost:7420", "/run/misdelete/setnx-del/1.lockstep", 200, "ended the hold of b/1"},
		{"what is not there", "GET", "127.0.0.1", "/run/misdelete/2.lockstep", 404, "no such recording"},
		{"out of the folder", "GET", "127.0.0.1", "/run/../secret.lockstep", 422, "escapes"},
		{"out of it through a link", "GET", "127.0.0.1", "/run/link.lockstep", 422, "escapes"},
		{"an absolute path", "GET", "127.0.0.1", "/run//etc/x.lockstep", 422, "escapes"},
		{"other files of the folder", "GET", "127.0.0.1", "/verdicts.jsonl", 404, ""},
		{"a page of somebody else's, by its own name", "GET", "evil.example", "/", 403, "its own machine"},
		{"a change", "POST", "127.0.0.1", "/", 405, ""},
	}
	for _, c := range cases {
		t.Run(c.rule, func(t *testing.T) {
			w := get(c.method, c.host, c.path)
			if w.Code != c.code || !strings.Contains(w.Body.String(), c.says) {
				t.Errorf("%d: %.200s", w.Code, w.Body)
			}
		})
	}
	t.Run("the stamp changes with the folder", func(t *testing.T) {
		before := get("GET", "127.0.0.1", "/stamp").Body.String()
		if index := get("GET", "127.0.0.1", "/").Body.String(); !strings.Contains(index, `data-stamp="`+before) || before == "" {
			t.Error("the index has no stamp")
		}
		filetest.Write(t, "r/verdicts.jsonl", filetest.Read(t, "r/verdicts.jsonl")+"\n")
		if after := get("GET", "127.0.0.1", "/stamp").Body.String(); after == before {
			t.Error("it stays")
		}
	})
	t.Run("a broken line is told", func(t *testing.T) {
		filetest.Write(t, "r/verdicts.jsonl", "{\n")
		if w := get("GET", "127.0.0.1", "/"); w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "verdicts.jsonl:1: not a verdict") {
			t.Errorf("%d: %s", w.Code, w.Body)
		}
	})
}

// The index of a campaign under way, which has no verdicts yet, shows the runs that it has
// played.
func TestTheIndexOfACampaignUnderWay(t *testing.T) {
	t.Chdir(t.TempDir())
	code, _, stderr := call(t, "explore", "--lock", "setnx-del", "--faults", "pause", "--runs", "40", "--jobs", "1", "--out", "c")
	if code != frame.ExitUnexpected {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	index := func() string {
		if code, _, stderr := call(t, "report", "c", "-o", "out"); code != frame.ExitOK {
			t.Fatalf("exit %d: %s", code, stderr)
		}
		return filetest.Read(t, "out/index.html")
	}
	whole := index()
	if !strings.Contains(whole, ": 40 runs, ") || !strings.Contains(whole, "<title>States: how many") || !strings.Contains(whole, ".html\">misdelete</a>") {
		t.Error("the index of a campaign lacks its total, its curve or a link")
	}
	if !strings.Contains(whole, "<i>excused: holder paused past its lease</i>") || strings.Contains(whole, "not asked yet") {
		t.Error("the index of a campaign lacks what excuses a limit, or which faults something needs")
	}
	// Restore the campaign as it was after 30 runs.
	if err := os.Remove("c/verdicts.jsonl"); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(filetest.Read(t, "c/runs.jsonl"), "\n")
	filetest.Write(t, "c/runs.jsonl", strings.Join(lines[:30], "")+lines[30][:10])
	var last explore.Run
	if err := json.Unmarshal([]byte(lines[29]), &last); err != nil {
		t.Fatal(err)
	}
	// serve shows the same, and the runs played since. It follows no link out of the folder.
	if err := os.Mkdir("linked", 0o755); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"campaign.json", "runs.jsonl"} {
		if err := os.Symlink("../c/"+file, "linked/"+file); err != nil {
			t.Fatal(err)
		}
	}
	served := func(dir string) (string, error) {
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = root.Close() }()
		s := &folderServer{root: root, dir: dir}
		w := httptest.NewRecorder()
		s.index(w)
		_, err = ReadIndex(root, dir)
		return s.stamp() + w.Body.String(), err
	}
	before, err := served("c")
	if err != nil || !strings.Contains(before, "under way: 30 runs of setnx-del") || !strings.Contains(before, ">not asked yet</td>") {
		t.Errorf("served, the campaign under way is not told (%v)", err)
	}
	filetest.Write(t, "c/runs.jsonl", strings.Join(lines[:35], ""))
	if after, _ := served("c"); !strings.Contains(after, "under way: 35 runs of setnx-del") || after[:40] == before[:40] {
		t.Error("served, it does not follow the campaign")
	}
	filetest.Write(t, "c/runs.jsonl", strings.Join(lines[:30], "")+lines[30][:10])
	if got, err := served("linked"); err == nil || strings.Contains(got, "setnx-del") {
		t.Errorf("a campaign outside is shown through links (%v)", err)
	}
	half := index()
	if !strings.Contains(half, "under way: 30 runs of setnx-del") || !strings.Contains(half, "misdelete") {
		t.Error("the index of a campaign under way does not tell its 30 runs")
	}
	// Both have the picture of the cells.
	for _, page := range []string{whole, half} {
		if !strings.Contains(page, `title="pause met `) || !strings.Contains(page, `title="pause never met `) {
			t.Error("the index of a campaign lacks the cells that were met, or the others")
		}
	}
}

func TestRunForOtherPrograms(t *testing.T) {
	code, out, _ := call(t, "run", "misdelete", "--lock", "none", "--lock", "setnx-del", "--seed", "1", "--format", "junit")
	if code != frame.ExitUndecided || !strings.Contains(out, `<testsuites tests="2" failures="0" errors="1">`) {
		t.Errorf("exit %d\n%s", code, out)
	}
	code, out, _ = call(t, "run", "misdelete", "--lock", "none", "--seed", "1", "--format", "github")
	if code != frame.ExitUndecided || !strings.HasPrefix(out, "::warning file=scenarios/builtin/misdelete.yaml,title=misdelete on none") {
		t.Errorf("exit %d\n%s", code, out)
	}
	for _, args := range [][]string{{"--format", "xml"}, {"--format", "junit", "--json"}} {
		if code, _, stderr := call(t, append([]string{"run", "misdelete"}, args...)...); code != frame.ExitUsage || !strings.Contains(stderr, "--format") {
			t.Errorf("%v: exit %d, %s", args, code, stderr)
		}
	}
}

// simrun run prints the story of a run that was not as expected, and of no other run.
func TestRunTellsAFailingRunsStory(t *testing.T) {
	_, out, _ := call(t, "run", "misdelete", "--lock", "none", "--seed", "1")
	if !strings.Contains(out, "b/1                          server\n") || !strings.Contains(out, "1.000s                               lock orders: granted\n") {
		t.Errorf("no story in\n%s", out)
	}
	_, out, _ = call(t, "run", "misdelete", "--lock", "setnx-del", "--seed", "1")
	if strings.Contains(out, "server\n") {
		t.Errorf("a story of what was expected:\n%s", out)
	}
}
