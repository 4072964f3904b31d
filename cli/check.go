package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"lockstep/cli/frame"
	"lockstep/internal/counted"
	"lockstep/internal/foreign"
	"lockstep/internal/input"
	"lockstep/internal/quantity"
	"lockstep/linearizability"
	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/report"
	"lockstep/report/sentence"
)

// A checkObject is the verdict on a history as check --json prints it.
type checkObject struct {
	File     string          `json:"file"`
	Model    string          `json:"model"`
	Verdict  string          `json:"verdict"` // held, bug or undecided
	Ops      int             `json:"ops"`
	Findings []findingObject `json:"findings"`
}

func checkCommand(a *frame.App) *cobra.Command {
	var spec, out string
	var drift int64
	asJSON := false
	c := a.Command(frame.Guide{
		Use: "check HISTORY ...", Short: "judge histories that were recorded elsewhere",
		Long: "Check looks for an order of the operations of a history that a lock allows. A history is JSON Lines, one operation a line, or Jepsen's EDN of a lock; " +
			".gz is read, too, and - is standard input. The exit code is 1 if a history has no such order.",
		Examples: []string{"check history.jsonl", "check history.jsonl --model fair --out pictures"},
	}, func(in frame.Invocation) (int, error) { return checkHistories(a, in.Names, spec, drift, out, asJSON) })
	f := c.Flags()
	frame.OneOf(f, &spec, "model", "reentrant", model.Specs, "the lock: reentrant, fair or fenced")
	frame.Whole(f, &drift, "drift-ppm", 0, quantity.DriftPPM, "how far apart lease clocks run, in parts per million")
	f.StringVar(&out, "out", "", "draw the histories that fail, in `DIR`")
	frame.JSONFlag(f, &asJSON, "one object per history, one per line")
	c.ValidArgsFunction = frame.Files("jsonl", "edn", "gz")
	return c
}

func checkHistories(a *frame.App, files []string, spec string, drift int64, out string, asJSON bool) (int, error) {
	if len(files) == 0 {
		return 0, frame.Usagef("check takes one history or more, - for standard input: JSON Lines, one operation a line, or Jepsen's EDN")
	}
	opt := linearizability.Options{Spec: spec, DriftPPM: drift}
	judged := make([]judgedHistory, len(files))
	for i, file := range files {
		var err error
		if judged[i], err = judgeHistory(a, file, opt); err != nil {
			return 0, frame.Usage(err)
		}
	}
	release, err := a.Folder(out)
	if err != nil {
		return 0, frame.Usage(fmt.Errorf("check: %w", err))
	}
	defer release()
	code := frame.ExitOK
	enc := json.NewEncoder(a.Out)
	enc.SetEscapeHTML(false)
	for i, file := range files {
		res := judged[i].result
		o := checkObject{File: file, Model: spec, Verdict: "held", Ops: judged[i].ops, Findings: []findingObject{}}
		switch res.Verdict() {
		case linearizability.Broken:
			o.Verdict, code = "bug", frame.ExitUnexpected
		case linearizability.Undecided:
			o.Verdict = "undecided"
			if code == frame.ExitOK {
				code = frame.ExitUndecided
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
		fmt.Fprintf(a.Out, "%s: %s (%s, %s)\n", file, a.Paint(o.Verdict, o.Verdict), counted.Of(o.Ops, "operation"), spec)
		for _, l := range res.Locks {
			if l.Verdict != linearizability.OK {
				fmt.Fprint(a.Out, report.Wrap(fmt.Sprintf("lock %s: %s", foreign.Line(l.Lock), sentence.History(l.Reason, model.Seconds)), "    ", 100))
				if l.First != nil {
					fmt.Fprint(a.Out, report.Wrap(fmt.Sprintf("line %d is the first that no order can place; %s before it can be; the state then: %s",
						l.First.Line, counted.Of(l.Prefix, "operation"), sentence.LockThen(l.Reason)), "    ", 100))
				}
			}
			if l.Verdict == linearizability.Broken && out != "" {
				picture, err := drawn(l, judged[i].notes, filepath.Join(out, pictureName(i, file, l.Lock)))
				if err != nil {
					return 0, err
				}
				fmt.Fprintf(a.Out, "    %s\n", picture)
			}
		}
	}
	return code, nil
}

// A judgedHistory is the result of judging a history.
type judgedHistory struct {
	ops    int // the number of operations
	notes  []linearizability.Note
	result linearizability.Result
}

// judgeHistory judges a file, or standard input, while it reads it.
func judgeHistory(a *frame.App, file string, opt linearizability.Options) (j judgedHistory, err error) {
	in, name := io.Reader(os.Stdin), "standard input"
	if file != "-" {
		f, err := input.Open(file, "check takes a history, a file")
		if err != nil {
			return j, err
		}
		defer func() { _ = f.Close() }()
		in, name = f, file
	}
	c := linearizability.NewChecker(opt)
	j.notes, err = linearizability.Stream(in, name, func(op *linearizability.Op) {
		j.ops++
		c.Add(op)
	})
	j.result = c.Result()
	if err != nil && j.ops == 0 {
		err = kindOf(file, input.Head(file), err)
	}
	return j, err
}

// drawn writes porcupine's picture of a broken history to a file. It returns a text that
// names the file or says why there is no picture.
func drawn(l linearizability.LockResult, notes []linearizability.Note, file string) (string, error) {
	var b bytes.Buffer
	if err := linearizability.PictureOf(l, notes, &b); err != nil {
		return "no picture: " + err.Error(), nil
	}
	return "picture: " + file, renameio.WriteFile(file, b.Bytes(), 0o644)
}

// pictureName returns a file name for the picture of a lock of the i-th history.
func pictureName(i int, file, lock string) string {
	plain := func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.", r) {
			return r
		}
		return '-'
	}
	return fmt.Sprintf("%d-%s-%s.html", i+1, report.Clip(strings.Map(plain, filepath.Base(file)), 60), report.Clip(strings.Map(plain, lock), 60))
}

func lockFinding(l linearizability.LockResult) findingObject {
	f := findingObject{Judge: model.JudgeLinearizable, Finding: string(l.Verdict), Why: l.Lock + ": " + sentence.History(l.Reason, model.Seconds), Ops: []opObject{}}
	if l.Verdict == linearizability.Broken {
		f.Class = string(judges.ClassBug)
	}
	if op := l.First; op != nil {
		f.AtNs = op.CallNs
		f.Ops = append(f.Ops, opObject{Process: op.Process, Thread: op.Thread, Op: op.Op, CallNs: op.CallNs, ReturnNs: op.ReturnNs})
	}
	return f
}
