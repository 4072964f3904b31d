package server

import (
	"maps"
	"testing"
	"time"
)

const dump = `SessionTracker dump:
Session Sets (2)/(1):
0 expire at Thu Nov 26 09:39:32 UTC 2026:
1 expire at Thu Nov 26 09:39:34 UTC 2026:
	0x10000df3e100000
ephemeral nodes dump:
Sessions with Ephemerals (2):
0x10000df3e100000:
	/orders/_c_b5-lock-0000000000
0xffffffffffffffff:
	/stock/x
Connections dump:
Connections Sets (1)/(1):
1 expire at Thu Nov 26 09:39:38 UTC 2026:
	ip: /127.0.0.1:60952 sessionId: 0x10000df3e100000
`

// The server tells the end of a session in whole seconds. It is at a whole tick of the other clock.
func TestADumpTellsNodesAndTheEndsOfTheirSessions(t *testing.T) {
	wall := time.Date(2026, 11, 26, 9, 39, 12, 375e6, time.UTC)
	nodes, err := readDump(dump, wall, 14714_250e6)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]shownNode{"/orders/_c_b5-lock-0000000000": {0x10000df3e100000, 21750 * time.Millisecond}, "/stock/x": {-1, 0}}
	if !maps.Equal(nodes, want) {
		t.Errorf("got %v, want %v", nodes, want)
	}
	if _, err := readDump("SessionTracker dump:\n1 expire at dawn:\n", wall, 0); err == nil {
		t.Error("a dump with another date is read")
	}
}

func TestTheEndOfATick(t *testing.T) {
	const now = 1001_700 * int64(time.Millisecond)
	for told, want := range map[time.Duration]time.Duration{ // of sessions that end at 1004 s and 1006 s
		1301 * time.Millisecond: 2300 * time.Millisecond,
		1800 * time.Millisecond: 2300 * time.Millisecond,
		2290 * time.Millisecond: 2300 * time.Millisecond,
		3800 * time.Millisecond: 4300 * time.Millisecond,
	} {
		if got := endOfTick(told, now); got != want {
			t.Errorf("told %v: %v, want %v", told, got, want)
		}
	}
}
