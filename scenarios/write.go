package scenarios

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"lockstep/model"
	"lockstep/scenarios/subject"
)

// Write returns the scenario as the text of a file. It writes the fields and ignores Text.
// Parse reads the same fields from the result.
func (sc *Scenario) Write() string { return sc.write(&writer{}) }

// SetFile makes the scenario the one that Parse reads from a file of that name with the text that
// Write returns. It sets File, Text and the positions of steps and faults.
func (sc *Scenario) SetFile(file string) {
	sc.File = file
	sc.Text = sc.write(&writer{places: true, file: file})
}

func (sc *Scenario) write(w *writer) string {
	w.line("lockstep: %s", formatVersion)
	w.line("name: %s", atom(sc.Name))
	w.text("about", sc.About)
	w.text("source", sc.Source)
	w.line("locks: %s", list(sc.Locks))
	w.line("network: {latency: %s}", sc.Latency.String())
	if sc.Server.Replicas > 0 {
		w.line("server: {replicas: %d, lag: %s}", sc.Server.Replicas, sc.Server.Lag.String())
	}
	w.line("watchdog: %s", sc.Watchdog.String())
	if len(sc.Resources) > 0 {
		w.line("resources:")
		for _, r := range sc.Resources {
			w.line("  %s: %s", r.Name, flow("start", fmt.Sprint(r.Start), "never_below", number(r.NeverBelow), "end", number(r.End), "fence", atom(r.Fence)))
		}
	}
	w.line("processes:")
	for _, p := range sc.Processes {
		w.line("  %s: %s", p.Name, p.write())
	}
	w.line("steps:")
	for _, t := range sc.Threads {
		w.line("  %s/%d:", t.Process, t.Thread)
		w.steps("    ", t.Steps)
	}
	if len(sc.Faults) > 0 {
		w.line("faults:")
		for i := range sc.Faults {
			w.place("  ", &sc.Faults[i].Pos)
			w.line("  - %s", sc.Faults[i].write())
		}
	}
	if len(sc.Expect) > 0 {
		w.line("expect:")
		for _, lock := range slices.Sorted(maps.Keys(sc.Expect)) {
			w.line("  %s: %s", lock, sc.Expect[lock].write())
		}
	}
	if len(sc.Reach) > 0 {
		w.line("reach: %s", list(sc.Reach))
	}
	if sc.SeedFirst != 1 || sc.SeedLast != 1 {
		w.line("seeds: %d..%d", sc.SeedFirst, sc.SeedLast)
	}
	return w.String()
}

// A writer collects the lines of a file.
type writer struct {
	strings.Builder
	lines int
	// places reports whether the writer sets the positions of what it writes, and file is the
	// name of their file.
	places bool
	file   string
}

func (w *writer) line(format string, args ...any) {
	w.lines++
	fmt.Fprintf(w, format+"\n", args...)
}

// place sets the position of the item of a list that the next line begins.
func (w *writer) place(indent string, p *Position) {
	if w.places {
		*p = Position{File: w.file, Line: w.lines + 1, Column: len(indent) + len("- ") + 1}
	}
}

// textWidth is the number of columns to which text is folded.
const textWidth = 110

// text writes a field of prose. It folds long prose if folding loses no blank and no line
// break.
func (w *writer) text(field, text string) {
	switch {
	case text == "":
	case len(text) < textWidth-len(field) || strings.Join(strings.Fields(text), " ") != text:
		w.line("%s: %s", field, atom(text))
	default:
		w.line("%s: >-", field)
		line := " "
		for part := range strings.FieldsSeq(text) {
			if len(line)+1+len(part) > textWidth && line != " " {
				w.line("%s", line)
				line = " "
			}
			line += " " + part
		}
		w.line("%s", line)
	}
}

