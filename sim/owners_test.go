package sim_test

import (
	"testing"

	"lockstep/model"
	"lockstep/sim"
)

// A value belongs to the thread that took the lock with it last, and is about the lock for which it
// was written, as long as there is one.
func TestTheOwnerOfAValueIsWhoTookTheLockWithIt(t *testing.T) {
	o := sim.NewOwners()
	take := func(thread, lock string, words ...string) string {
		s := &model.LockState{Owner: "1", Count: 1}
		by := &sim.Writer{Process: model.ProcessOf(thread), Thread: thread, Words: words}
		o.Wrote(thread, lock, words)
		o.Took(lock, s, by)
		return o.Name(lock, s, by).Owner
	}
	if got := take("a/1", "x", "SET", "x", "1"); got != "a/1" || o.About([]string{"EVAL", "1"}) != "x" {
		t.Errorf("the first holder is %s, and its value is about %q", got, o.About([]string{"EVAL", "1"}))
	}
	if got := take("b/1", "x", "SET", "x", "1"); got != "b/1" {
		t.Errorf("the second holder is %s", got)
	}
	if got := take("a/1", "x", "EVAL", "take", "x"); got != "b/1" {
		t.Errorf("a request that does not have the value made %s the holder", got)
	}
	if got := take("c/1", "y", "SET", "y", "1"); got != "c/1" || o.About([]string{"EVAL", "1"}) != "" {
		t.Errorf("the holder of the other lock is %s, and the value is about %q", got, o.About([]string{"EVAL", "1"}))
	}
	named := o.Name("x", &model.LockState{Owner: "1"}, nil)
	if named.Owner != "b/1" || named.Value != "1" {
		t.Errorf("the value %q of the first lock belongs to %s", named.Value, named.Owner)
	}
	if again := o.Name("x", named, nil); again.Owner != "b/1" || again.Value != "1" {
		t.Errorf("a state that is named twice has the value %q and belongs to %s", again.Value, again.Owner)
	}
}

// A request without a value is about the lock that its thread took with the most of its words.
func TestARequestWithoutAValueIsAboutTheLockOfItsKey(t *testing.T) {
	o := sim.NewOwners()
	take := func(thread, lock string, words ...string) {
		o.Took(lock, &model.LockState{Owner: words[2], Count: 1}, &sim.Writer{Process: model.ProcessOf(thread), Thread: thread, Words: words})
	}
	take("a/1", "x", "SET", "lock:x", "v1", "PX", "8000")
	take("a/1", "y", "SET", "lock:y", "v2", "PX", "8000")
	for _, c := range []struct {
		thread string
		words  []string
		want   string
	}{
		{"a/1", []string{"PEXPIRE", "lock:x", "8000"}, "x"},
		{"a/1", []string{"GET", "lock:y"}, "y"},
		{"a/1", []string{"PEXPIRE", "other", "8000"}, ""}, // as much about the one as about the other
		{"a/1", []string{"MGET", "lock:x", "lock:y"}, ""},
		{"a/1", []string{"PING"}, ""},
		{"a/1", []string{"SET", "other"}, ""}, // only the command is the same
		{"a/1", nil, ""},
		{"b/1", []string{"PEXPIRE", "lock:x", "8000"}, ""}, // it took nothing
	} {
		if got := o.Beside(c.thread, c.words); got != c.want {
			t.Errorf("%s, %q: about %q, want %q", c.thread, c.words, got, c.want)
		}
	}
}
