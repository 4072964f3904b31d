package failure

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/sim"
)

// Group describes failures that are probably one bug.
type Group struct {
	Judge string       `json:"judge"`
	Class judges.Class `json:"class"`
	// Op is the kind of the call that the finding names first: acquire, unlock or
	// force_unlock. If the finding names no call, Op is the kind of its event.
	Op string `json:"op"`
	// Faults are the kinds of the faults that the failure needs, sorted; nil if they are
	// not known.
	Faults []string `json:"faults"`
}

// nameMost limits the length of the name of a folder, in bytes.
const nameMost = 120

// noFault stands for the faults of a failure that needs none.
const noFault = "no-fault"

// Key returns a readable name of the group that is fit for a folder.
func (g Group) Key() string {
	faults := noFault
	if len(g.Faults) > 0 {
		faults = strings.Join(g.Faults, "+")
	}
	return fileName(g.Judge, string(g.Class), g.Op, faults)
}

// fileName joins words to a name that is fit for a folder.
func fileName(words ...string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.+", r):
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, strings.Join(words, "."))
	if len(name) > nameMost {
		h := fnv.New32a()
		_, _ = h.Write([]byte(name))
		name = fmt.Sprintf("%s-%08x", name[:nameMost-9], h.Sum32())
	}
	return name
}

// Folder returns the name of the folder of the failures of a group that have one origin.
func (g Group) Folder(o Origin) string {
	switch {
	case o.Defect != "":
		return fileName(g.Judge, string(g.Class), g.Op) + "." + o.Defect
	case o.Left():
		return fileName(g.Judge, string(g.Class), opRun, o.Parted)
	case o.Known():
		return fileName(g.Judge, string(g.Class), g.Op, o.Excuse+o.Parted)
	}
	return g.Key()
}

// Name returns a name of a known defect or of a limit that is fit for a file. It is "" for a bug
// without a name.
func (o Origin) Name() string {
	switch {
	case o.Defect != "":
		return o.Defect
	case o.Excuse != "":
		return fileName(o.Excuse)
	}
	return ""
}

// String describes the group in words.
func (g Group) String() string {
	return fmt.Sprintf("%s (%s) at %s, with %s", g.Judge, g.Class, g.Op, g.FaultWords())
}

// FaultWords lists the kinds of the faults that the failure needs, in words.
func (g Group) FaultWords() string {
	if g.Faults == nil {
		return "faults that are not found out yet"
	}
	if len(g.Faults) == 0 {
		return "no fault"
	}
	return strings.Join(g.Faults, ", ")
}

// Group returns the group of the failure. Its faults are the ones that the run met.
func (f Failure) Group() Group {
	return Group{Judge: f.Finding.Judge, Class: f.Finding.Class, Op: OpOf(f.Verdict, f.Finding), Faults: FaultsMet(f.Verdict, f.Finding)}
}

// FaultsMet returns the kinds of the faults of a run, without names and times. A rule
// counts by the messages that it met up to the finding.
func FaultsMet(v play.Verdict, f judges.Finding) []string {
	kinds := worldKinds(v.Scenario, func(rule int, rf model.FaultSpec) []string {
		return hitKinds(v.Played.Record, rule, rf.Do, Until(f))
	})
	if hit := FateOf(v); hit != nil {
		kinds = append(kinds, hitKinds(v.Played.Record, hit.Fault, hit.Do, Until(f))...)
		slices.Sort(kinds)
	}
	return slices.Compact(kinds)
}

// FateOf returns the event in which the chooser lost or delayed a message, in a world of
// orders. It returns nil if there is no such event.
func FateOf(v play.Verdict) *model.Event {
	if v.Played.Orders == nil || v.Played.Record == nil {
		return nil
	}
	events := v.Played.Record.Events
	i := slices.IndexFunc(events, func(e model.Event) bool {
		return e.Kind == model.KindHit && e.Fault == sim.FateFault(len(v.Scenario.Faults))
	})
	if i < 0 {
		return nil
	}
	return &events[i]
}