func (w *writer) steps(indent string, steps []Step) {
	for i := range steps {
		s := &steps[i]
		w.place(indent, &s.Pos)
		if s.Kind != StepWithLock && s.Kind != StepRepeat {
			w.line("%s- %s", indent, s.write())
			continue
		}
		w.line("%s- %s:", indent, s.Kind)
		fields := []string{"times", count(s.Times), "until", lengthOf(s.Until)}
		if s.Kind == StepWithLock {
			fields = []string{"name", atom(s.Name), "lease", lengthOf(s.Lease), "wait", lengthOf(s.Wait), "unlock", textIf(s.UnlockAlways, "always")}
		}
		for i := 0; i < len(fields); i += 2 {
			if fields[i+1] != "" {
				w.line("%s    %s: %s", indent, fields[i], fields[i+1])
			}
		}
		if len(s.Steps) > 0 {
			w.line("%s    steps:", indent)
			w.steps(indent+"      ", s.Steps)
		}
	}
}

// write returns the text of a step that contains no steps.
func (s Step) write() string {
	var value string
	switch s.Kind {
	case StepClose:
		return string(s.Kind)
	case StepAt, StepSleep:
		value = s.D.String()
	case StepInterrupt:
		value = s.Target
	case StepLock:
		value = flow("name", atom(s.Name), "lease", lengthOf(s.Lease), "interruptible", boolOf(s.Interruptible), "want", wanted(s.Want), "reply", s.Reply)
	case StepTryLock:
		value = flow("name", atom(s.Name), "wait", lengthOf(s.Wait), "lease", lengthOf(s.Lease), "unit", textIf(s.UnitSeconds, "seconds"),
			"want", wanted(s.Want), "reply", s.Reply)
	case StepUnlock, StepForceUnlock:
		value = flow("name", atom(s.Name), "want", wanted(s.Want), "reply", s.Reply)
	case StepExtend:
		value = flow("name", atom(s.Name), "want", wanted(s.Want))
	case StepPublished:
		value = flow("name", atom(s.Name), "to", s.Target, "count", fmt.Sprint(s.Count))
	case StepUse:
		value = flow("resource", s.Name, "take", fmt.Sprint(s.Take), "for", s.For.String(), "want", wanted(s.Want))
	case StepRead:
		value = s.Read.write(s.Name)
	default:
		panic("scenarios: a step of unknown kind " + string(s.Kind))
	}
	return string(s.Kind) + ": " + value
}

func (r *Read) write(name string) string {
	fields := []string{"name", atom(name), "holds", number(r.Holds), "locked", boolOf(r.Locked)}
	if r.TTL != nil {
		fields = append(fields, "ttl", r.TTL.String())
	}
	if r.Queue != nil {
		fields = append(fields, "queue", list(*r.Queue))
	}
	if r.Deadlines != nil {
		var each []string
		for _, who := range slices.Sorted(maps.Keys(r.Deadlines)) {
			each = append(each, who, r.Deadlines[who].String())
		}
		fields = append(fields, "deadlines", flow(each...))
	}
	return flow(fields...)
}

func (p Process) write() string {
	clock, client := "", ""
	if p.WallOffset != 0 || p.WallDriftPPM != 0 {
		clock = flow("offset", p.WallOffset.String(), "drift_ppm", fmt.Sprint(p.WallDriftPPM))
	}
	o := p.ClientOptions
	if o != (subject.ClientOptions{}) {
		client = flow("response_timeout", lengthOf(o.ResponseTimeout), "retry_attempts", number(o.RetryAttempts),
			"pool_size", number(o.PoolSize), "fair_wait", lengthOf(o.FairWait))
	}
	return flow("threads", fmt.Sprint(p.Threads), "lock_objects", textIf(p.PerCall, "per_call"), "wall_clock", clock, "client", client)
}

