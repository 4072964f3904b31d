package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl"
	"lockstep/lockimpl/redisson"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
)

// stories are the five scenarios that are played in the world and in real time.
// All scenarios would take more than half an hour.
var stories = []string{"watchdog-try-lock", "inventory-small", "fair-queueing", "fair-unlock", "misdelete"}

// story is a scenario without faults, on the last lock that it names.
func story(name string) (*scenarios.Scenario, *subject.Subject, error) {
	sc, err := scenarios.Find(name)
	if err != nil {
		return nil, nil, err
	}
	plain := *sc
	plain.Faults = nil
	for i := len(sc.Locks) - 1; i >= 0; i-- {
		if l := mustLock(sc.Locks[i]); l.Release != "" {
			return &plain, l, nil
		}
	}
	return nil, nil, fmt.Errorf("%s names no lock of Redisson's", name)
}

func (b *bench) realTime() (section, error) {
	s := section{
		Title: "Against real time",
		Text:  []string{"The five stories in the world, and the same steps with the same locks on a redis-server in real time, side by side there. `inventory-small` is played without its pause, in both."},
		Head:  []string{"story", "lock", "in the world, by the clock", "real time", "factor", "wanted and got, for real"},
	}
	_, server, stop, err := startServer()
	if server == nil {
		return s.unmeasured("there is no redis-server here"), err
	}
	defer stop()
	type pair struct {
		sc    *scenarios.Scenario
		lock  *subject.Subject
		world float64
		real  *realRun
	}
	var pairs []*pair
	for _, name := range stories {
		sc, l, err := story(name)
		if err != nil {
			return s, err
		}
		p := &pair{sc: sc, lock: l}
		costs := inTurn(b.Rounds, func() float64 { play.Run(b.Host, sc, l, 1); return 1 })
		p.world = median(costs[0], wallOf)
		pairs = append(pairs, p)
	}
	if b.Quick { // a quick measurement must not take a minute
		s.After = append(s.After, "Not played in real time with --quick.")
	} else {
		var done sync.WaitGroup
		for _, p := range pairs {
			p.real = &realRun{sc: p.sc, lock: p.lock, server: server.Addr}
			done.Go(p.real.play)
		}
		done.Wait()
	}
	var world, lasted float64
	for _, p := range pairs {
		world += p.world
		cells := []string{p.sc.Name, p.lock.Name, span(p.world), "", "", ""}
		if p.real != nil {
			if p.real.err != nil {
				return s, fmt.Errorf("%s in real time: %w", p.sc.Name, p.real.err)
			}
			took := float64(p.real.took)
			lasted += took
			copy(cells[3:], []string{span(took), digits(took / p.world), fmt.Sprintf("%d of %d", p.real.met, p.real.wants)})
		}
		s.row(cells...)
	}
	if lasted > 0 {
		s.row("all five", "", span(world), span(lasted), digits(lasted/world), "")
	}
	return s, nil
}

// realRun plays a scenario's steps on a real server in real time.
type realRun struct {
	sc     *scenarios.Scenario
	lock   *subject.Subject
	server string

	begun time.Time
	took  time.Duration
	err   error

	mu         sync.Mutex
	left       map[string]int64 // of the resources
	met, wants int
}

func (r *realRun) play() {
	rel, err := redisson.Find(r.lock.Release)
	if err != nil {
		r.err = err
		return
	}
	r.left = map[string]int64{}
	for _, res := range r.sc.Resources {
		r.left[res.Name] = res.Start
	}
	r.begun = time.Now()
	var threads sync.WaitGroup
	for _, p := range r.sc.Processes {
		rdb := redis.NewClient(redisson.Options(&redis.Options{Addr: r.server, DisableIdentity: true}))
		c := redisson.NewClient(rdb, redisson.Config{Release: rel, WatchdogTimeout: r.sc.Watchdog})
		defer func() {
			_ = c.Close()
			_ = rdb.Close()
		}()
		for _, t := range r.sc.Threads {
			if t.Process != p.Name {
				continue
			}
			threads.Go(func() {
				if err := r.steps(c, lockimpl.Owner(t.Thread), t.Steps); err != nil {
					r.mu.Lock()
					r.err = errors.Join(r.err, err)
					r.mu.Unlock()
				}
			})
		}
	}
	threads.Wait()
	r.took = time.Since(r.begun)
}

func (r *realRun) steps(c *redisson.Client, o lockimpl.Owner, steps []scenarios.Step) error {
	for _, s := range steps {
		if err := r.step(c, o, s); err != nil {
			return fmt.Errorf("line %d: %w", s.Pos.Line, err)
		}
	}
	return nil
}

func (r *realRun) step(c *redisson.Client, o lockimpl.Owner, s scenarios.Step) error {
	ctx := context.Background()
	var l lockimpl.Lock
	var err error
	switch s.Kind {
	case scenarios.StepLock, scenarios.StepTryLock, scenarios.StepWithLock, scenarios.StepUnlock, scenarios.StepRead:
		get := c.GetLock
		if r.lock.Fair {
			get = c.GetFairLock
		}
		if l, err = get(r.sc.Name + " " + s.Name); err != nil { // other stories have locks with the same name
			return err
		}
	}
	lease := orZero(s.Lease)
	switch s.Kind {
	case scenarios.StepAt:
		time.Sleep(time.Until(r.begun.Add(s.D)))
	case scenarios.StepSleep:
		time.Sleep(s.D)
	case scenarios.StepLock, scenarios.StepWithLock:
		if err := l.Lock(ctx, o, lockimpl.LockOptions{Lease: lease}); err != nil {
			return err
		}
		r.want(s, "granted")
		if s.Kind == scenarios.StepWithLock {
			if err := r.steps(c, o, s.Steps); err != nil {
				return err
			}
			_, err := l.Unlock(ctx, o)
			if errors.Is(err, lockimpl.ErrNotHeld) {
				err = nil // the lease has ended
			}
			return err
		}
	case scenarios.StepTryLock:
		ok := false
		if s.Lease == nil && s.Wait == nil {
			ok, err = l.TryLock(ctx, o)
		} else {
			ok, err = l.TryLockTimed(ctx, o, lockimpl.TryOptions{Wait: orZero(s.Wait), Lease: lease})
		}
		if err != nil {
			return err
		}
		r.want(s, map[bool]string{true: "granted", false: "busy"}[ok])
	case scenarios.StepUnlock:
		got, err := l.Unlock(ctx, o)
		switch {
		case errors.Is(err, lockimpl.ErrNotHeld):
			r.want(s, "not_held")
		case err != nil:
			return err
		case got == lockimpl.StillHeld:
			r.want(s, "still_held")
		default:
			r.want(s, "released")
		}
	case scenarios.StepUse:
		r.mu.Lock()
		seen := r.left[s.Name]
		r.mu.Unlock()
		time.Sleep(s.For)
		r.mu.Lock()
		r.left[s.Name] = seen - s.Take
		r.mu.Unlock()
	case scenarios.StepRead, scenarios.StepPublished: // these steps read the server's state by a command
		if l != nil {
			_, err = l.RemainTimeToLive(ctx)
		}
		return err
	default:
		return fmt.Errorf("the step %s cannot be played in real time", s.Kind)
	}
	return nil
}

func orZero(d *time.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return *d
}

// want counts the expectations of a step, and whether they came true.
func (r *realRun) want(s scenarios.Step, got string) {
	if len(s.Want) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wants++
	if slices.Contains(s.Want, got) {
		r.met++
	}
}
