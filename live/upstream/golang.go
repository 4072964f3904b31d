package upstream

import (
	"bytes"
	"cmp"
	"embed"
	"errors"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/scenarios"
)

// goSources are the parts of a Go test that are the same for all libraries.
//
//go:embed gostory/*.go
var goSources embed.FS

// golang is the dialect of a Go test.
type golang struct {
	library *Library
	// apart gives each thread a client of its own, so that the requests of a client are the requests of one thread.
	apart bool
}

func (golang) depth() int     { return 3 }
func (golang) indent() string { return "\t" }

// littleLatency is a latency that changes no story, since the steps of threads are much further apart.
const littleLatency = 5 * time.Millisecond

func (golang) latency(l scenarios.Range) string {
	if l.Max <= littleLatency {
		return ""
	}
	return fmt.Sprintf("n.Latency(%s)", goLength((l.Min+l.Max)/2))
}

func (g golang) client(sc *scenarios.Scenario, p scenarios.Process) (out []string, err error) {
	if !reflect.ValueOf(p.ClientOptions).IsZero() || p.WallOffset != 0 || p.WallDriftPPM != 0 {
		return nil, inexpressible("process %s has settings of its own", p.Name)
	}
	if !g.apart {
		return []string{fmt.Sprintf("s.Client(%q)", p.Name)}, nil
	}
	var names []string
	for _, t := range sc.Threads {
		if t.Process == p.Name {
			client, _, _ := strings.Cut(g.name(model.ThreadName(t.Process, t.Thread)), "/")
			names = append(names, client)
		}
	}
	begin, name, end := forEach(names)
	return []string{fmt.Sprintf("%ss.Client(%s)%s", begin, name, end)}, nil
}

// forEach writes a loop over names, and the expression of a name in it. A single name needs no loop.
func forEach(names []string) (begin, name, end string) {
	if len(names) == 1 {
		return "", strconv.Quote(names[0]), ""
	}
	return fmt.Sprintf("for _, name := range %#v {\n", names), "name", "\n}"
}

// name is the name of a thread in the test: b2/1 instead of b/2 if each thread has a client of its own.
func (g golang) name(thread string) string {
	if client, number, ok := strings.Cut(thread, "/"); ok && g.apart {
		return model.ThreadName(client+number, 1)
	}
	return thread
}

func (g golang) thread(names []string) (begin, end string) {
	var own []string
	for _, name := range names {
		own = append(own, g.name(name))
	}
	begin, name, end := forEach(own)
	return fmt.Sprintf("%ss.Thread(%s, func(t *Thread) {", begin, name), "})" + end
}

func (golang) together() bool { return true }

func (golang) at(d time.Duration) string          { return fmt.Sprintf("t.At(%s)", goLength(d)) }
func (golang) sleep(d time.Duration) string       { return fmt.Sprintf("t.Sleep(%s)", goLength(d)) }
func (golang) statement(expression string) string { return expression }
func (golang) ifSo(expression string) string      { return fmt.Sprintf("if %s {", expression) }
func (golang) until(d time.Duration) string       { return fmt.Sprintf("for t.Before(%s) {", goLength(d)) }
func (golang) times(n int) string                 { return fmt.Sprintf("for range %d {", n) }
func (golang) unlock(name string) string          { return fmt.Sprintf("t.Unlock(%q)", name) }
func (golang) extend(name string) (string, error) { return fmt.Sprintf("t.Extend(%q)", name), nil }
func (g golang) interrupt(thread string) string {
	return fmt.Sprintf("t.Interrupt(%q)", g.name(thread))
}

func (golang) acquire(s scenarios.Step) (string, error) {
	switch {
	case s.Lease != nil:
		return "", inexpressible("line %d asks for a lease", s.Pos.Line)
	case s.Kind == scenarios.StepTryLock && (s.Wait == nil || *s.Wait == 0):
		return fmt.Sprintf("t.TryLock(%q)", s.Name), nil
	case s.Wait != nil:
		return fmt.Sprintf("t.LockWithin(%q, %s)", s.Name, goLength(*s.Wait)), nil
	}
	return fmt.Sprintf("t.Lock(%q)", s.Name), nil
}

