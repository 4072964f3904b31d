package explore

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"lockstep/explore/failure"
	"lockstep/explore/shrink"
	"lockstep/internal/counted"
	"lockstep/known"
	"lockstep/linearizability/judges"
	"lockstep/report/sentence"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// ShrinkTask is a failure that is to be made smaller.
type ShrinkTask struct {
	Run    Run    `json:"run"`
	Failed Failed `json:"failed"`
	Budget int    `json:"budget"` // runs
	// Program is the command that starts this program, such as "go run ./cmd/simrun". The
	// comment on top of the recording names it.
	Program string `json:"program"`
	// Until ends the work early, with the smallest failure so far; zero: never.
	Until time.Time `json:"until,omitzero"`
}

// Shrunk is a failure made small.
type Shrunk struct {
	Run   int           `json:"run"` // the run of the original failure
	Group failure.Group `json:"group"`
	failure.Origin
	// Cause is the evidence of a known defect in the recording; nil for any other failure.
	Cause *known.Cause `json:"cause,omitempty"`
	// Parting says what parted server and clients in the recording, for people; "" for
	// any failure but a bug without a name.
	Parting string `json:"parting,omitempty"`
	Size    int    `json:"size_events"`
	Runs    int    `json:"runs"` // runs that shrinking took
	Why     string `json:"why"`
	// Control says what the controls show about a limit; zero for any other failure.
	Control   judges.Control `json:"control,omitzero"`
	Seed      uint64         `json:"seed"`
	Recording string         `json:"recording"`
	// Seeded reports whether the scenario in the recording shows the failure
	// with its seeds alone, so that run plays it too.
	Seeded bool `json:"seeded,omitempty"`
	// Unfinished reports whether the failure is as it was found, or was made smaller only until
	// the time was over. Group.Faults may be nil then.
	Unfinished bool `json:"unfinished,omitempty"`
	// TooLong reports whether the failure stays as it was found because its run has more than
	// shrink.LongestRun steps. Group.Faults may be nil then.
	TooLong bool `json:"too_long,omitempty"`
}

// asFound returns the failure of a task as it was found. recording is "" if nobody has it.
func (t ShrinkTask) asFound(p Plan, recording string) Shrunk {
	f := t.Failed
	return Shrunk{
		Run: t.Run.Index, Group: f.Group, Origin: f.Origin, Size: f.Size, Why: f.Why, Control: f.Control, Seed: t.Run.Seed, Seeded: p.seeded(), Recording: recording, Unfinished: true,
	}
}

// Shrinking returns how the failure was made small, for people.
func (s Shrunk) Shrinking() string {
	switch {
	case s.TooLong:
		return fmt.Sprintf("as it was found, since a run of more than %d steps is too long to be made small", shrink.LongestRun)
	case s.Runs == 0:
		return "as it was found"
	case s.Unfinished:
		return fmt.Sprintf("after %s of shrinking, which were too few", counted.Of(s.Runs, "run"))
	}
	return fmt.Sprintf("after %s of shrinking", counted.Of(s.Runs, "run"))
}

// Excused says what excuses a limit, and what the controls show about it.
func (s Shrunk) Excused() string { return sentence.Join(s.Excuse, sentence.Control(s.Control)) }

// CauseText returns the cause of the failure for people, or "" if nobody knows it.
func (s Shrunk) CauseText() string { return causeText(s.Cause, s.Parting) }

func causeText(cause *known.Cause, parting string) string {
	if cause != nil {
		return cause.String()
	}
	return parting
}

// UnrepeatedError says that a run did not break a judge again when its failure was to be
// made small, so the run is nondeterministic.
type UnrepeatedError struct {
	Run   int    `json:"run"`
	Seed  uint64 `json:"seed"`
	Judge string `json:"judge"`
}

func (e *UnrepeatedError) Error() string {
	return fmt.Sprintf("run %d (seed %d) broke %s when it was first played, and does not now", e.Run, e.Seed, e.Judge)
}

// here plays runs in this process.
type here struct {
	host *sim.Host
	plan Plan
	lock *subject.Subject
	// expired reports whether the time for shrinking is over; nil: there is no limit.
	expired func() bool
	// tellings returns what all families tell together.
	tellings func() []telling
}

