package report

import (
	_ "embed"
	"html/template"
	"io"
	"slices"

	"lockstep/model"
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

// WriteHTML writes a run as one page that needs no network and no other file.
func WriteHTML(w io.Writer, r Run, pictures []Picture) error {
	v := build(r)
	v.cut()
	var processes, judges []string
	for _, l := range v.Lanes {
		if l.Process != "" && !slices.Contains(processes, l.Process) {
			processes = append(processes, l.Process)
		}
	}
	for _, f := range v.Findings {
		if !slices.Contains(judges, f.Judge) {
			judges = append(judges, f.Judge)
		}
	}
	return pageTemplate.Execute(w, struct {
		Run               Run
		View              *view
		Sign, Text        string
		Processes, Judges []string
		Pictures          []Picture
		Style             template.CSS
		Script            template.JS
	}{r, v, signs[r.Verdict], textOf(r, v), processes, judges, pictures, template.CSS(pageCSS), template.JS(pageJS)})
}
