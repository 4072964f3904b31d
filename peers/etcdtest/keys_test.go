package etcdtest_test

import (
	"testing"

	"lockstep/locktest"
	"lockstep/peers/etcdtest"
)

// nested are keys of which one begins with the other.
func nested(lock string) string {
	if lock == "x" {
		return "k"
	}
	return "k/" + lock
}

type nestedClient struct{ client }

func (c nestedClient) Lock(name string) (locktest.Lock, error) {
	return &lock{c: c.ForLock(name), name: nested(name)}, nil
}

// Key reads the key of a lock, and no longer key that begins with it.
func TestKeysThatBeginAlike(t *testing.T) {
	s := orders
	s.Name, s.State = "nested", etcdtest.Key(nested)
	s.Open = func(p *locktest.Process) (locktest.Client, error) {
		c, err := orders.Open(p)
		if err != nil {
			return nil, err
		}
		return nestedClient{c.(client)}, nil
	}
	locktest.Run(t, s, locktest.Options{Runs: 20})
}