// Here returns a player that plays in this process, which must be one of sim.Main's or
// a test's. The lock of the plan must be registered.
func Here(h *sim.Host, p Plan) (Player, error) {
	l, err := subject.Find(p.Lock)
	if err != nil {
		return nil, err
	}
	return HereOn(h, p, l, nil), nil
}

// HereOn is Here with a lock that need not be registered. Once expired reports true, a
// failure that is being made small stays as it is; nil: there is no limit.
func HereOn(h *sim.Host, p Plan, l *subject.Subject, expired func() bool) Player {
	return here{h, p, l, expired, sync.OnceValue(func() []telling { return p.tellings(l) })}
}

func (p here) Close() {}

func (p here) Family(number int, before []Run, each func(Run) error) error {
	f := newFamily(p.tellings())
	for _, r := range before {
		f.addKept(r)
	}
	from, to := p.plan.Family(number)
	stories, _ := p.plan.stories(f.tellings, number)
	for index := from + len(before); index < to; index++ {
		r, err := p.plan.play(p.host, p.lock, p.plan.next(index, f.runs, stories), f)
		if err != nil {
			return &BadRunError{err.Error()}
		}
		if err := each(f.add(r)); err != nil {
			return err
		}
	}
	return nil
}

func (p here) Shrink(t ShrinkTask) (Shrunk, error) {
	expired := p.expired
	if !t.Until.IsZero() {
		expired = func() bool { return p.expired != nil && p.expired() || !time.Now().Before(t.Until) }
	}
	if expired != nil && expired() && t.Run.Recording != "" {
		return t.asFound(p.plan, t.Run.Recording), nil
	}
	sc, err := t.Run.scenario()
	if err != nil {
		return Shrunk{}, &BadRunError{err.Error()}
	}
	v := p.plan.judge(p.host, p.lock, sc, t.Run.Seed, p.plan.chooser(t.Run.Seed, t.Run.Estimate))
	all := sightings(p.host, v)
	i := slices.IndexFunc(all, func(x sighting) bool {
		return x.Judge == t.Failed.Judge && x.Class == t.Failed.Class && x.Op == t.Failed.Op && x.Origin == t.Failed.Origin
	})
	if i < 0 {
		return Shrunk{}, &UnrepeatedError{t.Run.Index, t.Run.Seed, t.Failed.Judge}
	}
	f := failure.Failure{Verdict: v, Finding: all[i].finding, Seeded: p.plan.seeded()}
	return shrunk(p.host, p.plan, t, f, expired)
}

// String returns the command line that makes the plan.
func (p Plan) String() string { return "simrun " + strings.Join(p.Args(), " ") }

// Args returns the arguments of the command line that makes the plan.
func (p Plan) Args() []string {
	args := append([]string{"explore", "--lock"}, p.subject()...)
	if p.Strategy == StrategyExhaustive {
		if p.Runs > 0 {
			args = append(args, "--runs", strconv.Itoa(p.Runs))
		}
		return args
	}
	args = append(args, "--runs", strconv.Itoa(p.Runs), "--seed", p.seeds())
	if p.Strategy != DefaultStrategy {
		args = append(args, "--strategy", p.Strategy)
	}
	if p.Bounded() {
		args = append(args, "--depth", strconv.Itoa(p.Depth))
	}
	if p.Steps > 0 {
		args = append(args, "--steps", strconv.FormatInt(p.Steps, 10))
	}
	if p.Settled == 0 {
		args = append(args, "--keep-going")
	}
	return args
}

// subject returns the lock of the plan, and the options that say what it meets.
func (p Plan) subject() []string {
	args := []string{p.Lock}
	if len(p.Faults) > 0 {
		classes := make([]string, len(p.Faults))
		for i, c := range p.Faults {
			classes[i] = string(c)
		}
		args = append(args, "--faults", strings.Join(classes, ","))
	}
	if p.Strategy == StrategyExhaustive {
		args = append(args, "--strategy", StrategyExhaustive)
		if p.Case != "" {
			args = append(args, "--scenario", p.Case)
		}
		return args
	}
	return append(args, "--profile", string(p.Profile))
}

// question is a line that a campaign sends to a process that plays for it. The first line
// is the plan. A question about a failure has one answer, a question about a family one
// per run. Each line is a JSON object.
type question struct {
	Family *familyTask `json:"family,omitempty"`
	Shrink *ShrinkTask `json:"shrink,omitempty"`
}

