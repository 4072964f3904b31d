package locktest

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/renameio/v2"

	"lockstep/explain"
	explored "lockstep/explore/failure"
	"lockstep/internal/counted"
	"lockstep/known"
	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/report"
	"lockstep/report/sentence"
	"lockstep/scenarios/play"
	"lockstep/sim"
)

// failure is a bug that was found.
type failure struct {
	fingerprint string
	verdict     play.Verdict
	finding     judges.Finding
	schedules   map[int]bool // the indexes of the schedules that showed it, if it was explored
	size        int          // in events
	unfinished  bool         // the time to make it smaller was over
	how         string       // in which schedules, for people
	file        string       // the recording; "": it is to be written
	story       string       // the story that showed it; "": none
}

// drawn says how many of the drawn schedules show the failure, and how small it was made.
func (f failure) drawn(of int) string {
	text := fmt.Sprintf("%d of %s do, the first is number %d; made small to %s",
		len(f.schedules), counted.Of(of, "schedule"), slices.Min(slices.Collect(maps.Keys(f.schedules)))+1, counted.Of(f.size, "event"))
	if f.unfinished {
		text += ", until the time for it was over: a larger Options.Shrink may make it smaller"
	}
	return text
}

// kind identifies a mistake: all its failures have the same kind.
type kind struct {
	judge  string
	class  judges.Class
	op     string
	origin explored.Origin
	// source is the stack of a request that changed the hold of another thread. Then the other fields are empty: such a
	// request breaks several promises.
	source string
}

// A shownFailure is a failure that was shown whole.
type shownFailure struct {
	name string // of its story, or its fingerprint
	kind kind
	hint string
}

// shownBefore returns the failure that was shown whole and is of the same kind. If there is none, it returns false, and
// remembers this failure, which is to be shown whole.
func (r *runner) shownBefore(f failure, hint string, source *explain.Request, n *known.Namer) (shownFailure, bool) {
	this := shownFailure{"the failure " + f.fingerprint, kindOf(f.verdict, f.finding, n), hint}
	if source != nil && source.Victim != "" && len(source.Stack) > 0 { // a mistake of its own, whatever follows from it
		this.kind = kind{source: fmt.Sprint(source.Stack)}
	}
	if f.story != "" {
		this.name = "the story " + f.story
	}
	for _, before := range r.shown {
		if before.kind == this.kind {
			return before, true
		}
	}
	r.shown = append(r.shown, this)
	return shownFailure{}, false
}

// others returns the first finding of each judge that found a bug in a run, and of which neither a failure nor such a
// finding was shown so far.
func (r *runner) others(v play.Verdict) (list []judges.Finding) {
	for _, f := range v.Findings {
		if isBug(f) && len(r.broken[f.Judge]) == 0 && !r.said[f.Judge] {
			r.said[f.Judge], list = true, append(list, f)
		}
	}
	return list
}

func kindOf(v play.Verdict, f judges.Finding, n *known.Namer) kind {
	origin, _ := explored.OriginOf(n, f)
	return kind{judge: f.Judge, class: f.Class, op: explored.OpOf(v, f), origin: origin}
}