func (f Fault) write() string {
	at, servers := f.At.String(), numbers(f.Servers)
	switch f.Kind {
	case model.FaultCrash:
		return flow("at", at, "crash", f.Processes[0])
	case model.FaultPause:
		return flow("at", at, "pause", f.Processes[0], "for", f.For.String())
	case model.FaultPartition:
		return flow("at", at, "partition", list(f.Processes), "for", f.For.String(), "servers", servers)
	case model.FaultWallClock:
		return flow("at", at, "wall_clock", f.Processes[0], "step", f.Step.String())
	case model.FaultKey:
		return flow("at", at, "key", atom(f.Key), "do", f.KeyDo, "servers", servers)
	case model.FaultServer:
		return flow("at", at, "server", string(f.Server), "slot_of", atom(f.Key), "keep_data", textIf(f.KeepData, "true"), "lose_last", count(f.LoseLast), "for", nonzero(f.For), "step", nonzero(f.Step), "servers", servers)
	case model.FaultRule:
		w := f.When
		return flow("when", flow("process", w.Process, "direction", w.Direction, "command", atom(w.Command), "script", string(w.Script),
			"channel", atom(w.Channel), "nth", count(w.Nth), "every", count(w.Every), "after", count(w.After)),
			"from", nonzero(f.From), "until", lengthOf(f.Until)+writeCondition(f.Awaits), "do", f.Do, "for", nonzero(f.For), "with", atom(f.With), "servers", servers)
	}
	panic("scenarios: a fault of unknown kind " + string(f.Kind))
}

// writeCondition returns what a rule waits for; "": nothing.
func writeCondition(c *model.Condition) string {
	if c == nil {
		return ""
	}
	executed := ""
	if w := c.Executed; w != nil {
		executed = flow("process", w.Process, "command", atom(w.Command), "script", string(w.Script), "channel", atom(w.Channel), "nth", count(w.Nth))
	}
	return flow("granted", c.Granted, "ended", atom(c.Ended), "published", atom(c.Published), "executed", executed)
}

func (e Expectation) write() string {
	judges := list(e.Judges)
	if e.Class == Held && len(e.Reach) == 0 && !e.Some {
		return string(Held)
	}
	reach := ""
	if len(e.Reach) > 0 {
		reach = list(e.Reach)
	}
	return flow(string(e.Class), judges, "reach", reach, "in", textIf(e.Some, "some"))
}

// flow returns a mapping in braces. fields alternates between names and values. A field
// with an empty value is left out.
func flow(fields ...string) string {
	var parts []string
	for i := 0; i < len(fields); i += 2 {
		if fields[i+1] != "" {
			parts = append(parts, fields[i]+": "+fields[i+1])
		}
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// plainWord matches words that need no quotes anywhere in YAML. The loader reads such a
// word unchanged.
var plainWord = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9@+./_-]*$`)

// atom returns text as one scalar. Empty text stays empty.
func atom(text string) string {
	switch {
	case text == "":
		return ""
	case plainWord.MatchString(text) && !strings.EqualFold(text, "null"):
		return text
	}
	return strconv.Quote(text) // YAML has the same escapes
}

// numbers returns a list of numbers, or "" for an empty list.
func numbers(list []int) string {
	if len(list) == 0 {
		return ""
	}
	return strings.ReplaceAll(fmt.Sprint(list), " ", ", ")
}

func list(of []string) string {
	var out []string
	for _, w := range of {
		out = append(out, atom(w))
	}
	return "[" + strings.Join(out, ", ") + "]"
}

func wanted(words []string) string {
	switch len(words) {
	case 0:
		return ""
	case 1:
		return words[0]
	}
	return list(words)
}

func lengthOf(d *Duration) string {
	if d == nil {
		return ""
	}
	return d.String()
}

func nonzero(d Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

func number[T int | int64](n *T) string {
	if n == nil {
		return ""
	}
	return fmt.Sprint(*n)
}

func count(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

func boolOf(b *bool) string {
	if b == nil {
		return ""
	}
	return strconv.FormatBool(*b)
}

func textIf(is bool, text string) string {
	if is {
		return text
	}
	return ""
}