func (golang) forceUnlock(string) (string, error) {
	return "", inexpressible("the library has no unlock by force")
}

func (golang) shut(string) (string, error) {
	return "", inexpressible("the story closes a client")
}

func (g golang) fault(f scenarios.Fault) (out []string, err error) {
	servers := ""
	for _, n := range f.Servers {
		servers += fmt.Sprintf(", %d", n)
	}
	switch {
	case g.apart:
		return nil, inexpressible("it does not tell the requests of the threads of a client apart")
	case f.Kind == model.FaultPartition:
		for _, p := range f.Processes {
			out = append(out, fmt.Sprintf("n.Cut(%q, %s, %s%s)", p, goLength(f.At), goLength(f.For), servers))
		}
	case f.Kind == model.FaultCrash:
		for _, p := range f.Processes {
			out = append(out, fmt.Sprintf("n.Crash(%q, %s)", p, goLength(f.At)))
		}
	case f.Kind == model.FaultServer && f.Server == "restart":
		out = append(out, fmt.Sprintf("s.Restart(%s, %t%s)", goLength(f.At), f.KeepData, servers))
	case f.Kind == model.FaultRule:
		rule, err := g.rule(f)
		if err != nil {
			return nil, err
		}
		out = append(out, rule)
	default:
		return nil, inexpressible("line %d has the fault %s", f.Pos.Line, f.FaultSpec)
	}
	return out, nil
}

// rule writes a fault that is a rule.
func (g golang) rule(f scenarios.Fault) (string, error) {
	w := f.When
	do, ok := map[string]string{"drop": "Drop", "reset": "Reset", "delay": fmt.Sprintf("Delay(%s)", goLength(f.For)), "error": fmt.Sprintf("%s(%q)", g.library.Refuse, f.With)}[f.Do]
	if f.Do == "hold" && f.Until != nil {
		do, ok = fmt.Sprintf("HoldUntil(%s)", goLength(*f.Until)), true
	}
	named := w.Command != "" || w.Channel != ""
	if !ok || w.Channel != "" && w.Channel != "*" || w.Every > 0 || w.After > 0 || f.Awaits != nil || f.Do == "error" && g.library.Refuse == "" || named && g.library.Protocol == "" {
		return "", inexpressible("line %d has the fault %s", f.Pos.Line, f.FaultSpec)
	}
	var fields []string
	add := func(format string, args ...any) { fields = append(fields, fmt.Sprintf(format, args...)) }
	if w.Process != "" {
		add("Client: %q", w.Process)
	}
	switch {
	case w.Channel != "":
		add("Direction: Push")
	case w.Direction != "":
		add("Direction: %q", w.Direction)
	}
	if w.Command != "" {
		add("Command: %q", strings.ToUpper(w.Command))
	}
	if w.Script != "" {
		add("If: s.During(%q)", w.Script)
	}
	if f.From > 0 {
		add("From: %s", goLength(f.From))
	}
	if f.Until != nil {
		add("Until: %s", goLength(*f.Until))
	}
	if w.Nth > 0 {
		add("Nth: %d", w.Nth)
	}
	add("Do: %s", do)
	return fmt.Sprintf("n.Rule(Rule{%s})", strings.Join(fields, ", ")), nil
}

// network writes the statement that puts proxies between the clients and the servers of a story; "": it needs none. The
// proxies read the protocol only if the story has a rule about messages, or if each thread has a client of its own.
func (g golang) network(sc *scenarios.Scenario) string {
	protocol := ""
	if sc.Latency.Max > littleLatency {
		protocol = "Bytes"
	}
	for _, f := range sc.Faults {
		switch f.Kind {
		case model.FaultPartition, model.FaultCrash:
			protocol = cmp.Or(protocol, "Bytes")
		case model.FaultRule:
			return fmt.Sprintf("n := s.Network(%s)", cmp.Or(g.library.Protocol, "Bytes"))
		}
	}
	if g.apart {
		protocol = cmp.Or(g.library.Protocol, "Bytes")
	}
	if protocol == "" {
		return ""
	}
	return fmt.Sprintf("n := s.Network(%s)", protocol)
}