// fail fails the test for a bug, unless the bug is accepted. It keeps the recording and
// writes the page.
func (r *runner) fail(t *testing.T, f failure) {
	t.Helper()
	again := r.met[f.fingerprint]
	r.met[f.fingerprint] = true
	if slices.Contains(r.o.Accept, f.fingerprint) {
		say(t).Logf("accepted, %s: %s", f.fingerprint, sentence.Finding(f.finding))
		return
	}
	if again {
		say(t).Errorf("locktest: %s breaks %s here too; the failure %s is shown above", r.s.Name, f.finding.Judge, f.fingerprint)
		return
	}
	r.broken[f.finding.Judge] = append(r.broken[f.finding.Judge], f.fingerprint)
	text := &bytes.Buffer{}
	fmt.Fprintf(text, "%s breaks %s: %s\n", r.s.Name, f.finding.Judge, sentence.Finding(f.finding))
	host, panics := r.host(t), f.verdict.Played.Panics
	namer := explored.NewNamer(host, f.verdict)
	cause, hint := explored.PartingOf(namer, f.finding), cmp.Or(r.s.mistake(f.finding, f.verdict.Played.Trace), explain.Hint(f.finding, f.verdict.Played.Trace))
	var before shownFailure
	short := false
	call, request := explain.Where(host, f.verdict, f.finding)
	if len(panics) == 0 {
		before, short = r.shownBefore(f, hint, request, namer)
	}
	if cause != "" && !short {
		fmt.Fprintf(text, "cause: %s\n", cause)
	}
	if hint != "" && hint != before.hint && before.kind.source == "" {
		fmt.Fprintf(text, "hint: %s\n", hint)
	}
	if !short {
		fmt.Fprint(text, sourceOf(call, request))
	}
	if short {
		fmt.Fprintf(text, "as in %s, which is shown above\n", before.name)
		for _, other := range r.others(f.verdict) {
			fmt.Fprintf(text, "it also breaks %s: %s\n", other.Judge, sentence.Finding(other))
		}
	} else {
		if len(panics) > 0 { // the finding may follow from it
			fmt.Fprintln(text, r.panicText(panics[0]))
		}
	}
	if !short || f.story == "" {
		fmt.Fprintln(text, f.how)
	}
	file, err := f.file, error(nil)
	if file == "" {
		file, err = r.keep(f)
	}
	replay, inAnnotation := "", ""
	if err == nil {
		replay = r.replayOf(file)
		inAnnotation = "\nreplay: " + replay
	}
	page := r.page(f.verdict, replay)
	page.Cause = cause
	if !short {
		one := page
		one.Findings = []judges.Finding{f.finding}
		fmt.Fprintf(text, "\n%s\n\n", strings.TrimRight(timeline(one, explain.LinesMost-bytes.Count(text.Bytes(), []byte("\n"))-linesBelow), "\n"))
	}
	text.WriteString(r.nameOf(f.fingerprint, file, err))
	if dir := *flags.report; dir != "" {
		if at, err := writePage(dir, f.fingerprint, page); err != nil {
			fmt.Fprintf(text, "page:        could not be written: %v\n", err)
		} else {
			if whole, err := filepath.Abs(at); err == nil {
				at = whole // go test runs in the folder of the package, which need not be where it was called
			}
			fmt.Fprintf(text, "page:        %s\n", at)
		}
	}
	r.annotate(t, fmt.Sprintf("%s breaks %s", r.s.Name, f.finding.Judge),
		fmt.Sprintf("%s\n%s\nfingerprint: %s%s", sentence.Finding(f.finding), f.how, f.fingerprint, inAnnotation))
	r.soFar.show(text.String())
	say(t).Error("\n" + text.String())
}

// nameOf returns the lines that name a failure and its recording, of which err is the error of writing it.
func (r *runner) nameOf(fingerprint, file string, err error) string {
	if err != nil {
		return fmt.Sprintf("fingerprint: %s\nthe recording could not be written: %v\n", fingerprint, err)
	}
	return fmt.Sprintf("fingerprint: %s\nreplay:      %s\nrecording:   %s\n", fingerprint, r.replayOf(file), file)
}

// summary lists the promises that the lock breaks, in the order of the judges, each with its plainest failure;
// "": the lock breaks at most one. Failures are shown in another order: recordings of earlier tests, then the plainest
// story, then what was drawn.
func (r *runner) summary() string {
	if len(r.broken) < 2 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s breaks %s. Read the failures above in this order:", r.s.Name, counted.Of(len(r.broken), "promise"))
	for _, judge := range model.Judges {
		fingerprints := r.broken[judge]
		if len(fingerprints) == 0 {
			continue
		}
		plainest := max(0, slices.IndexFunc(fingerprints, func(f string) bool { return storyOf(f) != "" }))
		fmt.Fprintf(&b, "\n%s: %s", judge, fingerprints[plainest])
		if more := len(fingerprints) - 1; more > 0 {
			fmt.Fprintf(&b, " and %d more", more)
		}
	}
	return b.String()
}

