package subject_test

import (
	"fmt"
	"testing"
	"time"

	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/scenarios/subject/onredis"
	"lockstep/sim"
	simredis "lockstep/sim/redis"
)

// panicOf returns the text of the panic of f, or "" if f does not panic.
func panicOf(f func()) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = fmt.Sprint(r)
		}
	}()
	f()
	return ""
}

func oneStep(t *testing.T) *scenarios.Scenario {
	t.Helper()
	const text = `lockstep: 1
name: one
locks: [own]
processes: {a: {}}
steps:
  a/1: [lock: x, read: {name: x, locked: true}, unlock: x, read: {name: x, locked: false}]
`
	sc, err := scenarios.Parse("one.yaml", []byte(text), scenarios.AnyLock)
	if err != nil {
		t.Fatal(err)
	}
	return sc
}

// protocol returns the protocol of a subject on Redis.
func protocol(s *subject.Subject) *onredis.Protocol { return s.Servers.(*onredis.Protocol) }

// Check, Register and Run refuse a subject that lacks a required field. Each names the
// subject and the field.
func TestASubjectThatLacksAFieldIsRefused(t *testing.T) {
	h, sc := sim.NewHost(t), oneStep(t)
	for _, c := range []struct {
		rule  string
		spoil func(*subject.Subject)
		want  string
	}{
		{"no name", func(s *subject.Subject) { s.Name = "" }, `subject "" has no Name`},
		{"no Open", func(s *subject.Subject) { s.Open = nil }, `subject "own" has no Open`},
		{"no Servers", func(s *subject.Subject) { s.Servers = nil }, `subject "own" has no Servers`},
		{"no State", func(s *subject.Subject) { protocol(s).State = nil }, `subject "own" has no State`},
		{"no Keys", func(s *subject.Subject) { s.Keys = nil }, `subject "own" has no Keys`},
		{"scripts without Parties", func(s *subject.Subject) { protocol(s).Parties = nil }, `subject "own" has no Parties`},
		{"a role that does not exist", func(s *subject.Subject) { protocol(s).Scripts = map[string]model.Role{"return 1": "aquire"} },
			`subject "own" gives a script the unknown role "aquire"; the roles are acquire, unlock, renew, force_unlock, leave`},
	} {
		t.Run(c.rule, func(t *testing.T) {
			s := own()
			c.spoil(s)
			if err := s.Check(); err == nil || err.Error() != c.want {
				t.Errorf("Check: %v; want %s", err, c.want)
			}
			if got, want := panicOf(func() { subject.Register(s) }), "subject: "+c.want; got != want {
				t.Errorf("Register panics with %q; want %q", got, want)
			}
			if got, want := panicOf(func() { play.Run(h, sc, s, 1) }), "play: "+c.want; got != want {
				t.Errorf("Run panics with %q; want %q", got, want)
			}
		})
	}
	if err := (*subject.Subject)(nil).Check(); err == nil || err.Error() != "subject is nil" {
		t.Errorf("Check of nil: %v", err)
	}
}

func TestTwoSubjectsOfOneNameAreRefused(t *testing.T) {
	s := own()
	s.Name = "setnx-cad"
	if got, want := panicOf(func() { subject.Register(s) }), `subject: two subjects have the name "setnx-cad"`; got != want {
		t.Errorf("Register panics with %q; want %q", got, want)
	}
}

// A lock can be played and judged even if all fields that may be nil are nil.
func TestAllButTheRequiredFieldsMayBeZero(t *testing.T) {
	full := own()
	state := protocol(full).State
	bare := &subject.Subject{
		Name: "own", Open: full.Open, Keys: full.Keys,
		Servers: &onredis.Protocol{
			// A nil state stands for a free lock.
			State: func(keys simredis.Keyspace, lock string) *model.LockState {
				if s := state(keys, lock); s.Held() {
					return s
				}
				return nil
			},
		},
	}
	v := play.RunTwice(sim.NewHost(t), oneStep(t), bare, 1)
	if got := broken(v); got != "" || v.Word != play.VerdictHeld {
		t.Errorf("broken: %q (%s %s); want none", got, v.Word, v.Why)
	}
}

func TestTimingFillsInTheFieldsThatAreZero(t *testing.T) {
	want := model.Timing{Watchdog: 9 * time.Second, RenewalPeriod: 3 * time.Second, ResponseTimeout: 3 * time.Second, Resend: 7500 * time.Millisecond, GiveUp: 25 * time.Second}
	for _, times := range []func(time.Duration) model.Timing{nil, func(time.Duration) model.Timing { return model.Timing{} }} {
		if got := (&subject.Subject{Times: times}).Timing(9 * time.Second); got != want {
			t.Errorf("Timing is %+v; want %+v", got, want)
		}
	}
}

// The default renewal period is a third of the watchdog timeout. A lock that renews
// nothing has none.
func TestTheRenewalPeriodHasADefault(t *testing.T) {
	for _, c := range []struct {
		traits model.Traits
		want   time.Duration
	}{{model.Traits{}, 10 * time.Second}, {model.Traits{NoWatchdog: true}, 0}} {
		s := &subject.Subject{Name: "own", Traits: c.traits}
		if got := s.Timing(30 * time.Second).RenewalPeriod; got != c.want {
			t.Errorf("%+v: renewed after %v, want %v", c.traits, got, c.want)
		}
	}
}
