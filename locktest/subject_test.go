package locktest

import (
	"context"
	"strings"
	"testing"
	"time"

	"lockstep/model"
	"lockstep/sim"
)

func TestOptionsAreChecked(t *testing.T) {
	for want, o := range map[string]Options{
		"Options.Runs is -1; it cannot be negative":                           {Runs: -1},
		`Options.Faults is "crush": unknown class of faults "crush"; did you`: {Faults: "crush"},
		`Options.Accept has "tidy": a fingerprint is JUDGE.bug.CALL.CAUSE, `:  {Accept: []string{"tidy"}},
		`a fingerprint has no spaces; leave "and 2 more" after`:               {Accept: []string{"misdelete.bug.unlock.pause and 2 more"}},
		`unknown class "bugs"; did you mean "bug"?`:                           {Accept: []string{"tidy.bugs.acquire.agreed"}},
		`unknown story "late-unlok"; did you mean "late-unlock"?`:             {Accept: []string{"story.late-unlok.misdelete"}},
		`unknown judge "misdelet"; did you mean "misdelete"?`:                 {Accept: []string{"story.late-unlock.misdelet"}},
		`unknown judge "leese"; did you mean "lease"?`:                        {Accept: []string{"scenario.mine.leese"}},
		`unknown call "aquire"; did you mean "acquire"?`:                      {Accept: []string{"tidy.bug.aquire.agreed"}},
		`unknown cause "agree"; did you mean "agreed"?`:                       {Accept: []string{"traffic.bug.acquire.agree"}},
		`unknown cause "restart"; did you mean "restart-with`:                 {Accept: []string{"lease.bug.acquire.restart"}},
		`has "story.late-unlock.a.misdelete": a fingerprint that begins with`: {Accept: []string{"story.late-unlock.a.misdelete"}},
	} {
		if _, err := o.plan("lock"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", o, err, want)
		}
	}
}

// The fingerprints that a failure may have are taken.
func TestFingerprintsAreTaken(t *testing.T) {
	for _, fingerprint := range []string{
		"traffic.bug.acquire.agreed", "hold-count.bug.run.crash-pause", "mutual-exclusion.limit.expiry.lease-ended", "want.bug.use.no-fault",
		"story.late-unlock.misdelete", "scenario.mine.lease", "fuzz.fifo", "tidy.bug.acquire.REDSYNC-asks-often",
		"lease.bug.run.left-key", "lease.bug.run.server-clock-step", "lease.bug.run.late-reply-of-acquire+pause", "lease.bug.run.lost-request-of-get", "lease.bug.run.a-defect-of-mine",
	} {
		if _, err := (Options{Accept: []string{fingerprint}}).plan("lock"); err != nil {
			t.Error(err)
		}
	}
}

// The judges learn from the traits that a hold has several parts on one server.
func TestTheTraitsHaveTheParts(t *testing.T) {
	if got := (Subject{Name: "three", Parts: 3}).compile(offers{}).Parts; got != 3 {
		t.Errorf("Parts is %d in the traits, want 3", got)
	}
}

// Waits reaches the judges in the timing, and Idempotent in the traits.
func TestTheJudgesLearnOfWaitsAndIdempotence(t *testing.T) {
	s := Subject{Name: "polls", Lease: time.Second, Waits: 2 * time.Second, Idempotent: true}.compile(offers{})
	if got := s.Timing(time.Second).Waits; got != 2*time.Second || !s.Idempotent {
		t.Errorf("Waits is %v and Idempotent %t, want 2s and true", got, s.Idempotent)
	}
	if s := (Subject{Name: "plain", Lease: time.Second}).compile(offers{}); s.Timing(time.Second).Waits != 0 || s.Idempotent {
		t.Errorf("a subject that says neither has %+v and %+v", s.Timing(time.Second), s.Traits)
	}
}