// testedPackage is the package of the test and a space, so that a command can name it wherever it
// is given; "" if the test was built of files.
func testedPackage() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	name, isTest := strings.CutSuffix(info.Path, ".test")
	if !isTest || name == "command-line-arguments" {
		return ""
	}
	return name + " "
}

// page returns a run as reports take it. replay is the command that plays it again.
func (r *runner) page(v play.Verdict, replay string) report.Run {
	return report.Run{
		Scenario: v.Scenario.Name, About: v.Scenario.About, Lock: r.s.Name, Seed: v.Seed, Verdict: string(v.Word), Expected: v.Expected,
		Why: sentence.Verdict(v), Replay: replay, Digest: v.Digest(), Record: v.Played.Record, Findings: v.Findings,
	}
}

const (
	// timelineEvents is the number of events in the timeline of a failure.
	timelineEvents = 40
	// linesBelow is the number of lines below the timeline, the empty lines around it included.
	linesBelow = 6
)

// timeline returns the timeline of a failure in at most so many lines, or as few as its last events take.
func timeline(r report.Run, most int) (text string) {
	for events := timelineEvents; events > 0; events-- {
		if text = report.Shortened(r, events); strings.Count(text, "\n") <= most {
			break
		}
	}
	return text
}

// sourceOf returns the lines of code of the request that broke a promise, and of its call, as lines of the text of
// the failure; "": they are not known.
func sourceOf(call *explain.Call, request *explain.Request) (text string) {
	if request == nil || request.Site == nil {
		return ""
	}
	if call != nil && call.Site != nil && *call.Site != *request.Site {
		text = fmt.Sprintf("call: %s\n", call)
	}
	return text + fmt.Sprintf("request: %s\n", request)
}

// fileOf returns the file for the recording of a failure. A recording in which the lock holds now is a test,
// and stays: failures in different schedules may have one fingerprint.
func (r *runner) fileOf(fingerprint string) string {
	file := filepath.Join(r.dir, fingerprint+".lockstep")
	for n := 2; r.holds[file]; n++ {
		file = filepath.Join(r.dir, fingerprint+otherSchedule+strconv.Itoa(n)+".lockstep")
	}
	return file
}

// otherSchedule stands between the fingerprint and the number in the name of a recording.
const otherSchedule = "~"

// fingerprintOf returns the fingerprint in the name of a recording.
func fingerprintOf(file string) string {
	fingerprint, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".lockstep"), otherSchedule)
	return fingerprint
}

// keep writes the recording of a failure.
func (r *runner) keep(f failure) (file string, err error) {
	var b bytes.Buffer
	comment := []string{
		fmt.Sprintf("Lockstep recording of %s: %s", r.s.Name, f.finding.Judge), sentence.Finding(f.finding),
		testCommand(sim.Overlaid) + " replays it. Remove it when the lock is not to be judged in this schedule any more.",
	}
	if err := f.verdict.Recording().Write(&b, comment); err != nil {
		return "", err
	}
	file = r.fileOf(f.fingerprint)
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		return file, err
	}
	return file, renameio.WriteFile(file, b.Bytes(), 0o644)
}

func writePage(dir, name string, page report.Run) (file string, err error) {
	var b bytes.Buffer
	if err := report.WriteHTML(&b, page, nil); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	file = filepath.Join(dir, name+".html")
	return file, renameio.WriteFile(file, b.Bytes(), 0o644)
}

// folder makes the name of a test fit for a path.
func folder(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(`\:*?"<>|`, r) {
			return '-'
		}
		return r
	}, name)
}
