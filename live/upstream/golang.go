package upstream

import (
	"bytes"
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

	"lockstep/model"
	"lockstep/model/trace"
	"lockstep/scenarios"
)

// goSources are the parts of a Go test that are the same for all libraries.
//
//go:embed gostory/*.go
var goSources embed.FS

// golang is the dialect of a Go test.
type golang struct{ of *Library }

func (golang) depth() int     { return 3 }
func (golang) indent() string { return "\t" }

func (golang) latency(l scenarios.Range) string {
	return fmt.Sprintf("s.Latency(%s)", goLength((l.Min+l.Max)/2))
}

func (golang) client(_ *scenarios.Scenario, p scenarios.Process) ([]string, error) {
	if !reflect.ValueOf(p.ClientOptions).IsZero() || p.WallOffset != 0 || p.WallDriftPPM != 0 {
		return nil, inexpressible("process %s has settings of its own", p.Name)
	}
	return []string{fmt.Sprintf("s.Client(%q)", p.Name)}, nil
}

func (golang) thread(name string) (begin, end string) {
	return fmt.Sprintf("s.Thread(%q, func(t *Thread) {", name), "})"
}

func (golang) at(d time.Duration) string          { return fmt.Sprintf("t.At(%s)", goLength(d)) }
func (golang) sleep(d time.Duration) string       { return fmt.Sprintf("t.Sleep(%s)", goLength(d)) }
func (golang) statement(expression string) string { return expression }
func (golang) ifSo(expression string) string      { return fmt.Sprintf("if %s {", expression) }
func (golang) until(d time.Duration) string       { return fmt.Sprintf("for t.Before(%s) {", goLength(d)) }
func (golang) times(n int) string                 { return fmt.Sprintf("for range %d {", n) }
func (golang) unlock(name string) string          { return fmt.Sprintf("t.Unlock(%q)", name) }
func (golang) extend(name string) (string, error) { return fmt.Sprintf("t.Extend(%q)", name), nil }
func (golang) interrupt(thread string) string     { return fmt.Sprintf("t.Interrupt(%q)", thread) }

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
	case f.Kind == model.FaultPartition:
		for _, p := range f.Processes {
			out = append(out, fmt.Sprintf("s.Cut(%q, %s, %s%s)", p, goLength(f.At), goLength(f.For), servers))
		}
	case f.Kind == model.FaultServer && f.Server == "restart":
		out = append(out, fmt.Sprintf("s.Restart(%s, %t%s)", goLength(f.At), f.KeepData, servers))
	case f.Kind == model.FaultRule && (f.When.Channel == "" || f.When.Channel == "*") && f.When.Every == 0 && slices.Contains([]string{"drop", "hold", "reset", "delay", "error"}, f.Do):
		w := f.When
		direction := w.Direction
		if w.Channel != "" {
			direction = "push"
		}
		var fields []string
		for _, x := range []struct{ name, value string }{
			{"Client", w.Process}, {"Direction", direction}, {"Role", string(w.Script)}, {"Command", g.command(w.Command)}, {"Do", f.Do}, {"With", f.With},
		} {
			if x.value != "" {
				fields = append(fields, fmt.Sprintf("%s: %q", x.name, x.value))
			}
		}
		if w.Nth > 0 {
			fields = append(fields, fmt.Sprintf("Nth: %d", w.Nth))
		}
		if f.From > 0 {
			fields = append(fields, "From: "+goLength(f.From))
		}
		if f.Until != nil {
			fields = append(fields, "Until: "+goLength(*f.Until))
		}
		if f.Do == "delay" {
			fields = append(fields, "Delay: "+goLength(f.For))
		}
		out = append(out, fmt.Sprintf("s.Rule(Rule{%s})", strings.Join(fields, ", ")))
	default:
		return nil, inexpressible("line %d has the fault %s", f.Pos.Line, f.FaultSpec)
	}
	return out, nil
}

// command is the name of a command as the test reads it.
func (golang) command(name string) string { return strings.ToUpper(name) }

func (golang) play(length time.Duration, _ []string) string {
	return fmt.Sprintf("s.Play(%s)", goLength(length))
}

// busiest is how many requests for a lock a thread that waits may send in a second.
const busiest = 20

func (golang) assertion(g *generator) (string, error) {
	f := g.f
	switch f.Judge {
	case model.JudgeMutualExclusion:
		return fmt.Sprintf("s.AssertOneOwner(%q)", f.Lock), nil
	case model.JudgeLiveness:
		if f.Form == model.FormForgotten {
			bound, _ := g.waited()
			return fmt.Sprintf("s.AssertWaiterIsServed(%q, %q, %s)", f.Lock, f.Thread, goLength(bound-bound/10)), nil
		}
	case model.JudgeTraffic:
		if g.threads(f.Thread) > 1 {
			return "", inexpressible("it does not tell the requests of the threads of a client apart")
		}
		return fmt.Sprintf("s.AssertAsksSeldom(%q, %d)", f.Thread, busiest), nil
	case model.JudgeLinearizable, model.JudgeWant, model.JudgeWaitBound:
		if len(f.Ops) == 0 {
			return "", inexpressible("the finding names no call")
		}
		who, n, c, err := g.call(f.Ops[0])
		switch {
		case err != nil:
			return "", err
		case f.Judge == model.JudgeWaitBound:
			return fmt.Sprintf("s.AssertReturnsInTime(%q, %d, %s)", who, n, goLength(4*g.sc.Latency.Max)), nil
		}
		return goAnswer(who, n, c)
	}
	return "", inexpressible("no assertion sees %s, form %q", f.Judge, f.Form)
}

// goAnswer writes that a call comes to something else than in the run.
func goAnswer(who string, n int, c *trace.Call) (string, error) {
	outcome, ok := map[model.Outcome]string{
		model.Busy: "busy", model.Released: "released", model.NotHeld: "not held", model.Extended: "extended", model.Granted: "granted",
	}[c.Outcome]
	if !ok {
		return "", inexpressible("the call came to %q", c.Outcome)
	}
	return fmt.Sprintf("s.AssertCallIsNot(%q, %d, %q)", who, n, outcome), nil
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

// goTest writes the file of a Go test.
func (r *Report) goTest() ([]byte, error) {
	g := &generator{dialect: golang{r.Library}, sc: r.Simulated.Scenario, t: r.Simulated.Played.Trace, f: r.Finding}
	body, err := g.body()
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "package lockreport\n\nimport (\n\t\"fmt\"\n\t\"testing\"\n\t\"time\"\n)\n\n// %s.\n", capital(r.Title))
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
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") || path.Base(name) == "doc.go" || path.Base(name) == "redis.go" && !r.Library.OnRedis {
				continue
			}
			text, err := fs.ReadFile(from.fs, name)
			if err != nil {
				return nil, err
			}
			files = append(files, text)
		}
	}
	return merged(files)
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
	text, err := format.Source(name.Bytes())
	if err != nil {
		return nil, errors.Join(err, errors.New(name.String()))
	}
	return text, nil
}
