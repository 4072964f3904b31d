// Package waking wakes goroutines all the time, for tests that no order of goroutines changes a record.
package waking

import "time"

// Start starts a goroutine that wakes up all the time until stop is called. It takes the place of the
// goroutine that is next to run. So goroutines that are runnable at one instant change their order, as
// on a busy machine, but more often.
func Start() (stop func()) {
	done := make(chan struct{})
	go func() {
		for {
			woken := make(chan struct{})
			time.AfterFunc(5*time.Microsecond, func() { close(woken) })
			select {
			case <-woken:
			case <-done:
				return
			}
		}
	}()
	return func() { close(done) }
}
