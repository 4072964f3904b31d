package scenarios

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// stepTable lists the kinds of steps with their fields and outcomes. A field that ends in
// "!" is required. A field name means the same in every kind of step.
var stepTable = []struct {
	kind   StepKind
	fields []string
	want   []string
}{
	{kind: StepAt},
	{kind: StepSleep},
	{StepLock, []string{"name!", "lease", "interruptible", "want", "reply"}, []string{"granted", "error", "unknown"}},
	{StepTryLock, []string{"name!", "wait", "lease", "unit", "want", "reply"}, []string{"granted", "busy", "error", "unknown"}},
	{StepWithLock, []string{"name!", "lease", "wait", "unlock", "steps"}, nil},
	{StepUnlock, []string{"name!", "want", "reply"}, []string{"released", "still_held", "not_held", "error", "unknown"}},
	{StepForceUnlock, []string{"name!", "want"}, []string{"released", "not_held", "error", "unknown"}},
	{StepExtend, []string{"name!", "want"}, []string{"extended", "not_held", "error", "unknown"}},
	{StepRead, []string{"name!", "holds", "locked", "ttl", "queue", "deadlines"}, nil},
	{StepPublished, []string{"name!", "to!", "count!"}, nil},
	{StepUse, []string{"resource!", "take", "for", "want"}, []string{"sold_out", "refused", "error", "unknown"}},
	{kind: StepInterrupt},
	{StepRepeat, []string{"times", "until", "steps!"}, nil},
	{kind: StepClose},
}

func (l *loader) steps(n *yaml.Node) []Step {
	var steps []Step
	for _, item := range l.list(n, "a list of steps") {
		steps = append(steps, l.step(item))
	}
	return steps
}

func (l *loader) step(n *yaml.Node) Step {
	s := Step{Pos: Position{File: l.file, Line: n.Line, Column: n.Column}}
	var kinds []string
	for _, row := range stepTable {
		kinds = append(kinds, string(row.kind))
	}
	key, value := n, (*yaml.Node)(nil)
	if n.Kind == yaml.MappingNode && len(n.Content) > 0 {
		key, value = n.Content[0], n.Content[1]
	}
	s.Kind = StepKind(l.word(key, "step", "steps", kinds...))
	switch {
	case s.Kind == "":
		return s
	case s.Kind == StepClose && value != nil:
		l.fail(key, "close has no fields: write `- close`")
		return s
	case s.Kind != StepClose && value == nil:
		l.fail(n, "%s needs a value: write `- %s: …`", s.Kind, s.Kind)
		return s
	case value != nil && len(n.Content) > 2:
		l.fail(n.Content[2], "%s does not belong to the step %s: a step is one key, each with a dash of its own, its fields indented or in braces",
			quote(n.Content[2].Value), s.Kind)
		return s
	}
	switch s.Kind {
	case StepClose:
	case StepAt, StepSleep:
		s.D = l.duration(value)
	case StepInterrupt:
		s.Target = l.thread(value)
	default:
		l.stepFields(&s, value)
	}
	return s
}

func (l *loader) stepFields(s *Step, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		switch s.Kind {
		case StepLock, StepTryLock, StepUnlock, StepForceUnlock, StepExtend:
			s.Name = l.lockName(n)
			return
		}
	}
	var fields, wants []string
	for _, row := range stepTable {
		if row.kind == s.Kind {
			fields, wants = row.fields, row.want
		}
	}
	f := l.fields(n, string(s.Kind), fields...)
	if f == nil {
		return
	}
	s.Name = l.lockName(f["name"])
	s.Lease = optional(f["lease"], l.durationFrom(minLease))
	s.Wait = optional(f["wait"], l.duration)
	s.Interruptible = optional(f["interruptible"], l.boolean)
	s.UnitSeconds = l.word(f["unit"], "unit", string(s.Kind), "milliseconds", "seconds") == "seconds"
	s.Want = l.want(f["want"], s.Kind, wants)
	s.Reply = l.reply(f["reply"], s.Kind)
	s.UnlockAlways = l.word(f["unlock"], "word", "unlock", "when_granted", "always") == "always"
	s.Steps = l.steps(f["steps"])
	s.For = l.duration(f["for"])
	s.Count = int64(l.count(0)(f["count"]))
	s.Times = l.count(1)(f["times"])
	s.Until = optional(f["until"], l.duration)
	switch s.Kind {
	case StepUse:
		var known []string
		for _, r := range l.s.Resources {
			known = append(known, r.Name)
		}
		s.Name = l.word(f["resource"], "resource", "resources", known...)
		fenced := slices.ContainsFunc(l.s.Resources, func(r Resource) bool { return r.Name == s.Name && r.Fence != "" })
		if slices.Contains(s.Want, "refused") && !fenced && s.Name != "" {
			l.fail(f["want"], "%s refuses nobody: give it a fence, such as {start: 100, fence: orders}", s.Name)
		}
		s.Take = defaultTake
		if f["take"] != nil {
			s.Take = int64(l.count(0)(f["take"]))
		}
	case StepPublished:
		s.Target = l.word(f["to"], "thread", "processes", append([]string{"all"}, l.declared...)...)
	case StepRepeat:
		l.oneOf(n, f, "repeat", "times", "until")
		l.notEmpty(f["steps"], "give the steps to repeat")
	case StepRead:
		s.Read = l.read(f)
		if len(f) == 1 && f["name"] != nil {
			l.fail(n, "read looks at nothing; give one of %s", strings.Join(fields[1:], ", "))
		}
	}
}

