//go:build linux

package live

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/model/trace"
	"lockstep/report/sentence"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// Options are the settings of a run. The command of a client is a program that calls Client.
type Options = play.LiveOptions

// Run plays a scenario once, judges the run, and gives it a number. If the machine stood still
// for long, or the finding depends on instants that nobody knows exactly, Run plays once more,
// and the Note of the result says so. The error is Unusable (see Check) if nothing could be
// played.
func Run(ctx context.Context, sc *scenarios.Scenario, l *subject.Subject, number uint64, o Options) (play.LiveRun, error) {
	if err := Check(sc, l, o); err != nil {
		return play.LiveRun{}, err
	}
	r, doubt, err := run(ctx, sc, l, number, o)
	if err != nil || doubt == "" {
		return r, err
	}
	o.Report("playing it once more, because " + doubt)
	again, still, err := run(ctx, sc, l, number, o)
	if err != nil {
		return again, err
	}
	again.Note = "played twice, because in the first run " + doubt
	if still != "" {
		again.Note += ", and in the second " + still
	}
	return again, nil
}

// still is the longest time for which a process may stand still without a fault in a run that counts.
// Judges allow for this time. They cannot allow for what a lock does because its process stood still.
const still = 250 * time.Millisecond

// run plays and judges once. doubt says why the machine may have caused the verdict; "": it did not.
func run(ctx context.Context, sc *scenarios.Scenario, l *subject.Subject, number uint64, o Options) (r play.LiveRun, doubt string, err error) {
	s, j, err := judged(ctx, sc, l, o)
	if err != nil {
		return r, "", err
	}
	p := play.Played{Result: sim.Result{Record: s.assemble(0), Steps: len(s.looks)}}
	p.SimNs = p.Record.Events[len(p.Record.Events)-1].AtNs
	p.Trace = trace.New(p.Record)
	v := play.Decide(sc, l, number, p, j)
	r = play.LiveRun{Verdict: v, Programs: s.programs(), Logs: s.logs}
	if v.AsExpected {
		return r, "", nil
	}
	if gap := time.Duration(s.gapNs); gap > still {
		gap = gap.Round(time.Millisecond)
		doubt = sentence.StoodStill(gap)
		for i := range r.Findings {
			undecide(&r.Findings[i], judges.Doubt{StoodStill: gap})
		}
		r.Word, r.Why = play.VerdictUndecided, doubt
		return r, doubt, nil
	}
	if v.Word == play.VerdictUndecided {
		doubt = "the verdict was undecided: " + sentence.Verdict(v)
	}
	return r, doubt, nil
}

// judged plays a scenario and judges it. If it finds a limit, it plays again without the excuses of
// the limit, as a simulated run does. But here the second run makes its own decisions.
func judged(ctx context.Context, sc *scenarios.Scenario, l *subject.Subject, o Options) (*session, judges.Judgement, error) {
	s, err := playOnce(ctx, sc, l, o)
	if err != nil {
		return nil, judges.Judgement{}, err
	}
	o.Report("judging")
	j := s.judge()
	play.Convict(sc, &j, nil, func(less *scenarios.Scenario, _ []model.Excuse, _ []judges.Finding) judges.Judgement {
		o.Report("playing it once more, without a fault that excuses a finding")
		_, again, e := judged(ctx, less, l, o)
		if e != nil {
			err = e
		}
		return again
	})
	return s, j, err
}

// playOnce plays a scenario.
func playOnce(ctx context.Context, sc *scenarios.Scenario, l *subject.Subject, o Options) (*session, error) {
	s := newSession(sc, l, o)
	var dir string
	var err error
	if o.Keep == "" {
		var free func()
		if dir, free, err = Folder(); err != nil {
			return nil, err
		}
		defer free()
	} else {
		if dir, err = os.MkdirTemp(o.Keep, "logs-"); err != nil {
			return nil, err
		}
		s.logs = dir
	}
	if o.Address != "" {
		s.prefix = fmt.Sprintf("lockstep:%016x:", s.rng.Uint64())
	}
	if err := s.reads(); err != nil {
		return nil, err
	}
	if err := s.play(ctx, dir); err != nil {
		return nil, s.explain(dir, err)
	}
	return s, nil
}

func newSession(sc *scenarios.Scenario, l *subject.Subject, o Options) *session {
	s := &session{
		o: o, sc: sc, lock: l,
		poke:   make(chan struct{}, 1),
		byConn: map[connKey]*message{}, published: map[string]int64{},
		rng: rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())), // a run in real time does not repeat anyway
	}
	start := map[string]int64{}
	for _, r := range sc.Resources {
		start[r.Name] = r.Start
	}
	s.resources = sim.NewResources(start)
	return s
}

// reads prepares the reading of requests and of states. It needs the prefix.
func (s *session) reads() (err error) {
	var locks []string
	for _, name := range play.LockNames(s.sc) {
		locks = append(locks, s.prefix+name)
	}
	s.purpose = s.lock.Servers.Commands(locks)
	if kind, e := kindOf(s.lock); e == nil {
		if _, redis := kind.(redisKind); !redis {
			s.viewsOf(locks)
			return nil
		}
	}
	if s.reading, err = readingOf(s.lock, locks); err == nil && s.reading.learns() {
		s.owners, s.valued = sim.NewOwners(), map[string]*model.LockState{}
	}
	return err
}

// explain adds the output of the children to an error.
func (s *session) explain(dir string, err error) error {
	for _, c := range s.sides {
		if text, e := os.ReadFile(filepath.Join(dir, "client-"+c.process.Name+".log")); e == nil && len(text) > 0 {
			err = fmt.Errorf("%w\nprocess %s said: %s", err, c.process.Name, text)
		}
	}
	return err
}