func (golang) play(length time.Duration, _ []string) string {
	return fmt.Sprintf("s.Play(%s)", goLength(length))
}

func (l golang) assertion(g *generator) (before, after string, err error) {
	f := g.f
	switch {
	case f.Judge == model.JudgeMutualExclusion:
		return "", fmt.Sprintf("s.AssertOneOwner(%q)", f.Lock), nil
	case f.Judge == model.JudgeLiveness && f.Form == model.FormForgotten:
		bound, _ := g.waited()
		return "", fmt.Sprintf("s.AssertWaiterIsServed(%q, %q, %s)", f.Lock, f.Thread, goLength(bound-bound/10)), nil
	case f.Judge == model.JudgeTraffic:
		return "n.CountRequests()", fmt.Sprintf("n.AssertAsksSeldom(%d)", judges.TrafficMost), nil
	case f.Judge == model.JudgeTidy && f.Form == model.FormGhost && l.library.Places != "":
		return "", fmt.Sprintf("s.AssertNoGhost(%q, %q, %s)", f.Lock, f.Thread, l.library.Places), nil
	case f.Judge == model.JudgeLease && f.Form == model.FormEndless && l.library.TimeToLive != "":
		return "", fmt.Sprintf("s.AssertHoldEnds(%q, %s)", f.Lock, l.library.TimeToLive), nil
	case f.Judge == model.JudgeLinearizable || f.Judge == model.JudgeWant || f.Judge == model.JudgeWaitBound:
		if len(f.Ops) == 0 {
			return "", "", inexpressible("the finding names no call")
		}
		after, err := goAnswer(g)
		return "", after, err
	}
	return "", "", inexpressible("no assertion sees %s, form %q", f.Judge, f.Form)
}

// goAnswer writes the assertion that a call does not come to the same as in the run.
func goAnswer(g *generator) (string, error) {
	who, n, c, err := g.call(g.f.Ops[0])
	switch {
	case err != nil:
		return "", err
	case g.f.Judge == model.JudgeWaitBound:
		return fmt.Sprintf("s.AssertReturnsWithin(%q, %d, %s)", who, n, goLength(time.Duration(c.WaitNs)+4*g.sc.Latency.Max)), nil
	case c.Outcome == model.Granted || c.Outcome == model.Released || c.Outcome == model.Extended:
		return fmt.Sprintf("s.AssertCallFails(%q, %d)", who, n), nil
	case c.Outcome == model.Busy:
		return fmt.Sprintf("s.AssertCallIsNot(%q, %d, ErrBusy)", who, n), nil
	case c.Outcome == model.NotHeld:
		return fmt.Sprintf("s.AssertCallIsNot(%q, %d, ErrNotHeld)", who, n), nil
	}
	return "", inexpressible("the call came to %q", c.Outcome)
}

// goLength writes a length as Go.
func goLength(d time.Duration) string {
	for _, unit := range []struct {
		name string
		d    time.Duration
	}{{"Second", time.Second}, {"Millisecond", time.Millisecond}, {"Microsecond", time.Microsecond}} {
		if d%unit.d == 0 {
			return fmt.Sprintf("%d*time.%s", d/unit.d, unit.name)
		}
	}
	return fmt.Sprintf("%d", d)
}

