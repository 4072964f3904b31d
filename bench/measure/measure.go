// Package measure times locks on a real Redis, with one client alone and with two
// clients that hand a lock to each other. It imports no lock and no simulation, so
// that programs for other people's locks can use it too (peers/bench).
package measure

import (
	"errors"
	"time"
)

// Locker is one client of one lock. Lock waits until it holds it.
type Locker interface {
	Lock() error
	Unlock() error
}

// Uncontended locks and unlocks while nobody else wants the lock. It returns the
// duration of each of rounds pairs. The warmup pairs before them are not counted.
func Uncontended(l Locker, warmup, rounds int) ([]time.Duration, error) {
	took := make([]time.Duration, 0, rounds)
	for i := range warmup + rounds {
		begun := time.Now()
		if err := errors.Join(l.Lock(), l.Unlock()); err != nil {
			return nil, err
		}
		if i >= warmup {
			took = append(took, time.Since(begun))
		}
	}
	return took, nil
}

// Hold returns how long a lock is held in round i of HandOver. It is 5 to 14 ms, so
// that the other client waits by then, at a varying moment of its polling.
func Hold(i int) time.Duration { return time.Duration(5+i*7%10) * time.Millisecond }

// HandOver lets two clients take a lock in turn, each while the other holds it. It
// returns the times from the call of Unlock to the return of the other's Lock.
func HandOver(a, b Locker, rounds int) ([]time.Duration, error) {
	type turn struct {
		locked time.Time
		err    error
	}
	lockers := [2]Locker{a, b}
	if err := a.Lock(); err != nil {
		return nil, err
	}
	took := make([]time.Duration, 0, rounds)
	for i := range rounds {
		holder, waiter := lockers[i%2], lockers[(i+1)%2]
		got := make(chan turn, 1)
		go func() {
			err := waiter.Lock()
			got <- turn{time.Now(), err}
		}()
		time.Sleep(Hold(i))
		released := time.Now()
		if err := holder.Unlock(); err != nil {
			return nil, err
		}
		t := <-got
		if t.err != nil {
			return nil, t.err
		}
		took = append(took, t.locked.Sub(released))
	}
	return took, lockers[rounds%2].Unlock()
}
