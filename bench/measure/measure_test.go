package measure

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// door is a lock that takes a millisecond to reach a waiter.
type door chan struct{}

func (d door) Lock() error {
	d <- struct{}{}
	time.Sleep(time.Millisecond)
	return nil
}

func (d door) Unlock() error {
	<-d
	return nil
}

// slow takes that long to unlock, or fails.
type slow struct {
	door
	d   time.Duration
	err error
}

func (s slow) Unlock() error {
	time.Sleep(s.d)
	return errors.Join(s.err, s.door.Unlock())
}

func TestHandOverIsFromTheCallOfUnlockToTheReturnOfLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := make(door, 1)
		took, err := HandOver(slow{d, 3 * time.Millisecond, nil}, d, 5)
		if err != nil {
			t.Fatal(err)
		}
		want := []time.Duration{4, 1, 4, 1, 4} // the first holds in rounds 0, 2 and 4
		for i, d := range took {
			if d != want[i]*time.Millisecond {
				t.Errorf("round %d took %v, want %v ms", i, d, want[i])
			}
		}
		if len(took) != len(want) || len(d) != 0 {
			t.Errorf("%d rounds, and %d hold it in the end", len(took), len(d))
		}
	})
}

func TestUncontendedCountsPairsAfterTheWarmUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		took, err := Uncontended(slow{make(door, 1), 2 * time.Millisecond, nil}, 3, 4)
		if err != nil || len(took) != 4 || took[0] != 3*time.Millisecond {
			t.Errorf("%v, %v", took, err)
		}
	})
}

func TestWhatALockSaysIsHandedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken")
		if _, err := Uncontended(slow{make(door, 1), 0, broken}, 0, 1); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
		d := make(door, 2) // lets both in, so that nobody waits for ever
		if _, err := HandOver(slow{d, 0, broken}, d, 1); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
		time.Sleep(time.Second)
	})
}
