package site

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"net/url"
	"path"
	"slices"
	"strings"

	"lockstep/internal/foreign"
	"lockstep/report"
)

//go:embed assets/site.html
var siteHTML string

//go:embed assets/site.css
var siteCSS string

//go:embed assets/site.js
var siteJS []byte

var siteTemplate = template.Must(template.New("site").Parse(siteHTML))

// The files that all pages share.
const (
	styleFile  = "site.css"
	scriptFile = "site.js"
	searchFile = "search.js"
	sharedFile = report.SharedFile
)

// escaped returns the path of a file of the site as an address.
func escaped(name string) string { return (&url.URL{Path: name}).EscapedPath() }

// parts are the parts of a site that each page leads to, if the repository has them.
var parts = []struct{ name, file, about string }{
	{"Survey", results + "/survey.md", "Locks compared: which promises hold under which faults, and what an acquire costs."},
	{"Track record", results + "/track-record.md", "Bugs that users reported, replayed on each release."},
	{"Findings", results + "/findings.md", "What campaigns found that nobody scripted: each defect, and who is to blame."},
	{"Runs", results, "Scenarios by locks. Each recording is a page on which the run can be stepped through."},
	{"Documents", docs, "How it works, why it can be believed, and how to judge a lock of your own."},
}

// A Part is a part of the site as a page shows it.
type Part struct {
	report.Link
	About string
	Here  bool
}

// A Page is the input of the template.
type Page struct {
	Title    string
	Root     string // the way to the front page
	Parts    []Part
	Front    bool
	Chapters []chapter
	// Lead and Body are the text. The front page has its parts between them.
	Lead, Body template.HTML
}

// partsFrom returns the parts of the site as a page leads to them.
func (b *builder) partsFrom(page string) []Part {
	var out []Part
	for _, x := range parts {
		if there := b.siteFile(x.file); there != "" {
			out = append(out, Part{Link: report.Link{Text: x.name, To: link(page, there)}, About: x.about, Here: there == page})
		}
	}
	return out
}

// page writes a page of the site. body is HTML.
func (b *builder) page(name, title string, p Page) error {
	p.Title, p.Root, p.Parts = title, strings.Repeat("../", strings.Count(name, "/")), b.partsFrom(name)
	var out bytes.Buffer
	if err := foreign.Page(&out, siteTemplate, p); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return b.folder.write(name, out.Bytes())
}

// chaptersLeast is the least number of chapters for which a list stands above the text.
const chaptersLeast = 3

// render returns the page of a document.
func (b *builder) render(d *document) Page {
	var p Page
	if p.Chapters = d.chapters(); len(p.Chapters) < chaptersLeast {
		p.Chapters = nil
	}
	d.leadTo(b.pages[d.name], b.siteFile)
	p.Body = template.HTML(d.html())
	return p
}

// front writes the front page: the README, with the parts of the site after its first paragraph.
func (b *builder) front() error {
	p := Page{Front: true}
	if text, err := b.Repository.ReadFile(readme); err == nil {
		d := parse(readme, text)
		d.leadTo("index.html", b.siteFile)
		p.Lead = template.HTML(d.lead().html())
		p.Body = template.HTML(d.html())
	}
	return b.page("index.html", "Lockstep", p)
}

// list writes the list of the documents, by their folders.
func (b *builder) list() error {
	page := b.pages[docs]
	var out strings.Builder
	item := func(d *document) string {
		return fmt.Sprintf("<li><a href=\"%s\">%s</a> <small>%s</small></li>\n", template.HTMLEscapeString(link(page, b.pages[d.name])), template.HTMLEscapeString(d.title), template.HTMLEscapeString(d.name))
	}
	out.WriteString("<h1>Documents</h1>\n")
	folder := ""
	documents := slices.Clone(b.documents)
	// The pages of the root come first, then docs, then results and the folders below it.
	slices.SortStableFunc(documents, func(x, y *document) int { return strings.Compare(folderOf(x), folderOf(y)) })
	for i, d := range documents {
		if f := folderOf(d); i == 0 || f != folder {
			if i > 0 {
				out.WriteString("</ul>\n")
			}
			folder = f
			if f == "." {
				f = "the repository"
			}
			fmt.Fprintf(&out, "<h2>%s</h2>\n<ul>\n", template.HTMLEscapeString(f))
		}
		out.WriteString(item(d))
	}
	if len(documents) > 0 {
		out.WriteString("</ul>\n")
	}
	return b.page(page, "Documents", Page{Body: template.HTML(out.String())})
}

// folderOf returns the folder under which a document is listed, at most two levels deep.
func folderOf(d *document) string {
	folder := strings.Split(path.Dir(d.name), "/")
	return strings.Join(folder[:min(2, len(folder))], "/")
}

// assets writes the files that all pages share.
func (b *builder) assets() error {
	var shared bytes.Buffer
	if err := report.WriteShared(&shared); err != nil {
		return err
	}
	for name, text := range map[string][]byte{styleFile: []byte(report.Style() + siteCSS), scriptFile: siteJS, sharedFile: shared.Bytes()} {
		if err := b.folder.write(name, text); err != nil {
			return err
		}
	}
	return nil
}

// An entry is a place of the site that the search finds.
type entry struct {
	page, place    string
	title, heading string
	text           string
}

// searchRuns adds the runs that have a page.
func (b *builder) searchRuns() {
	add := func(recording, title, heading, text string) {
		if page := b.siteFile(results + "/" + recording); recording != "" && page != "" {
			b.search = append(b.search, entry{page: page, title: title, heading: heading, text: text})
		}
	}
	for _, r := range b.Index.Runs {
		add(r.Recording, fmt.Sprintf("%s on %s, seed %d", r.Scenario, r.Lock, r.Seed), r.Verdict, r.Why())
	}
	for _, c := range b.Index.Campaigns {
		for _, g := range c.Groups {
			add(g.Recording, c.Name, g.Class+" "+g.Judge, strings.TrimSpace(g.Why+" "+g.Known))
		}
	}
}

// writeSearch writes the index of the search: a script that a page loads when somebody searches.
func (b *builder) writeSearch() error {
	list := make([][]string, len(b.search))
	for i, e := range b.search {
		to := escaped(e.page)
		if e.place != "" {
			to += "#" + e.place
		}
		list[i] = []string{to, e.title, e.heading, e.text}
	}
	text, err := json.Marshal(list)
	if err != nil {
		return err
	}
	return b.folder.write(searchFile, fmt.Appendf(nil, "// Each place of the site: its address, its title, its heading and its text.\nwindow.siteIndex = %s;\n", text))
}