// familyTask asks for the runs of a family that were not played before.
type familyTask struct {
	Number int   `json:"number"`
	Before []Run `json:"before,omitempty"`
}

type answer struct {
	Run       *Run    `json:"run,omitempty"`
	Recording string  `json:"recording,omitempty"` // of Run
	Shrunk    *Shrunk `json:"shrunk,omitempty"`
	// Bad and Unrepeated are the errors that answer a question.
	Bad        string           `json:"bad,omitempty"`
	Unrepeated *UnrepeatedError `json:"unrepeated,omitempty"`
}

// Serve plays runs for a campaign in another process until in ends.
func Serve(h *sim.Host, in io.Reader, out io.Writer) error {
	questions, answers := json.NewDecoder(in), json.NewEncoder(out)
	var plan Plan
	if err := questions.Decode(&plan); err != nil {
		return fmt.Errorf("no plan: %w", err)
	}
	p, err := Here(h, plan)
	if err != nil {
		return err
	}
	for {
		var q question
		if err := questions.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		var a answer
		var err error
		if q.Shrink != nil {
			var s Shrunk
			s, err = p.Shrink(*q.Shrink)
			a.Shrunk = &s
		} else {
			err = p.Family(q.Family.Number, q.Family.Before, func(r Run) error { return answers.Encode(answer{Run: &r, Recording: r.Recording}) })
		}
		var bad *BadRunError
		var unrepeated *UnrepeatedError
		switch {
		case errors.As(err, &bad):
			a = answer{Bad: bad.Msg}
		case errors.As(err, &unrepeated):
			a = answer{Unrepeated: unrepeated}
		case err != nil:
			return err // nobody reads the answers
		case q.Family != nil:
			continue
		}
		if err := answers.Encode(a); err != nil {
			return err
		}
	}
}

// away plays runs in a process of its own.
type away struct {
	plan    Plan
	cmd     *exec.Cmd
	in      io.WriteCloser
	ask     *json.Encoder
	answers *json.Decoder
	stderr  *tail
}

// Away starts a process that serves the plan; cmd must call Serve.
func Away(cmd *exec.Cmd, p Plan) (Player, error) {
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stderr := &tail{}
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	a := &away{plan: p, cmd: cmd, in: in, ask: json.NewEncoder(in), answers: json.NewDecoder(bufio.NewReaderSize(out, 1<<20)), stderr: stderr}
	_ = a.ask.Encode(p) // a process that is gone is noticed at its first answer
	return a, nil
}

// answer reads the next answer.
func (a *away) answer() (x answer, err error) {
	if err := a.answers.Decode(&x); err != nil {
		why := fmt.Sprintf("the process that played it ended (%v)", a.kill())
		if last := a.stderr.String(); last != "" {
			why += ": " + last
		}
		return x, errors.New(why)
	}
	if x.Bad != "" {
		return x, &BadRunError{x.Bad}
	}
	if x.Unrepeated != nil {
		return x, x.Unrepeated
	}
	return x, nil
}

// kill ends the process, and returns how it ended.
func (a *away) kill() error {
	_ = a.in.Close()
	_ = a.cmd.Process.Kill()
	return a.cmd.Wait()
}

func (a *away) Family(number int, before []Run, each func(Run) error) error {
	_ = a.ask.Encode(question{Family: &familyTask{number, before}})
	from, to := a.plan.Family(number)
	for range to - from - len(before) {
		x, err := a.answer()
		if err != nil {
			return err
		}
		x.Run.Recording = x.Recording
		if err := each(*x.Run); err != nil {
			_ = a.kill() // it would play on
			return err
		}
	}
	return nil
}

func (a *away) Shrink(t ShrinkTask) (Shrunk, error) {
	_ = a.ask.Encode(question{Shrink: &t})
	x, err := a.answer()
	if err != nil {
		return Shrunk{}, err
	}
	return *x.Shrunk, nil
}

func (a *away) Close() {
	_ = a.in.Close()
	_ = a.cmd.Wait()
}

// tail is a writer that keeps the end of its input.
type tail struct{ b []byte }

const tailMost = 2000

func (t *tail) Write(p []byte) (int, error) {
	t.b = append(t.b, p...)
	if over := len(t.b) - tailMost; over > 0 {
		t.b = t.b[over:]
	}
	return len(p), nil
}

func (t *tail) String() string { return string(bytes.TrimSpace(t.b)) }
