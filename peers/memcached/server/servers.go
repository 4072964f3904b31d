package server

import (
	"time"

	"lockstep/locktest"
	"lockstep/sim"
)

// Servers returns n independent servers. A subject with n below 1 is refused
// when it is judged.
func Servers(n int) locktest.Servers {
	return servers{locktest.Independent(n, 11211, func() sim.Server { return New() })}
}

type servers struct{ locktest.Servers }

// Tick implements locktest.Ticking. An item ends up to a tick early, since the server adds its time to live to
// the last one.
func (servers) Tick() time.Duration { return time.Second }

// Value is the State of a lock that keeps the value of its holder under its name, on the
// first server.
func Value(s locktest.Snapshot, lock string) *locktest.State {
	value, endsNs, ok := s.Server(0).(*Server).Item(int64(s.Now()), lock)
	if !ok {
		return nil
	}
	return &locktest.State{Owner: value, Expires: time.Duration(endsNs)}
}
