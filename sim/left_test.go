package sim

import (
	"context"
	"fmt"
	"testing"
	"time"

	"lockstep/model"
)

// The record lists the goroutines that wait for ever when a run is over. The next run begins as usual.
func TestGoroutinesThatAreLeft(t *testing.T) {
	for range 2 {
		r := play(t, Config{}, nil, map[string]func(*Thread){"a": func(th *Thread) {
			never := make(chan struct{})
			go func() { <-never }()
			go time.Sleep(3 * time.Minute) // ends in time
			th.Call(Operation{Action: model.ActLock, Lock: "x"}, func(context.Context) (model.Outcome, error) {
				<-never
				return model.Granted, nil
			})
		}})
		var left []string
		for _, e := range r.Record.Events {
			if e.Kind == model.KindLeft {
				left = append(left, fmt.Sprintf("%s, of a call: %v", e.Text, e.Goroutine.Calls))
			}
		}
		equal(t, "left", joined(left), "goroutine lockstep/sim.(*Thread).Start, of a call: true, goroutine lockstep/sim.TestGoroutinesThatAreLeft.func1, of a call: false")
	}
}