// FaultsStated returns the kinds of the faults that a scenario declares. A rule counts by
// its action and its conditions, whatever messages it meets.
func FaultsStated(sc *scenarios.Scenario) []string {
	return worldKinds(sc, func(_ int, f model.FaultSpec) []string {
		return []string{fmt.Sprint(f.Do, f.When.Direction, f.When.Script, f.When.Command, f.When.Channel != "")}
	})
}

func worldKinds(sc *scenarios.Scenario, rule func(int, model.FaultSpec) []string) []string {
	out := []string{}
	for i, f := range sc.Faults {
		if f.Kind == model.FaultRule {
			out = append(out, rule(i+1, f.FaultSpec)...)
			continue
		}
		out = append(out, kindOfFault(f.FaultSpec))
	}
	for _, st := range sc.All() {
		if st.Kind == scenarios.StepInterrupt {
			out = append(out, "interrupt")
		}
	}
	for _, p := range sc.Processes {
		if p.WallOffset != 0 || p.WallDriftPPM != 0 {
			out = append(out, "wall clocks apart")
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func kindOfFault(f model.FaultSpec) string {
	switch f.Kind {
	case model.FaultWallClock:
		return "wall clock step"
	case model.FaultKey:
		return f.KeyDo + " of a key"
	case model.FaultServer:
		switch {
		case f.Server == "restart" && f.KeepData:
			return "restart with data"
		case f.Server == "restart":
			return "restart without data"
		case f.Server == "flush_scripts":
			return "script flush"
		case f.StepsServerClock():
			return "server clock step"
		}
		return string(f.Server)
	}
	return string(f.Kind)
}

// hitKinds returns the effects of a rule on the messages that it met. A message came late,
// came never, or was refused with an error. A drop and a reset of the connection count as
// the same effect. The way in which the rule picked the message does not count.
func hitKinds(r *model.Record, rule int, do string, until int64) []string {
	if r == nil {
		return []string{do}
	}
	word := map[string]string{"drop": "lost", "reset": "lost", "half_open": "lost", "delay": "late", "hold": "late", "error": "refused"}[do]
	names := map[int]string{} // the names of commands, by message
	var out []string
	for i := range r.Events {
		e := &r.Events[i]
		if e.AtNs > until {
			break
		}
		switch {
		case e.Kind == model.KindSend:
			names[e.Msg] = strings.ToLower(e.Command)
		case e.Kind != model.KindHit || e.Fault != rule:
		case e.Dir == "push":
			out = append(out, word+" published message")
		case e.Script != "":
			out = append(out, word+" "+e.Dir+" of "+string(e.Script))
		default:
			out = append(out, word+" "+e.Dir+" of "+names[e.Msg])
		}
	}
	return out
}

// opRun is the kind of call of a failure of a whole run.
const opRun = "run"

// OpOf returns the kind of the call that a finding names first. If the finding names no
// call, OpOf returns the kind of its event.
func OpOf(v play.Verdict, f judges.Finding) string {
	if len(f.Ops) > 0 {
		if op := model.Action(f.Ops[0].Op); !op.Acquires() {
			return string(op)
		}
		return string(model.RoleAcquire)
	}
	switch f.Judge {
	case model.JudgeWorkload:
		return "use"
	case model.JudgeWant:
		return f.Check.What
	}
	if v.Played.Record == nil {
		return opRun
	}
	// Look for an event at the instant of the finding: a command that was sent, a
	// command that changed the state, or a key that ran out.
	script := ""
	for i := range v.Played.Record.Events {
		e := &v.Played.Record.Events[i]
		switch {
		case e.AtNs != f.AtNs:
		case e.Kind == model.KindSend && e.Script != "":
			return string(e.Script)
		case e.Kind == model.KindExec:
			script = string(e.Script)
		case e.Kind == model.KindState && script != "":
			return script
		case e.Kind == model.KindExpire:
			return "expiry"
		}
	}
	return opRun
}
