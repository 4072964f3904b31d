package cli

import (
	"lockstep/linearizability/judges"
	"lockstep/report/sentence"
	"lockstep/scenarios/play"
)

// An object is a run as --json prints it. Times are integers, and their names end with the
// unit. Users rely on the names and the meaning of the fields.
type object struct {
	Scenario   string          `json:"scenario"`
	Lock       string          `json:"lock"`
	Seed       uint64          `json:"seed"`
	Verdict    string          `json:"verdict"`
	Expected   string          `json:"expected"`
	AsExpected bool            `json:"as_expected"`
	Findings   []findingObject `json:"findings"`
	Reached    []string        `json:"reached"`
	Waits      waitsObject     `json:"waits"`
	Steps      int             `json:"steps"`
	SimNs      int64           `json:"sim_ns"`
	Digest     string          `json:"digest"`
	Recording  string          `json:"recording"`
}

// waitsObject sums up how long the calls that were granted a lock waited for it.
type waitsObject struct {
	Granted int   `json:"granted"`
	P50Ns   int64 `json:"p50_ns"`
	P90Ns   int64 `json:"p90_ns"`
	P99Ns   int64 `json:"p99_ns"`
	MaxNs   int64 `json:"max_ns"`
}

type findingObject struct {
	Judge   string     `json:"judge"`
	Finding string     `json:"finding"`
	Class   string     `json:"class,omitempty"`
	Why     string     `json:"why"`
	AtNs    int64      `json:"at_ns"`
	Ops     []opObject `json:"ops"`
}

type opObject struct {
	Process  string `json:"process"`
	Thread   int    `json:"thread"`
	Op       string `json:"op"`
	CallNs   int64  `json:"call_ns"`
	ReturnNs *int64 `json:"return_ns"` // null: it has not returned
}

func asObject(v play.Verdict, recording string) object {
	o := object{
		Scenario: v.Scenario.Name, Lock: v.Lock.Name, Seed: v.Seed, Verdict: string(v.Word), Expected: v.Expected,
		AsExpected: v.AsExpected, Findings: findingObjects(v.Findings), Reached: v.Reached, Waits: waitsObject(v.Waits),
		Steps: v.Played.Steps, SimNs: v.Played.SimNs, Digest: v.Digest(), Recording: recording,
	}
	if o.Reached == nil {
		o.Reached = []string{}
	}
	if why := sentence.Verdict(v); why != "" {
		finding := string(judges.Undecided)
		if v.Word == play.VerdictNotApplicable {
			finding = string(v.Word)
		}
		o.Findings = append(o.Findings, findingObject{Judge: string(v.Word), Finding: finding, Why: why, Ops: []opObject{}})
	}
	return o
}

func findingObjects(fs []judges.Finding) []findingObject {
	out := []findingObject{}
	for _, f := range fs {
		fo := findingObject{Judge: f.Judge, Finding: string(f.Verdict), Class: string(f.Class), Why: sentence.Finding(f), AtNs: f.AtNs, Ops: []opObject{}}
		for _, op := range f.Ops {
			oo := opObject{Process: op.Process, Thread: op.Thread, Op: op.Op, CallNs: op.CallNs}
			if op.ReturnNs >= 0 {
				oo.ReturnNs = &op.ReturnNs
			}
			fo.Ops = append(fo.Ops, oo)
		}
		out = append(out, fo)
	}
	return out
}