// Fields that contradict one another, or that mean nothing, are refused.
func TestSubjectsAreChecked(t *testing.T) {
	for want, change := range map[string]func(*Subject){
		"has the negative Waits -1s":                                  func(s *Subject) { s.Waits = -time.Second },
		"is Reentrant and Idempotent; leave Reentrant if a hold ends": func(s *Subject) { s.Reentrant, s.Idempotent = true, true },
	} {
		s := Subject{Name: "any", Servers: Independent(1, 7000, func() sim.Server { return anyServer{} }), Lease: time.Second, NoState: "none",
			Open: func(*Process) (Client, error) { return nil, nil }}
		if err := s.check(); err != nil {
			t.Fatal(err)
		}
		change(&s)
		if err := s.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

type anyServer struct{ sim.Server }

func TestIndependentServers(t *testing.T) {
	made := 0
	servers := Independent(2, 7000, func() sim.Server { made++; return anyServer{} })
	var addrs []string
	for _, n := range servers.Nodes() {
		addrs = append(addrs, n.Addr)
	}
	if got := strings.Join(addrs, " "); servers.Count() != 2 || made != 2 || got != "192.0.2.1:7000 192.0.2.2:7000" {
		t.Errorf("%d servers, %d made, at %s", servers.Count(), made, got)
	}
}

// Value replaces a value of real chance by one that repeats. Equal values have equal replacements.
func TestAValueStandsForAnother(t *testing.T) {
	p := &Process{}
	one, two := p.Value("one"), p.Value("two")
	if one == "one" || one == two || p.Value("one") != one || p.Value("two") != two {
		t.Errorf("%q and %q, then %q and %q", one, two, p.Value("one"), p.Value("two"))
	}
}

func TestAHoldOutlivesTheContextOfItsCall(t *testing.T) {
	for _, c := range []struct {
		rule          string
		before, after bool // the context of the call ends before it returns, or after
		err, want     error
		ends          bool // the hold ends
	}{
		{rule: "that ends after the call", after: true},
		{rule: "and not one that ends before", before: true, want: context.Canceled, ends: true},
		{rule: "if there is a hold", err: ErrBusy, want: ErrBusy, ends: true},
		{rule: "the error of the call comes first", before: true, err: ErrBusy, want: ErrBusy, ends: true},
	} {
		ctx, end := context.WithCancel(t.Context())
		own, settle := Outlive(ctx)
		if c.before {
			end()
		}
		if err := settle(c.err); err != c.want {
			t.Errorf("%s: the call returns %v, want %v", c.rule, err, c.want)
		}
		if c.after {
			end()
		}
		if c.ends {
			<-own.Done()
		} else if own.Err() != nil {
			t.Errorf("%s: the hold ends: %v", c.rule, own.Err())
		}
		end()
	}
}

// The hint of traffic names this field.
func TestTheFieldNotTrafficSwitchesTheJudgeOff(t *testing.T) {
	if (Promises{NotTraffic: "it asks often"}).byJudge()[model.JudgeTraffic] == "" {
		t.Error("a lock that may ask often is judged for it")
	}
	if (Promises{NotFIFO: "it is not fair"}).byJudge()[model.JudgeTraffic] != "" {
		t.Error("a field about another promise switches the judge off")
	}
}

// slow are servers that know their times.
type slow struct{ Servers }

func (slow) Times() (recovery, reconnect time.Duration) { return 2 * time.Second, time.Minute }

// ticking are servers that end holds at ticks.
type ticking struct{ Servers }

func (ticking) Tick() time.Duration { return time.Second }

func TestServersKnowTheirTimes(t *testing.T) {
	for _, c := range []struct {
		s                   Subject
		recovery, reconnect time.Duration
		tick                time.Duration
	}{
		{Subject{Servers: slow{}}, 2 * time.Second, time.Minute, 0},
		{Subject{Servers: slow{}, Recovery: time.Second, Reconnect: time.Hour}, time.Second, time.Hour, 0},
		{Subject{Servers: ticking{}}, 0, 0, time.Second},
		{Subject{Servers: Independent(1, 1, nil)}, 0, 0, 0},
	} {
		if got := c.s.compile(offers{}).Timing(0); got.Recovery != c.recovery || got.Reconnect != c.reconnect || got.Tick != c.tick {
			t.Errorf("recovery %v, reconnect %v, tick %v; want %v, %v, %v", got.Recovery, got.Reconnect, got.Tick, c.recovery, c.reconnect, c.tick)
		}
	}
}
