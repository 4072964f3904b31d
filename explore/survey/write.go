package survey

import (
	"bufio"
	"cmp"
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"lockstep/explore"
	"lockstep/internal/counted"
	"lockstep/internal/foreign"
)

// The files of a survey in its folder. Recordings lie in RecordingsDir, in a folder per
// lock.
const (
	MarkdownFile  = "survey.md"
	PageFile      = "survey.html"
	LocksFile     = "survey.jsonl"
	RecordingsDir = "survey"
)

// Survey is the result of a survey of several locks.
type Survey struct {
	Command string   // the command that wrote it
	Chosen  []string // the names of the locks that the command asks for; nil if the program chooses them
	Options Options
	Locks   []Lock
	// Versions are the versions of the program that played it. The zero value is this program.
	Versions explore.Versions
	// OnlySimulated are the names of the locks whose servers exist only in the simulation.
	OnlySimulated []string
}

func (s Survey) versions() explore.Versions {
	if s.Versions == (explore.Versions{}) {
		return explore.CurrentVersions()
	}
	return s.Versions
}

// campaigns returns the names of the campaigns that the locks have cells of, in order. A survey that
// an older program wrote has fewer than Campaigns.
func (s Survey) campaigns() []string {
	return slices.DeleteFunc(Campaigns(), func(name string) bool {
		return !slices.ContainsFunc(s.Locks, func(l Lock) bool {
			return slices.ContainsFunc(l.Cells, func(c Cell) bool { return c.Faults == name })
		})
	})
}

// RecordingFile returns the file of a recording, relative to the folder of the survey.
func RecordingFile(lock, recording string) string {
	return path.Join(RecordingsDir, lock, recording+".lockstep")
}

// head is the first line of LocksFile.
type head struct {
	Survey   string           `json:"survey"` // the command
	Chosen   []string         `json:"chosen,omitempty"`
	Versions explore.Versions `json:"versions"`
	Options
}

// WriteJSON writes a line with the command, the versions and the options, and then one object
// per lock. Each is a line.
func (s Survey) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(head{s.Command, s.Chosen, s.versions(), s.Options}); err != nil {
		return err
	}
	for _, l := range s.Locks {
		if err := enc.Encode(l); err != nil {
			return err
		}
	}
	return nil
}

// Read reads what WriteJSON wrote.
func Read(r io.Reader) (Survey, explore.Versions, error) {
	var h head
	var s Survey
	dec := json.NewDecoder(bufio.NewReader(r))
	if err := dec.Decode(&h); err != nil || h.Survey == "" {
		return s, h.Versions, fmt.Errorf("not a survey: its first line names no command")
	}
	s.Command, s.Chosen, s.Options = h.Survey, h.Chosen, h.Options
	for dec.More() {
		var l Lock
		if err := dec.Decode(&l); err != nil {
			return s, h.Versions, fmt.Errorf("not a survey: lock %d: %w", len(s.Locks)+1, err)
		}
		for i, c := range l.Cells {
			l.Cells[i].Promise = cmp.Or(renamed[c.Promise], c.Promise)
		}
		s.Locks = append(s.Locks, l)
	}
	return s, h.Versions, nil
}

// about explains the survey to its readers.
func (s Survey) about() string {
	fewer := ""
	for _, l := range s.Locks {
		if l.Runs == s.Options.Runs {
			continue
		}
		if fewer == "" {
			fewer = "A schedule of some locks takes longer, and these met fewer: "
		} else {
			fewer += ", "
		}
		fewer += fmt.Sprintf("%s %d", l.Name, l.Runs)
	}
	if fewer != "" {
		fewer += ". "
	}
	reasons := ""
	if slices.ContainsFunc(s.Locks, func(l Lock) bool { return len(l.Reasons()) > 0 }) {
		reasons = " The reasons are below, lock by lock."
	}
	told := ""
	if slices.Contains(s.campaigns(), Stories) {
		told = fmt.Sprintf("The campaign stories begins with the stories of known failures that apply to the lock, and then draws schedules with all classes of faults. "+
			"It plays at least as many as another campaign, a multiple of %d. ", explore.FamilyRuns)
	}
	return fmt.Sprintf("Each lock met %d drawn schedules without faults, and as many with each class of faults that its servers have. "+fewer+told+
		"The callers do everything but force a lock open (profile orderly), and the seed is %d. "+
		"runs: those of all campaigns that were judged. held: the promise held in all of them, which says no more than their number. limit: it broke under a circumstance in which no such lock keeps it. "+
		"bug: it broke although its condition held. not promised: the lock does not claim it. "+
		"not judged: the lock does not show what the judge needs."+reasons, s.Options.Runs, s.Options.Seed)
}

