package farm_test

import (
	"testing"
	"time"

	"lockstep/explore/spread/queuetest"
	"lockstep/internal/realtime"
	"lockstep/peers/farm"
)

// start starts a server that keeps its data in dir, and ends with the test.
func start(t *testing.T, e farm.JetStream, dir string) string {
	t.Helper()
	url, stop, err := e.Start(dir, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return url
}

func TestTheQueue(t *testing.T) {
	realtime.Case(t, "JetStream", func(int) string {
		e := farm.JetStream{Silence: time.Second}
		if err := queuetest.Check(t.Context(), e, start(t, e, t.TempDir()), e.Silence); err != nil {
			return err.Error()
		}
		return ""
	})
}