func (l *loader) read(f map[string]*yaml.Node) *Read {
	r := &Read{
		Holds:  optional(f["holds"], func(n *yaml.Node) int64 { return int64(l.count(0)(n)) }),
		Locked: optional(f["locked"], l.boolean),
		TTL:    optional(f["ttl"], l.ttl),
		Queue: optional(f["queue"], func(n *yaml.Node) []string {
			queue := []string{}
			for _, item := range l.list(n, "a list of threads, such as [b/1, c/1]") {
				queue = append(queue, l.thread(item))
			}
			return queue
		}),
	}
	if n := f["deadlines"]; n != nil {
		r.Deadlines = map[string]Range{}
		for key, value := range l.pairs(n, "a mapping of threads, such as {b/1: 25s}") {
			r.Deadlines[l.thread(key)] = l.span(value)
		}
	}
	return r
}

func (l *loader) ttl(n *yaml.Node) TTL {
	switch n.Value {
	case "free":
		return TTL{Free: true}
	case "endless":
		return TTL{Endless: true}
	}
	// A word that is not a duration is a misspelt `free` or `endless`.
	if n.Kind == yaml.ScalarNode && memberName.MatchString(n.Value) && n.Tag == "!!str" {
		l.unknown(n, "word", n.Value, "ttl", []string{"free", "endless", "a duration such as 30s", "a range such as 29s..30s"})
		return TTL{}
	}
	return TTL{Range: l.span(n)}
}

// lockName reads the name of a lock object, which is its key in the server.
func (l *loader) lockName(n *yaml.Node) string {
	name := l.filled(n)
	if len(name) > maxLockName {
		l.fail(n, "lock name %s has more than %d bytes", quote(name), maxLockName)
	}
	// Redisson and Redis Cluster hash the part of a name that is in braces. If a brace is
	// not closed, the lock's other keys are in another slot.
	if strings.LastIndex(name, "{") > strings.LastIndex(name, "}") {
		l.fail(n, "lock name %s has a brace that is not closed", quote(name))
	}
	return name
}

func (l *loader) want(n *yaml.Node, kind StepKind, known []string) []string {
	if n == nil || n.Kind != yaml.SequenceNode {
		if word := l.word(n, "want", string(kind), known...); word != "" {
			return []string{word}
		}
		return nil
	}
	l.notEmpty(n, string(kind)+" can have: "+strings.Join(known, ", "))
	return l.words(n, "want", string(kind), known)
}

// reply reads the expected reply of a script. An unlock replies nil, 0 or 1. An attempt to
// lock replies nil or the milliseconds left.
func (l *loader) reply(n *yaml.Node, kind StepKind) string {
	if n != nil && n.Tag == "!!null" {
		l.fail(n, "an empty reply is written nil")
		return ""
	}
	if kind == StepUnlock {
		return l.word(n, "reply", string(kind), "nil", "0", "1")
	}
	text, ok := l.scalar(n, "nil or a whole number of milliseconds")
	if !ok || text == "nil" {
		return text
	}
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		if d, err := time.ParseDuration(text); err == nil {
			l.fail(n, "reply %s: write the milliseconds without a unit: %d", quote(text), d.Milliseconds())
		} else {
			l.fail(n, "reply %s of %s is neither nil nor a whole number of milliseconds", quote(text), kind)
		}
		return ""
	}
	return strconv.FormatInt(ms, 10)
}
