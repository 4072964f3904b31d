package redisson

import (
	"errors"
	"testing"
	"time"

	"lockstep/lockimpl"
)

// The outcome of the last attempt says nothing of earlier attempts: a command whose reply was lost may
// have run, even if the server could not be reached again.
func TestOneAttemptThatMayHaveRunMakesTheOutcomeUnknown(t *testing.T) {
	refused := errors.New("connection refused")
	on(t, "3.21.3", func(b *bench, rel *Release) {
		l := b.lock(b.client(rel, "c1"), kind{rel, false}, "x")
		b.answer(loses(rel.Acquire.Name))
		call := b.beginLock(background, l, 1, lockimpl.LockOptions{Lease: time.Hour})
		b.until(time.Second)
		b.refuse(refused)
		call.failedAt(7500*time.Millisecond, refused) // 3 s, and three times 1.5 s
		if !errors.Is(call.err, lockimpl.ErrUnknownOutcome) {
			b.t.Errorf("the first attempt took the lock, and yet: %v", call.err)
		}
		same(b.t, "hash", b.held("x"), map[string]string{"c1:1": "1"})
	})
}