// Weather is a set of faults of servers, and the locks whose servers could have these and no others.
type Weather struct {
	Faults string
	Locks  []string
}

// Weathers returns which faults the servers of the locks could have, in the order of the locks.
func (s Survey) Weathers() (all []Weather) {
	for _, l := range s.Locks {
		faults := cmp.Or(strings.Join(l.serverFaults(), ", "), "none")
		i := slices.IndexFunc(all, func(w Weather) bool { return w.Faults == faults })
		if i < 0 {
			i, all = len(all), append(all, Weather{Faults: faults})
		}
		all[i].Locks = append(all[i].Locks, l.Name)
	}
	return all
}

// marksAbout stands before the marks of campaigns.
const marksAbout = "– stands for not promised. A letter behind bug or limit names a campaign in which the promise broke: "

// weatherAbout stands before the faults of servers.
const weatherAbout = "Compare two locks only by faults that both could meet. These are the faults of the class server:"

// CostHead is the head of the table of costs.
var CostHead = []string{"lock", "acquire: requests", "round trips", "unlock: requests", "round trips", "hand-over: messages", "ms from unlock to grant", "ten waiters: requests per second"}

// CostRow is the row of the lock in the table of costs.
func (l Lock) CostRow() []string {
	c := l.Cost
	return []string{
		l.Name, strconv.Itoa(c.Acquire.Requests), number(c.Acquire.RoundTrips()), strconv.Itoa(c.Unlock.Requests), number(c.Unlock.RoundTrips()),
		strconv.Itoa(c.HandOverMessages), number(c.HandOverMs), number(c.TenWaiters),
	}
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// costAbout explains the table of costs.
const costAbout = "Measured without a fault on a network of 1 ms one way. The client has its connections. Round trips are the time of the call, in units of 2 ms. " +
	"A hand-over lasts from the call of an unlock to the return of the acquire of a client that waits, and its messages are requests, replies and pushes. Both are the medians of 41 hand-overs. " +
	"Ten waiters wait behind a holder, and their requests are counted in the third and fourth second of their wait."

// WriteMarkdown writes the survey for people.
func (s Survey) WriteMarkdown(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "<!-- written by: %s -->\n%s# Survey of locks\n\nWritten by `%s`.\n\n%s\n\n## Which promises hold\n\n", s.Command, s.versions().Comment(), s.Command, s.about())
	for i, m := range s.Legend() {
		fmt.Fprintf(b, "%s**%s** %s", map[bool]string{true: marksAbout, false: ", "}[i == 0], m.Letter, m.Campaign)
	}
	fmt.Fprint(b, ".\n\n")
	names := []string{"lock", "runs"}
	for _, p := range Promises {
		names = append(names, p.Name)
	}
	row(b, names)
	rule(b, len(names))
	for _, l := range s.Locks {
		cells := []string{fmt.Sprintf("[`%s`](#%s)", l.Name, anchor(l.Name)), strconv.Itoa(l.Judged())}
		for _, p := range Promises {
			sum := l.Summary(p.Name)
			text := sum.Short()
			if sum.Recording != "" {
				text = fmt.Sprintf("[%s](%s)", text, RecordingFile(l.Name, sum.Recording))
			}
			for _, m := range sum.Marks() {
				text += " " + m.Letter
			}
			cells = append(cells, text)
		}
		row(b, cells)
	}
	fmt.Fprintf(b, "\n%s\n\n", weatherAbout)
	for _, w := range s.Weathers() {
		fmt.Fprintf(b, "* %s: `%s`\n", w.Faults, strings.Join(w.Locks, "`, `"))
	}
	fmt.Fprintf(b, "\n## When to take which lock\n\n%s\n\n", needsAbout)
	row(b, NeedsHead)
	rule(b, len(NeedsHead))
	for _, n := range Needs {
		var links []string
		for _, c := range s.Met(n) {
			link := fmt.Sprintf("[`%s`](#%s)", c.Lock, anchor(c.Lock))
			if c.Note != "" {
				link += fmt.Sprintf(" (%s)", c.Note)
			}
			links = append(links, link)
		}
		row(b, []string{n.Name, n.Asks(), cmp.Or(strings.Join(links, ", "), noLock)})
	}
	fmt.Fprintf(b, "\n## What an acquire costs\n\n%s\n\n", costAbout)
	row(b, CostHead)
	rule(b, len(CostHead))
	for _, l := range s.Locks {
		row(b, l.CostRow())
	}
	fmt.Fprint(b, "\n## Lock by lock\n")
	for _, l := range s.Locks {
		l.markdown(b, s.campaigns())
	}
	return b.Flush()
}

