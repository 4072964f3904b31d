package redis

import (
	"fmt"
	"slices"
	"testing"

	"lockstep/sim"
)

// Whatever a run leaves in its server, the next run finds none of it.
func TestALaterRunFindsNothingOfAnEarlierOne(t *testing.T) {
	const script = "return 'of the earlier run'"
	sha := scriptOf(script).sha
	look := [][]string{
		{"KEYS", "*"}, {"DBSIZE"}, {"GET", "k"}, {"SCRIPT", "EXISTS", sha}, {"EVALSHA", sha, "0"}, {"PUBSUB", "CHANNELS"}, {"PUBSUB", "NUMPAT"},
		{"TIME"}, {"SET", "k", "v", "PX", "50"}, {"PTTL", "k"}, {"WATCH", "k"}, {"MULTI"}, {"GET", "k"}, {"EXEC"}, {"SELECT", "3"}, {"KEYS", "*"},
	}
	fresh := sim.NewHost(t)
	fresh.NoShortcuts = true
	want, wantDigest := asked(t, fresh, look)
	h := sim.NewHost(t)
	for _, c := range []struct {
		what  string
		left  [][]string
		again bool // the same miniredis serves the next run
	}{
		{"keys", [][]string{{"SET", "k", "v"}, {"HSET", "h", "f", "v"}, {"RPUSH", "l", "v"}, {"ZADD", "z", "1", "v"}, {"SADD", "s", "v"}, {"SET", "e", "v", "PX", "60000"}}, true},
		{"a script", [][]string{{"SCRIPT", "LOAD", script}, {"EVAL", "return 1", "0"}}, true},
		{"a transaction that is open", [][]string{{"MULTI"}, {"SET", "k", "v"}}, true},
		{"a subscription", [][]string{{"SUBSCRIBE", "ch"}}, true},
		{"a pattern", [][]string{{"PSUBSCRIBE", "c*"}}, true},
		{"another database", [][]string{{"SELECT", "3"}, {"SET", "k", "v"}}, false},
		{"a key that is watched", [][]string{{"WATCH", "k"}}, false},
	} {
		idleMiniredis.list = nil
		asked(t, h, c.left)
		equal(t, c.what+": servers that are kept", len(idleMiniredis.list), map[bool]int{true: 1}[c.again])
		got, digest := asked(t, h, look)
		for i, words := range look {
			equal(t, fmt.Sprintf("after %s: %q", c.what, words), got[i], want[i])
		}
		equal(t, "digest after "+c.what, digest, wantDigest)
	}
}

// A miniredis remembers the names of its keys, so that it may not serve for ever.
func TestAMiniredisServesAHundredRuns(t *testing.T) {
	h := sim.NewHost(t)
	idleMiniredis.list = nil
	var turns []int
	for range turnsMax + 1 {
		asked(t, h, [][]string{{"PING"}})
		for _, s := range idleMiniredis.list {
			turns = append(turns, s.turns)
		}
	}
	want := []int{}
	for n := 1; n < turnsMax; n++ {
		want = append(want, n)
	}
	if want = append(want, 1); !slices.Equal(turns, want) {
		t.Errorf("the runs that the idle server had served after each run: %v", turns)
	}
}
