package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"lockstep/linearizability"
	"lockstep/model"
)

// checkObject is a history as check --json prints it.
type checkObject struct {
	File     string          `json:"file"`
	Model    string          `json:"model"`
	Verdict  string          `json:"verdict"` // held, bug or undecided
	Ops      int             `json:"ops"`
	Findings []findingObject `json:"findings"`
}

func (a *app) check(args []string) (int, error) {
	spec, asJSON := "reentrant", false
	var drift int64
	files, err := flags("check", args, func(f *pflag.FlagSet) {
		f.StringVar(&spec, "model", spec, "")
		f.Int64Var(&drift, "drift-ppm", 0, "")
		f.BoolVar(&asJSON, "json", false, "")
	})
	if err != nil {
		return 0, err
	}
	if _, ok := model.SpecNamed(spec); !ok {
		return 0, usagef("--model %q: known are %s", spec, strings.Join(model.Specs, ", "))
	}
	if drift < 0 || drift >= 1_000_000 {
		return 0, usagef("--drift-ppm %d: give parts per million, 0 to 999999", drift)
	}
	if len(files) == 0 {
		return 0, usagef("check takes one history or more: JSON Lines, one operation a line")
	}
	histories := make([][]linearizability.Op, len(files))
	for i, file := range files {
		f, err := os.Open(file)
		if err != nil {
			return 0, usagef("read the history: %w", err)
		}
		histories[i], err = linearizability.Read(f, file)
		_ = f.Close()
		if err != nil {
			return 0, usageError{err}
		}
	}
	code := exitOK
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	for i, file := range files {
		res := linearizability.Check(histories[i], linearizability.Options{Spec: spec, DriftPPM: drift})
		o := checkObject{File: file, Model: spec, Verdict: "held", Ops: len(histories[i]), Findings: []findingObject{}}
		switch res.Verdict() {
		case linearizability.Broken:
			o.Verdict, code = "bug", exitUnexpected
		case linearizability.Undecided:
			o.Verdict = "undecided"
			if code == exitOK {
				code = exitUndecided
			}
		}
		for _, l := range res.Locks {
			if l.Verdict != linearizability.OK {
				o.Findings = append(o.Findings, lockFinding(l))
			}
		}
		if asJSON {
			if err := enc.Encode(o); err != nil {
				return 0, err
			}
			continue
		}
		fmt.Fprintf(a.out, "%s: %s (%d operations, %s)\n", file, a.paint(o.Verdict, o.Verdict), o.Ops, spec)
		for _, l := range res.Locks {
			if l.Verdict != linearizability.OK {
				fmt.Fprint(a.out, wrap(fmt.Sprintf("lock %s: %s", l.Lock, l.Why), "    ", 100))
				if l.First != nil {
					fmt.Fprint(a.out, wrap(fmt.Sprintf("line %d is the first that no order can place; %d operations before it can be; the state then: %s",
						l.First.Line, l.Prefix, l.State), "    ", 100))
				}
			}
		}
	}
	return code, nil
}

func lockFinding(l linearizability.LockResult) findingObject {
	f := findingObject{Judge: model.JudgeLinearizable, Finding: string(l.Verdict), Why: l.Lock + ": " + l.Why, Ops: []opObject{}}
	if l.Verdict == linearizability.Broken {
		f.Class = string(linearizability.ClassBug)
	}
	if op := l.First; op != nil {
		f.AtNs = op.CallNs
		f.Ops = append(f.Ops, opObject{Process: op.Process, Thread: op.Thread, Op: op.Op, CallNs: op.CallNs, ReturnNs: op.ReturnNs})
	}
	return f
}
