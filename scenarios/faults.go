package scenarios

import (
	"path"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"lockstep/model"
)

// The kinds of faults with their fields. A field that ends in "!" is required.
var (
	faultTable = []struct {
		kind   model.FaultKind
		fields []string
	}{
		{model.FaultCrash, []string{"at!", "crash!"}},
		{model.FaultPause, []string{"at!", "pause!", "for!"}},
		{model.FaultPartition, []string{"at!", "partition!", "for!", "servers"}},
		{model.FaultWallClock, []string{"at!", "wall_clock!", "step!"}},
		{model.FaultServer, nil}, // serverTable
		{model.FaultKey, []string{"at!", "key!", "do!", "servers"}},
		{model.FaultRule, []string{"when!", "from", "until", "do!", "for", "with", "servers"}},
	}
	serverTable = []struct {
		does   model.ServerFault
		fields []string
	}{
		{"restart", []string{"at!", "server!", "keep_data", "servers"}},
		{"failover", []string{"at!", "server!", "lose_last", "servers"}},
		{"flush_scripts", []string{"at!", "server!", "servers"}},
		{"stall", []string{"at!", "server!", "for!", "servers"}},
		{model.ServerWallClock, []string{"at!", "server!", "step!", "servers"}},
		{model.ServerIsolate, []string{"at!", "server!", "for!", "servers"}},
		{model.ServerMoveSlot, []string{"at!", "server!", "slot_of!", "for!"}},
	}
)

func (l *loader) fault(n *yaml.Node) Fault {
	fault := Fault{Pos: Position{File: l.file, Line: n.Line, Column: n.Column}}
	where, known := l.faultKind(n, &fault)
	f := l.fields(n, where, known...)
	if f == nil || fault.Kind == "" {
		return fault
	}
	fault.At = l.duration(f["at"])
	fault.For = l.durationFrom(time.Nanosecond)(f["for"])
	fault.Servers = l.servers(f["servers"])
	switch fault.Kind {
	case model.FaultCrash, model.FaultPause, model.FaultWallClock:
		fault.Processes = []string{l.process(f[string(fault.Kind)])}
		fault.Step = l.signed(f["step"])
	case model.FaultPartition:
		names := []*yaml.Node{f["partition"]}
		if names[0] != nil && names[0].Kind == yaml.SequenceNode {
			names = names[0].Content
			l.notEmpty(f["partition"], "name the processes to cut off")
		}
		for _, name := range names {
			p := l.process(name)
			if p != "" && slices.Contains(fault.Processes, p) {
				l.fail(name, "%s is named already", p)
			}
			fault.Processes = append(fault.Processes, p)
		}
	case model.FaultServer:
		fault.KeepData = l.boolean(f["keep_data"])
		fault.LoseLast = l.count(0)(f["lose_last"])
		fault.Step = l.serverStep(f["step"])
		fault.Key = l.filled(f["slot_of"])
		if f["lose_last"] != nil && l.s.Server.Replicas > 0 {
			l.fail(f["lose_last"], "lose_last belongs to a server without replicas; with them a failover loses what had not reached the one that it promotes, which server: {lag} decides")
		}
	case model.FaultKey:
		fault.Key = l.glob(f["key"])
		fault.KeyDo = l.word(f["do"], "do", "a key fault", "delete", "expire")
	case model.FaultRule:
		l.rule(n, f, &fault)
	}
	return fault
}

// serverStep reads by how much the wall clock of a server steps.
func (l *loader) serverStep(n *yaml.Node) Duration {
	bad := len(l.errs)
	step := l.signed(n)
	switch {
	case n == nil || len(l.errs) > bad:
	case step == 0:
		l.fail(n, "a step of 0 changes nothing; give a length such as 10s, or -10s for a clock that goes back")
	case step%time.Millisecond != 0:
		l.fail(n, "step %v: the clock of a server counts whole milliseconds", step)
	}
	return step
}

// servers reads the number of one server, or a list of numbers. Numbers start at 1.
func (l *loader) servers(n *yaml.Node) (servers []int) {
	if n == nil {
		return nil
	}
	numbers := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		numbers = n.Content
		l.notEmpty(n, "name the servers that the fault strikes, or leave the field out for all")
	}
	for _, number := range numbers {
		i := l.count(1)(number)
		if i > 0 && slices.Contains(servers, i) {
			l.fail(number, "%d is named already", i)
		}
		servers = append(servers, i)
	}
	return servers
}

// faultKind reads the kind of a fault into fault. It returns a name of the fault for
// messages, and the fields of that kind. If the kind is unclear, it returns the fields of
// all kinds, so that the check of the fields reports only misspelt ones.
func (l *loader) faultKind(n *yaml.Node, fault *Fault) (where string, known []string) {
	if n.Kind != yaml.MappingNode {
		return "a fault", nil
	}
	var kinds, all []string
	for _, row := range faultTable {
		kinds = append(kinds, string(row.kind))
		for _, field := range row.fields {
			if field = strings.TrimSuffix(field, "!"); !slices.Contains(all, field) {
				all = append(all, field)
			}
		}
	}
	all = append(all, "server", "keep_data", "lose_last", "slot_of")
	f := map[string]*yaml.Node{}
	misspelt := false
	for i := 0; i < len(n.Content); i += 2 {
		f[n.Content[i].Value] = n.Content[i+1]
		misspelt = misspelt || !slices.Contains(all, n.Content[i].Value)
	}
	if misspelt && !slices.ContainsFunc(kinds, func(k string) bool { return f[k] != nil }) {
		return "a fault", all
	}
	kind := l.oneOf(n, f, "a fault", kinds...)
	for _, row := range faultTable {
		if string(row.kind) == kind && row.kind != model.FaultServer {
			fault.Kind = row.kind
			return "a " + kind + " fault", row.fields
		}
	}
	if kind == "" {
		return "a fault", all
	}
	var words []string
	for _, row := range serverTable {
		words = append(words, string(row.does))
	}
	fault.Server = model.ServerFault(l.word(f[kind], "server fault", "server", words...))
	for _, row := range serverTable {
		if row.does == fault.Server {
			fault.Kind = model.FaultServer
			return "server: " + string(row.does), row.fields
		}
	}
	return "a fault", all
}

