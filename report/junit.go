package report

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"lockstep/internal/counted"
	"lockstep/internal/foreign"
)

// A Case is a run in the form in which it is written for other programs.
type Case struct {
	Scenario   string
	File       string // of the scenario, relative to the repository
	Lock       string
	Seed       uint64
	Verdict    string
	Expected   string
	AsExpected bool
	Text       string // the findings, in some lines
	Replay     string
}

func (c Case) name() string { return fmt.Sprintf("%s, seed %d", c.Lock, c.Seed) }

func (c Case) message() string {
	return fmt.Sprintf("%s, expected %s", c.Verdict, c.Expected)
}

// decided reports whether the run has a verdict, expected or not.
func (c Case) decided() bool { return c.Verdict != "undecided" && c.Verdict != "nondeterministic" }

type junitSuites struct {
	XMLName  xml.Name `xml:"testsuites"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Errors   int      `xml:"errors,attr"`
	Skipped  int      `xml:"skipped,attr,omitempty"`
	Suites   []*junitSuite
}

type junitSuite struct {
	XMLName  xml.Name `xml:"testsuite"`
	Name     string   `xml:"name,attr"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Errors   int      `xml:"errors,attr"`
	Skipped  int      `xml:"skipped,attr,omitempty"`
	Cases    []junitCase
}

type junitCase struct {
	XMLName   xml.Name `xml:"testcase"`
	Classname string   `xml:"classname,attr"`
	Name      string   `xml:"name,attr"`
	Failure   *junitProblem
	Error     *junitProblem
	Skipped   *junitSkip
}

// junitSkip says why a scenario was not played.
type junitSkip struct {
	XMLName xml.Name `xml:"skipped"`
	Message string   `xml:"message,attr"`
}

type junitProblem struct {
	XMLName xml.Name
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr"`
	Text    string `xml:",cdata"`
}

// WriteJUnit writes runs as JUnit XML, one suite per scenario. A run whose verdict
// was not expected is a failure, and one without a verdict an error. A scenario that
// does not apply is skipped. There are no times, since a run has only simulated ones.
func WriteJUnit(w io.Writer, cases []Case) error {
	var all junitSuites
	suites := map[string]*junitSuite{}
	for _, c := range cases {
		s := suites[c.Scenario]
		if s == nil {
			s = &junitSuite{Name: c.Scenario}
			suites[c.Scenario] = s
			all.Suites = append(all.Suites, s)
		}
		x := junitCase{Classname: c.Scenario, Name: c.name()}
		problem := &junitProblem{Message: c.message(), Type: c.Verdict, Text: c.Text + "replay: " + c.Replay + "\n"}
		switch {
		case c.Verdict == "n/a":
			x.Skipped = &junitSkip{Message: c.Text}
			s.Skipped++
			all.Skipped++
		case c.AsExpected:
		case c.decided():
			problem.XMLName.Local = "failure"
			x.Failure = problem
			s.Failures++
			all.Failures++
		default:
			problem.XMLName.Local = "error"
			x.Error = problem
			s.Errors++
			all.Errors++
		}
		s.Tests++
		all.Tests++
		s.Cases = append(s.Cases, x)
	}
	return foreign.XML(w, all)
}

// Annotation is a note that a GitHub workflow shows at a line of a file.
type Annotation struct {
	Level string // error or warning
	File  string // relative to the repository; "" if the note belongs to no file
	Line  int    // 0 if the note belongs to the whole file
	Title string
	Text  string
}

// String returns the line that a step prints to make a GitHub workflow show the note.
func (a Annotation) String() string {
	var fields []string
	if a.File != "" {
		fields = append(fields, "file="+property(a.File))
		if a.Line > 0 {
			fields = append(fields, fmt.Sprintf("line=%d", a.Line))
		}
	}
	fields = append(fields, "title="+property(a.Title))
	return fmt.Sprintf("::%s %s::%s", a.Level, strings.Join(fields, ","), data(a.Text))
}

// WriteGitHub writes an annotation for each run that was not as expected, and a line of
// totals.
func WriteGitHub(w io.Writer, cases []Case) error {
	odd := 0
	for _, c := range cases {
		if c.AsExpected {
			continue
		}
		odd++
		level := "error"
		if !c.decided() {
			level = "warning"
		}
		a := Annotation{Level: level, File: c.File, Title: fmt.Sprintf("%s on %s: %s", c.Scenario, c.name(), c.message()), Text: c.Text + "replay: " + c.Replay}
		if _, err := fmt.Fprintln(w, a); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "%s, %d not as expected\n", counted.Of(len(cases), "run"), odd)
	return err
}

// data and property escape text as GitHub's workflow commands require.
func data(s string) string {
	return strings.NewReplacer("%", "%25", "\n", "%0A").Replace(foreign.Lines(s))
}

func property(s string) string {
	return strings.NewReplacer("%", "%25", ":", "%3A", ",", "%2C").Replace(foreign.Line(s))
}
