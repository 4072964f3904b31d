package drawntest

import (
	"sync"
	"time"
)

// Renewals renew a hold of the lock of a test, until they are ended or the hold may be over.
type Renewals struct {
	end              sync.Once
	stop, over, lost chan struct{}
}

// Renew begins to renew a hold that was asked for at the instant sent and lasts for a lease from there, once in each period.
// renew renews the hold before the instant until, and reports whether it did.
func Renew(period, lease time.Duration, sent time.Time, renew func(until time.Time) bool) *Renewals {
	r := &Renewals{stop: make(chan struct{}), over: make(chan struct{}), lost: make(chan struct{})}
	go func() {
		defer close(r.over)
		for until := sent.Add(lease); ; {
			select {
			case <-r.stop:
				return
			case <-time.After(min(period, time.Until(until))):
			}
			sent := time.Now()
			if !sent.Before(until) {
				close(r.lost)
				return
			}
			if renew(until) {
				until = sent.Add(lease)
			}
		}
	}()
	return r
}

// End ends the renewals, and waits for one that is under way. Nil renewals have ended.
func (r *Renewals) End() {
	if r != nil {
		r.end.Do(func() { close(r.stop) })
		<-r.over
	}
}

// Lost returns a channel that is closed when the hold may be over.
func (r *Renewals) Lost() <-chan struct{} { return r.lost }
