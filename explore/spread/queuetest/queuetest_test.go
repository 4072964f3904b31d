package queuetest_test

import (
	"testing"
	"time"

	"lockstep/explore/spread/queuetest"
)

func TestTheQueueInMemory(t *testing.T) {
	const again = 200 * time.Millisecond
	queuetest.Test(t, &queuetest.Engine{Wait: again}, "", again)
}
