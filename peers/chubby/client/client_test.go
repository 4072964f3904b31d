package client

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"lockstep/model"
	"lockstep/peers/chubby/server"
	"lockstep/sim"
)

const lock = "x"

// user is a thread with a session of its own.
type user struct {
	*Session
	t      *testing.T
	w      *sim.World
	thread *sim.Thread
}

// play runs a cell, and a client in each of these processes. Each process has one thread.
func play(t *testing.T, faults []model.FaultSpec, bodies map[string]func(u user)) {
	t.Helper()
	nodes := server.Servers().Nodes()
	cfg := sim.Config{
		Chooser: sim.NewSeeded(1), LatencyMin: time.Millisecond, LatencyMax: time.Millisecond, Lineage: true, Faults: faults, Nodes: nodes,
		Processes: []sim.ProcessConfig{{Name: "a", Threads: 1}, {Name: "b", Threads: 1}, {Name: "c", Threads: 1}},
		Name:      func([]string, sim.Author) sim.Command { return sim.Command{} },
		Quiet:     40 * time.Second, Settle: 40 * time.Second, Drain: time.Second, MaxEvents: 100_000,
	}
	ended := 0
	sim.Run(sim.GuestHost(t), cfg, func(w *sim.World) {
		for _, name := range []string{"a", "b", "c"} {
			p, body := w.Process(name), bodies[name]
			if body == nil {
				continue
			}
			u := user{t: t, w: w, thread: p.Threads()[0]}
			u.thread.Start(func() {
				own := Config{Wait: p.Instant().Wait, Yield: p.Yield, Go: func(f func()) { go f() }, Dial: func(ctx context.Context, addr string) (net.Conn, error) {
					return p.DialContext(ctx, "tcp", addr)
				}}
				for _, n := range nodes {
					own.Replicas = append(own.Replicas, n.Addr)
				}
				var err error
				if u.Session, err = New(context.Background(), own); err != nil {
					t.Errorf("%s has no session: %v", name, err)
					return
				}
				body(u)
				_ = u.Close(time.Second)
				ended++
			})
		}
	})
	if want := len(bodies) - len(faults); ended != want { // each fault is the crash of one process
		t.Errorf("%d clients came to their end, want %d", ended, want)
	}
}

// at waits for an instant.
func (u user) at(d time.Duration) { u.thread.At(d) }

// try takes the lock, or returns 0 if it is busy.
func (u user) try(shared bool) (generation uint64) {
	u.t.Helper()
	generation, err := u.TryAcquire(context.Background(), lock, shared)
	if err != nil && !errors.Is(err, ErrBusy) {
		u.t.Errorf("%s, shared %t: %v", u.ID(), shared, err)
	}
	return generation
}

// must fails the test if a call that cannot fail did.
func (u user) must(err error) {
	u.t.Helper()
	if err != nil {
		u.t.Errorf("%s: %v", u.ID(), err)
	}
}

// Sessions that share a lock have one generation. The lock is exclusive again when the last of
// them has released it (Burrows 2006, section 2.4).
func TestASharedLock(t *testing.T) {
	is := func(what string, got, want uint64) {
		if got != want {
			t.Errorf("%s: generation %d, want %d (0: busy)", what, got, want)
		}
	}
	ctx := context.Background()
	play(t, nil, map[string]func(user){
		"a": func(u user) {
			u.must(u.Open(ctx, lock, 0))
			is("the first shares it", u.try(true), 1)
			q, err := u.GetSequencer(ctx, lock)
			if u.must(err); q != (server.Sequencer{Lock: lock, Shared: true, Generation: 1}) {
				t.Errorf("the sequencer of the first is %+v", q)
			}
			u.at(4 * time.Second)
			u.must(u.Release(ctx, lock, 1))
			valid, err := u.CheckSequencer(ctx, q)
			if u.must(err); !valid {
				t.Error("the sequencer is not valid although another shares the lock still")
			}
			u.at(8 * time.Second)
			valid, err = u.CheckSequencer(ctx, q)
			if u.must(err); valid {
				t.Error("the sequencer of a shared lock is valid for an exclusive holder")
			}
			is("nobody shares with an exclusive holder", u.try(true), 0)
		},
		"b": func(u user) {
			u.at(time.Second)
			is("another shares it", u.try(true), 1)
			u.at(6 * time.Second)
			u.must(u.Release(ctx, lock, 1))
		},
		"c": func(u user) {
			u.at(2 * time.Second)
			is("nobody has it alone while two share it", u.try(false), 0)
			u.at(5 * time.Second)
			is("nor while one has it", u.try(false), 0)
			u.at(7 * time.Second)
			is("when the last is gone", u.try(false), 2)
			u.at(10 * time.Second)
		},
	})
}

