package redistest_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/locktest"
	"lockstep/locktest/redistest"
)

// clocked is a setnx that reads both clocks before it asks.
type clocked struct {
	setnx
	read func()
}

func (l *clocked) Lock(ctx context.Context) error {
	l.read()
	return l.setnx.Lock(ctx)
}

// The class clock sets the clock of Process.Now apart, in each process by another time. time.Now is one clock
// for all processes, whatever the faults.
func TestTheClassClockStrikesTheClockOfTheProcess(t *testing.T) {
	for faults, want := range map[string]bool{"clock": true, "network,pause": false} {
		t.Run(faults, func(t *testing.T) {
			apart := false
			s := subjectOf("reads clocks", false)
			s.Open = func(p *locktest.Process) (locktest.Client, error) {
				return anyClient{redis.NewClient(redistest.Options(p, 0)), func(rdb *redis.Client, name string) locktest.Lock {
					return &clocked{setnx{rdb: rdb, name: name}, func() {
						if d := time.Until(p.Now()).Abs(); d > 10*time.Millisecond {
							apart = true
						}
					}}
				}}, nil
			}
			locktest.Run(t, s, locktest.Options{Runs: 30, Faults: faults})
			if apart != want {
				t.Errorf("Process.Now differs from time.Now: %t, want %t", apart, want)
			}
		})
	}
}
