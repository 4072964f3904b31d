package report

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"sync"

	"lockstep/internal/foreign"
	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/model/trace"
)

//go:embed assets/page.html
var pageHTML string

//go:embed assets/page.css
var pageCSS string

//go:embed assets/page.js
var pageJS string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{"at": model.At}).Parse(pageHTML))

// A Picture is porcupine's own picture of a lock's history. HTML is a whole page. If there
// is none, Why says why.
type Picture struct {
	Lock string `json:"lock"`
	HTML string `json:"html,omitempty"`
	Why  string `json:"-"`
}

// signs maps each verdict to the sign that stands beside its colour.
var signs = map[string]string{"held": "✓", "bug": "✗", "limit": "!", "undecided": "?", "nondeterministic": "≠", "n/a": "–"}

// A Link leads to another page.
type Link struct {
	Text string
	// To is the address, relative to the page with the link.
	To string
}

// WriteHTML writes a run as one page that needs no network and no other file.
func WriteHTML(w io.Writer, r Run, pictures []Picture) error {
	shown := make([]shownPicture, len(pictures))
	for i, p := range pictures {
		shown[i].Picture = p
	}
	return writePage(w, r, shown, "", nil)
}

// WritePage writes a run as one of several pages that share the file of WriteShared. shared
// is the address of that file, relative to the page. The links lead out of the page.
func WritePage(w io.Writer, r Run, pictures []Picture, shared string, links ...Link) error {
	shown := make([]shownPicture, len(pictures))
	for i, p := range pictures {
		shown[i] = inFrame(p)
	}
	return writePage(w, r, shown, shared, links)
}

func writePage(w io.Writer, r Run, pictures []shownPicture, shared string, links []Link) error {
	v := build(r)
	v.cut()
	var processes, named []string
	for _, l := range v.Lanes {
		if l.Process != "" && !slices.Contains(processes, l.Process) {
			processes = append(processes, l.Process)
		}
	}
	for _, f := range v.Findings {
		if !slices.Contains(named, f.Judge) {
			named = append(named, f.Judge)
		}
	}
	return foreign.Page(w, pageTemplate, struct {
		Run               Run
		View              *view
		Title             string
		Sign, Text        string
		Processes, Judges []string
		Pictures          []shownPicture
		Whole, Others     int
		Died, Closed      bool // some process died, some client closed
		Links             []Link
		Shared            string
		Style             template.CSS
		Script            template.JS
	}{r, v, v.title(r), signs[r.Verdict], textOf(r, v), processes, named, pictures, findingsWhole, len(v.Findings) - findingsWhole, v.ended(goneDied), v.ended(goneClosed), links, shared, template.CSS(pageCSS), template.JS(pageJS)})
}

// ended reports whether a process ended so.
func (v *view) ended(how string) bool {
	return slices.ContainsFunc(v.Gone, func(g gone) bool { return g.How == how })
}

// title returns a title that no other run's page has. A tab of a browser shows only the beginning, so
// the finding comes first: runs that were made small share the name of their scenario.
func (v *view) title(r Run) string {
	name := fmt.Sprintf("%s on %s, seed %d", r.Scenario, r.Lock, r.Seed)
	if len(v.Findings) == 0 {
		return r.Verdict + ": " + name
	}
	f := v.Findings[0]
	return fmt.Sprintf("%s %s: %s: %s", r.Verdict, f.Judge, name, Clip(f.Why, textMost))
}

// A shownPicture is a picture as a page keeps it. The shared file has the lines that begin
// and end all pictures: HTML stands between the first Head and the last Tail lines of the
// frame.
type shownPicture struct {
	Picture
	Head int `json:"head,omitempty"`
	Tail int `json:"tail,omitempty"`
}

// frame returns the picture of a lock that one thread locks and unlocks.
var frame = sync.OnceValue(func() string {
	rec := &model.Record{Params: model.Params{Processes: []model.ProcessParams{{Name: "a", Threads: 1}}}}
	for i, e := range []model.Event{
		{Kind: model.KindInvoke, Action: model.ActLock}, {Kind: model.KindReturn, Action: model.ActLock, Outcome: model.Granted},
		{Kind: model.KindInvoke, Action: model.ActUnlock}, {Kind: model.KindReturn, Action: model.ActUnlock, Outcome: model.Released},
	} {
		e.AtNs, e.Process, e.Thread, e.Op, e.Lock = int64(i), "a", 1, i/2+1, "x"
		rec.Add(e)
	}
	var b bytes.Buffer
	if err := judges.Picture(trace.New(rec), "x", &b); err != nil {
		panic(fmt.Sprintf("no picture of a lock and an unlock: %v", err))
	}
	return b.String()
})

// inFrame takes the lines of the frame out of a picture.
func inFrame(p Picture) shownPicture {
	out := shownPicture{Picture: p}
	outer, lines := strings.Split(frame(), "\n"), strings.Split(p.HTML, "\n")
	most := min(len(outer), len(lines)-1) // at least one line stays
	for out.Head < most && outer[out.Head] == lines[out.Head] {
		out.Head++
	}
	for out.Tail < most-out.Head && outer[len(outer)-1-out.Tail] == lines[len(lines)-1-out.Tail] {
		out.Tail++
	}
	out.HTML = strings.Join(lines[out.Head:len(lines)-out.Tail], "\n")
	return out
}

// SharedFile is the name of the file that WriteShared writes, unless the caller has another.
const SharedFile = "page.js"

// WriteShared writes the file that has the code and the styles of all pages that WritePage
// writes. It is a script, and works from disk, too.
func WriteShared(w io.Writer) error {
	style, err := json.Marshal(pageCSS)
	if err != nil {
		return err
	}
	outer, err := json.Marshal(frame())
	if err != nil {
		return err
	}
	// The script stands in the head of a page: the style is there before the page is drawn,
	// and the code begins when the page is read.
	_, err = fmt.Fprintf(w, `// Code and styles of the pages beside this file, which simrun wrote.
document.head.append(Object.assign(document.createElement("style"), { textContent: %s }));
const pictureFrame = %s;
addEventListener("DOMContentLoaded", () => {
%s});
`, style, outer, pageJS)
	return err
}

// Style returns the styles of the pages: the colours of light and dark, and the look of the shared
// elements.
func Style() string { return pageCSS }
