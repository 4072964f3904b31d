package queuetest_test

import (
	"testing"
	"time"

	"lockstep/explore/spread/queuetest"
	"lockstep/internal/realtime"
)

func TestTheQueueInMemory(t *testing.T) {
	realtime.Case(t, "memory", func(int) string {
		const again = 200 * time.Millisecond
		if err := queuetest.Check(t.Context(), &queuetest.Engine{Wait: again}, "", again); err != nil {
			return err.Error()
		}
		return ""
	})
}