// noLock stands in the row of a need that no lock meets.
const noLock = "none of these"

// anchor is the anchor that Markdown gives to a heading.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		case r == ' ':
			return '-'
		}
		return -1
	}, heading)
}

func (l Lock) markdown(b *bufio.Writer, campaigns []string) {
	fmt.Fprintf(b, "\n### %s\n\n%s.", l.Name, strings.TrimSuffix(l.About, "."))
	if l.Advice != "" {
		fmt.Fprintf(b, " %s", l.Advice)
	}
	if l.Policy != "" {
		fmt.Fprintf(b, "\n\n*Policy:* %s", l.Policy)
	}
	fmt.Fprint(b, "\n\n")
	names := append([]string{"promise"}, campaigns...)
	row(b, names)
	rule(b, len(names))
	for _, p := range Promises {
		cells := []string{p.Name}
		for _, campaign := range campaigns {
			c := l.Cell(p.Name, campaign)
			text := string(c.Word)
			switch c.Word {
			case Held:
				text += fmt.Sprintf(" %d", c.Runs)
			case Limit:
				text += fmt.Sprintf(" %d of %d: %s", c.Broken, c.Runs, strings.Join(c.Excuses, "; "))
			case Bug:
				text = fmt.Sprintf("[%s](%s) %d of %d", c.Word, RecordingFile(l.Name, c.Recording), c.Broken, c.Runs)
				if len(c.Defects) > 0 {
					text += ": " + strings.Join(c.Defects, ", ")
				}
			}
			cells = append(cells, text)
		}
		row(b, cells)
	}
	for i, reason := range l.Reasons() {
		if i == 0 {
			fmt.Fprint(b, "\n")
		}
		fmt.Fprintf(b, "* %s\n", reason)
	}
	if l.Odd > 0 {
		fmt.Fprintf(b, "\nUndecided, or not the same when played twice: %s.\n", counted.Of(l.Odd, "run"))
	}
	told := map[string]bool{}
	for _, c := range l.Cells {
		if c.Word == Bug && !told[c.Recording] {
			if len(told) == 0 {
				fmt.Fprint(b, "\n")
			}
			told[c.Recording] = true
			fmt.Fprintf(b, "* [%s](%s): %s\n", c.Recording, RecordingFile(l.Name, c.Recording), foreign.Cell(c.Why))
		}
	}
}

func row(b *bufio.Writer, cells []string) {
	for _, c := range cells {
		fmt.Fprintf(b, "| %s ", foreign.Own(c))
	}
	fmt.Fprint(b, "|\n")
}

func rule(b *bufio.Writer, n int) { fmt.Fprintf(b, "|%s\n", strings.Repeat("---|", n)) }

//go:embed page.html
var pageText string

var page = template.Must(template.New("survey").Funcs(template.FuncMap{
	"file":   RecordingFile,
	"join":   strings.Join,
	"class":  func(w Word) string { return strings.ReplaceAll(string(w), " ", "-") },
	"anchor": anchor,
}).Parse(pageText))

// WritePage writes the survey as one page that needs no network. Recordings are linked by
// their files.
func (s Survey) WritePage(w io.Writer) error {
	return foreign.Page(w, page, struct {
		Survey
		About, CostAbout string
		MarksAbout       string
		WeatherAbout     string
		NeedsAbout, None string
		NeedsHead        []string
		Needs            []Need
		Promises         []Promise
		Campaigns        []string
		CostHead         []string
		CostRows         [][]string
	}{s, s.about(), costAbout, marksAbout, weatherAbout, needsAbout, noLock, NeedsHead, Needs, Promises, s.campaigns(), CostHead, s.costRows()})
}

func (s Survey) costRows() (rows [][]string) {
	for _, l := range s.Locks {
		rows = append(rows, l.CostRow())
	}
	return rows
}
