package cli

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"lockstep/cli/frame"
	"lockstep/explain"
	"lockstep/explore/failure"
	"lockstep/linearizability/judges"
	"lockstep/report"
	"lockstep/report/sentence"
	"lockstep/scenarios/play"
)

// pictureBytesMost limits the size of one of porcupine's pictures in a report.
const pictureBytesMost = 700_000

// reportOf converts a verdict to the run that a report shows.
func reportOf(v play.Verdict, replay string) report.Run {
	return report.Run{
		Scenario: v.Scenario.Name, About: v.Scenario.About, Lock: v.Lock.Name, Seed: v.Seed, Verdict: string(v.Word), Expected: v.Expected,
		Why: sentence.Verdict(v), Replay: replay, Digest: v.Digest(), Record: v.Played.Record, Findings: v.Findings,
	}
}

// explained is reportOf with the cause of the first finding.
func explained(a *frame.App, v play.Verdict, replay string) report.Run {
	v.ShowLimits(a.Host)
	r := reportOf(v, replay)
	r.Cause = causeOf(a, v)
	return r
}

// causeOf describes the known defect that a run's first finding shows, or the event that made server and clients
// disagree before it. It returns "" if nobody knows the cause.
func causeOf(a *frame.App, v play.Verdict) string {
	f, ok := failure.First(v, "")
	if !ok {
		return ""
	}
	n := failure.NewNamer(a.Host, v)
	text := explain.CauseOf(n, f)
	origin, _ := failure.OriginOf(n, f)
	if origin.Defect == "" {
		return text
	}
	var others []string // the judges whose findings have another cause
	for _, g := range v.Findings {
		if o, _ := failure.OriginOf(n, g); g.Class == judges.ClassBug && o.Defect != origin.Defect && !slices.Contains(others, g.Judge) {
			others = append(others, g.Judge)
		}
	}
	if len(others) > 0 {
		text += fmt.Sprintf(". This is the cause of the finding of %s, and not of that of %s", f.Judge, strings.Join(others, " and "))
	}
	return text
}

// pictures returns one picture per lock of a run. Porcupine draws them.
func pictures(v play.Verdict) []report.Picture {
	out := []report.Picture{}
	for _, lock := range v.Played.Trace.Locks {
		var b bytes.Buffer
		p := report.Picture{Lock: lock}
		switch err := judges.Picture(v.Played.Trace, lock, &b); {
		case err != nil:
			p.Why = err.Error()
		case b.Len() > pictureBytesMost:
			p.Why = fmt.Sprintf("it would take %d bytes", b.Len())
		default:
			p.HTML = b.String()
		}
		out = append(out, p)
	}
	return out
}
