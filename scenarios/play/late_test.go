package play

import (
	"testing"
	"time"

	"lockstep/model"
	"lockstep/scenarios"
)

type clock struct{ Place }

func (clock) Now() time.Duration { return 2 * time.Second }

// A place that may be late allows for that in what the server tells of the time to live, and in nothing else.
func TestALatePlaceAllowsForItInTheTimeToLive(t *testing.T) {
	const s, ms = time.Second, time.Millisecond
	want := scenarios.TTL{Range: scenarios.Range{Min: 8 * s, Max: 8*s + ms}}
	for _, c := range []struct {
		slack  time.Duration
		endsMs int64
		met    bool
	}{
		{0, 10_000, true}, {0, 10_001, true}, {0, 10_002, false}, {0, 9_999, false},
		{250 * ms, 10_251, true}, {250 * ms, 10_252, false}, {250 * ms, 9_750, true}, {250 * ms, 9_749, false},
	} {
		p := &player{place: clock{}, slack: c.slack}
		if got, met := p.ttl(&model.LockState{Owner: "a/1", Count: 1, ExpiresMs: c.endsMs}, want); met != c.met {
			t.Errorf("with %v, %s: %v", c.slack, got, met)
		}
	}
	late := &player{place: clock{}, slack: 250 * ms}
	if _, met := late.ttl(&model.LockState{}, want); met {
		t.Error("a free lock has no time to live")
	}
	for got, met := range map[string]bool{"20000": true, "20250": true, "20251": false, "19749": false, "nil": false, "none": false} {
		if late.sameTTL("20000", got) != met {
			t.Errorf("the reply %s in the place of 20000: %v", got, !met)
		}
	}
}