// The lock-delay that was set last before the failure of the holder applies.
func TestSetLockDelay(t *testing.T) {
	const opened, set = 50 * time.Second, 5 * time.Second
	ctx := context.Background()
	for _, c := range []struct {
		name string
		set  bool
		want time.Duration
	}{{"as it was opened", false, opened}, {"as it was set", true, set}} {
		t.Run(c.name, func(t *testing.T) {
			crash := model.FaultSpec{Kind: model.FaultCrash, At: 2 * time.Second, Processes: []string{"a"}}
			play(t, []model.FaultSpec{crash}, map[string]func(user){
				"a": func(u user) {
					u.must(u.Open(ctx, lock, opened))
					if c.set {
						u.must(u.SetLockDelay(ctx, lock, set))
					}
					if err := u.SetLockDelay(ctx, lock, server.MaxLockDelay+1); err == nil {
						t.Error("a lock-delay of more than a minute is accepted")
					}
					if u.try(false) != 1 {
						t.Error("the lock is not to be had")
					}
					u.at(time.Minute)
				},
				"b": func(u user) {
					u.at(time.Second)
					generation, err := u.Acquire(ctx, lock, false)
					u.must(err)
					// The session of a began at some milliseconds, and is not renewed before the crash.
					from, to := server.SessionLease+c.want, server.SessionLease+c.want+100*time.Millisecond
					if now := u.w.Now(); generation != 2 || now < from || now > to {
						t.Errorf("generation %d at %v, want 2 from %v to %v on", generation, now, from, to)
					}
				},
			})
		})
	}
}

// An acquire that waits ends when another goroutine closes the session. It does not read the answer to
// the close, and a second Close returns what the first does, at the same time.
func TestCloseEndsACall(t *testing.T) {
	ctx := context.Background()
	play(t, nil, map[string]func(user){
		"a": func(u user) {
			u.must(u.Open(ctx, lock, 0))
			if u.try(false) != 1 {
				t.Error("the lock is not to be had")
			}
			u.at(20 * time.Second)
		},
		"b": func(u user) {
			u.at(time.Second)
			closed := make(chan time.Duration)
			go func() {
				time.Sleep(2 * time.Second)
				u.must(u.Close(10 * time.Second))
				closed <- u.w.Now()
			}()
			if generation, err := u.Acquire(ctx, lock, false); !errors.Is(err, ErrExpired) {
				t.Errorf("the acquire returned %d, %v, want %v", generation, err, ErrExpired)
			}
			u.must(u.Close(10 * time.Second))
			if second, first := u.w.Now(), <-closed; first > second || second > first+time.Millisecond {
				t.Errorf("the second Close returned at %v, the first at %v", second, first)
			}
		},
	})
}

// failing is a connection of which each read calls a function and fails.
type failing struct {
	net.Conn
	read func()
}

func (failing) Write(b []byte) (int, error) { return len(b), nil }

func (failing) Close() error { return nil }

func (f failing) Read([]byte) (int, error) {
	f.read()
	return 0, io.ErrUnexpectedEOF
}

// A call on which Close hangs up leaves the search for the master to Close. Otherwise it would depend on the
// order of the two which replica Close asks.
func TestAClosedCallTriesNoOtherReplica(t *testing.T) {
	for _, c := range []struct {
		name   string
		closes bool
		master int // in the end
	}{{"the replica fails", false, 1}, {"the session is being closed", true, 0}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, end := context.WithCancel(t.Context())
				s := &Session{cfg: Config{Replicas: []string{"0", "1"}, Wait: end}, safe: make(chan struct{})}
				close(s.safe)
				s.ctx, s.end = context.WithCancel(t.Context())
				s.keeping, s.leave = context.WithCancel(s.ctx)
				s.calls = &line{Conn: failing{read: func() {
					if c.closes {
						s.leave()
					}
				}}}
				if _, err := s.call(ctx, server.Request{Do: server.Acquire}, nil); !errors.Is(err, context.Canceled) {
					t.Errorf("the call returned %v", err)
				}
				if s.master != c.master {
					t.Errorf("the next replica is %d, want %d", s.master, c.master)
				}
			})
		})
	}
}
