package trace

import (
	"slices"
	"testing"

	"lockstep/model"
)

// A word with which several threads have held a lock names no hold of that lock, whatever other locks
// have the same word.
func TestAWordThatThreadsShareNamesNoHold(t *testing.T) {
	rec := &model.Record{Params: model.Params{Traits: model.Traits{PerGrant: true}}}
	for _, h := range []holding{{"x", "a/1"}, {"y", "c/1"}, {"x", "b/1"}} {
		rec.Add(model.Event{Kind: model.KindState, Lock: h.lock, State: &model.LockState{Owner: h.owner, Count: 1, Value: "1"}})
	}
	if got, want := valuesOf(rec).carried([]string{"SET", "x", "1"}), []holding{{"y", "c/1"}}; !slices.Equal(got, want) {
		t.Errorf("the word 1 names %v, want %v", got, want)
	}
}

func TestAValueMayBeAPartOfAWord(t *testing.T) {
	for word, want := range map[string]bool{`{"owner":"abc"}`: true, "abc": true, "xabc": false, "abc1": false, "abcabc": false, "abcabc abc": true, "ab": false} {
		if got := len(word) >= len("abc") && within(word, "abc"); got != want {
			t.Errorf("%q has the value abc: %t, want %t", word, got, want)
		}
	}
}