// goTest writes the file of a Go test: the story, the code that opens the library, and the parts of package gostory that
// they need.
func (r *Report) goTest() ([]byte, error) {
	dialect := golang{library: r.Library, apart: r.Finding.Judge == model.JudgeTraffic}
	g := &generator{dialect: dialect, sc: r.Simulated.Scenario, t: r.Simulated.Played.Trace, f: r.Finding}
	body, err := g.body()
	if err != nil {
		return nil, err
	}
	if text := dialect.network(g.sc); text != "" {
		body = "\t\t\t" + text + "\n" + body
	}
	var b strings.Builder
	fmt.Fprintf(&b, "package lockreport\n\nimport (\n\t\"fmt\"\n\t\"testing\"\n\t\"time\"\n)\n\n// %s.\n//\n", capital(r.Title))
	fmt.Fprintf(&b, "// %s\n//\n// The rest of this file is what the test needs to open the library, to play the story and to check it.\n", strings.Join(wrapped(r.Simulated.Scenario.About, 110), "\n// "))
	fmt.Fprintf(&b, "func Test%s(t *testing.T) {\n\tfor try := range %d {\n\t\tt.Run(fmt.Sprint(try+1), func(t *testing.T) {\n", strings.TrimSuffix(className(r.ID), "Test"), r.Tries)
	fmt.Fprintf(&b, "\t\t\ts := NewStory(t, %s, %d)\n%s\t\t})\n\t}\n}\n", r.Library.Value(r.Simulated.Lock.Name), r.Simulated.Lock.Servers.Count(), body)
	files := [][]byte{[]byte(b.String())}
	for _, from := range []struct {
		fs   fs.FS
		glob string
	}{{r.Library.Source, "*.go"}, {goSources, "gostory/*.go"}} {
		names, err := fs.Glob(from.fs, from.glob)
		if err != nil {
			return nil, err
		}
		slices.SortStableFunc(names, func(a, b string) int { return goPlace(a) - goPlace(b) })
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") || path.Base(name) == "doc.go" {
				continue
			}
			text, err := fs.ReadFile(from.fs, name)
			if err != nil {
				return nil, err
			}
			files = append(files, text)
		}
	}
	text, err := merged(files)
	if err != nil {
		return nil, err
	}
	if text, err = pruned(text); err != nil {
		return nil, err
	}
	return formatted(text)
}

// goPlace is the place of a source file in a test. A file that the list lacks, such as the file of a library, comes first.
func goPlace(name string) int {
	return slices.Index([]string{"story.go", "assert.go", "server.go", "fault.go", "proxy.go"}, path.Base(name))
}

// wrapped breaks a text into lines.
func wrapped(text string, most int) (lines []string) {
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > most {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + word)
	}
	return append(lines, line)
}

// formatted formats a Go file. The error has the text that cannot be formatted.
func formatted(text []byte) ([]byte, error) {
	out, err := format.Source(text)
	if err != nil {
		return nil, errors.Join(err, errors.New(string(text)))
	}
	return out, nil
}

// merged writes Go files as one, of the package of the first.
func merged(files [][]byte) ([]byte, error) {
	own := reflect.TypeFor[golang]().PkgPath()
	var imports []string
	var rest, name bytes.Buffer
	for i, text := range files {
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, "", text, parser.ParseComments|parser.ImportsOnly)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			fmt.Fprintf(&name, "package %s\n\n", f.Name.Name)
		}
		end := f.Name.End()
		for _, d := range f.Decls {
			if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.IMPORT {
				end = d.End()
			}
		}
		for _, x := range f.Imports {
			to, err := strconv.Unquote(x.Path.Value)
			if err != nil {
				return nil, err
			}
			line := x.Path.Value
			if x.Name != nil {
				line = x.Name.Name + " " + line
			}
			if !strings.HasPrefix(to, own+"/") && !slices.Contains(imports, line) {
				imports = append(imports, line)
			}
		}
		fmt.Fprintf(&rest, "%s\n\n", bytes.TrimSpace(text[set.Position(end).Offset:]))
	}
	standard := func(line string) bool { return !strings.Contains(strings.Trim(line, `"`), ".") }
	fmt.Fprintf(&name, "import (\n")
	for _, std := range []bool{true, false} {
		var these []string
		for _, line := range imports {
			if standard(line) == std {
				these = append(these, line)
			}
		}
		slices.SortFunc(these, func(a, b string) int { return strings.Compare(a[strings.Index(a, `"`):], b[strings.Index(b, `"`):]) })
		fmt.Fprintf(&name, "%s\n\n", strings.Join(these, "\n"))
	}
	fmt.Fprintf(&name, ")\n\n%s", rest.Bytes())
	return formatted(name.Bytes())
}