// role reads the role of a command.
func (l *loader) role(n *yaml.Node) model.Role {
	var known []string
	for _, r := range model.Roles {
		known = append(known, string(r))
	}
	return model.Role(l.word(n, "script", "when", known...))
}

func (l *loader) rule(n *yaml.Node, f map[string]*yaml.Node, fault *Fault) {
	w := l.fields(f["when"], "when", "process", "direction", "command", "script", "channel", "nth", "every", "after")
	fault.When = model.When{
		Process:   l.process(w["process"]),
		Direction: l.word(w["direction"], "direction", "when", "request", "reply"),
		Command:   l.command(w["command"]),
		Script:    l.role(w["script"]),
		Channel:   l.glob(w["channel"]),
		Nth:       l.count(1)(w["nth"]),
		Every:     l.count(1)(w["every"]),
		After:     l.count(1)(w["after"]),
	}
	counts := slices.DeleteFunc([]string{"nth", "every", "after"}, func(field string) bool { return w[field] == nil })
	if len(counts) > 1 {
		l.fail(w[counts[1]], "%s and %s exclude each other; give one", counts[0], counts[1])
	}
	fault.From = l.duration(f["from"])
	if until := f["until"]; until != nil && until.Kind == yaml.MappingNode {
		fault.Awaits = l.condition(until)
	} else {
		fault.Until = optional(until, l.durationFrom(time.Nanosecond))
	}
	if u := fault.Until; u != nil && *u > 0 && *u <= fault.From {
		l.fail(f["until"], "until %v is not after from %v", *u, fault.From)
	}
	fault.Do = l.word(f["do"], "do", "a rule", "drop", "delay", "hold", "half_open", "reset", "error")
	fault.With = l.filled(f["with"])
	if strings.ContainsAny(fault.With, "\r\n") {
		l.fail(f["with"], "an error of the server is one line")
	}
	for field, owner := range map[string]string{"for": "delay", "with": "error"} {
		switch {
		case fault.Do == owner && f[field] == nil:
			l.fail(n, "do: %s needs %s", owner, field)
		case fault.Do != owner && fault.Do != "" && f[field] != nil:
			l.fail(f[field], "%s belongs to do: %s, not to do: %s", field, owner, fault.Do)
		}
	}
}

// condition reads what must have happened for a rule to end.
func (l *loader) condition(n *yaml.Node) *model.Condition {
	f := l.fields(n, "until", "granted", "ended", "published", "executed")
	if len(n.Content) == 0 {
		l.fail(n, "until waits for nothing; give an instant such as 5s, or granted, ended, published or executed")
		return nil
	}
	c := &model.Condition{Granted: l.grantee(f["granted"]), Ended: l.lockName(f["ended"]), Published: l.glob(f["published"])}
	l.taken(f["ended"])
	if n := f["executed"]; n != nil {
		bad := len(l.errs)
		w := l.fields(n, "executed", "process", "command", "script", "channel", "nth")
		c.Executed = &model.When{Process: l.process(w["process"]), Command: l.command(w["command"]), Script: l.role(w["script"]),
			Channel: l.glob(w["channel"]), Nth: l.count(1)(w["nth"])}
		if len(l.errs) == bad && w["process"] == nil && w["command"] == nil && w["script"] == nil && w["channel"] == nil {
			l.fail(n, "executed names no request; give process, command, script or channel")
		}
	}
	return c
}

// grantee reads the name of a thread, or of a process, which must take a lock in its steps.
func (l *loader) grantee(n *yaml.Node) string {
	name := l.filled(n)
	if name == "" {
		return ""
	}
	known := slices.Clone(l.declared)
	for _, p := range l.s.Processes {
		known = append(known, p.Name)
	}
	if !slices.Contains(known, name) {
		l.unknown(n, "thread or process", name, "granted", known)
		return name
	}
	if !l.s.takes(name) {
		l.fail(n, "%s takes no lock, so it is never granted one", name)
	}
	return name
}

// command reads the name of a command in any case and returns it in upper case. The servers
// of each lock must know it.
func (l *loader) command(n *yaml.Node) string {
	text := strings.ToUpper(l.filled(n))
	if text == "" {
		return ""
	}
	for _, lock := range l.subjects {
		known := lock.Commands()
		if known == nil || slices.Contains(known, text) {
			continue
		}
		where := "when"
		if len(l.subjects) > 1 {
			where += ", for the servers of " + lock.Name
		}
		l.unknown(n, "command", text, where, known)
		break
	}
	return text
}

// glob reads a pattern of keys or channels.
func (l *loader) glob(n *yaml.Node) string {
	text := l.filled(n)
	if _, err := path.Match(text, ""); err != nil {
		l.fail(n, `%s is no glob: a class such as [abc] is not closed or has nothing in it, or a \ stands at the end; \[ is the letter itself`, quote(text))
	}
	return text
}
