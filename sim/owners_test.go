package sim_test

import (
	"slices"
	"strings"
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
		o.Sends(sim.Author{Thread: thread, Op: 1, Lock: lock}, words, false, nil)
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
		{"a/1", []string{"EVAL", "lock:x", "8000"}, "x"},
		{"a/1", []string{"EVAL", "third", "third:queue", "v3", "8000"}, ""}, // only the time is the same
		{"a/1", []string{"SET", "other"}, ""},                               // only the command is the same
		{"a/1", nil, ""},
		{"b/1", []string{"PEXPIRE", "lock:x", "8000"}, ""}, // it took nothing
	} {
		if got := o.Beside(c.thread, c.words); got != c.want {
			t.Errorf("%s, %q: about %q, want %q", c.thread, c.words, got, c.want)
		}
	}
}

// A goroutine of no thread that takes the lock with a value, while several calls are under way, takes it for
// the call that is granted, whoever sent the value in a call that was the only one.
func TestAGrantSaysWhoseAGuessedValueIs(t *testing.T) {
	for _, guessed := range []bool{true, false} {
		o := sim.NewOwners()
		hold := func(by *sim.Writer) string {
			s := &model.LockState{Owner: "v", Count: 1}
			o.Took("x", s, by)
			return o.Name("x", s, by).Owner
		}
		if got := hold(&sim.Writer{Process: "a", Thread: "a/1", Words: []string{"SET", "x", "v"}, Guessed: guessed}); got != "a/1" {
			t.Errorf("guessed %t: the first holder is %s", guessed, got)
		}
		want := map[bool]string{true: "v", false: "a/1"}[guessed]
		if got := hold(&sim.Writer{Process: "a", Words: []string{"SET", "x", "v"}}); got != want {
			t.Errorf("guessed %t: the second holder is %s, want %s", guessed, got, want)
		}
		if got := o.Granted(sim.Writer{Process: "a", Thread: "a/2"}, "x", "v"); got != guessed {
			t.Errorf("guessed %t: the grant of a/2 says whose the value is: %t", guessed, got)
		}
		if got := hold(&sim.Writer{Process: "b", Words: []string{"SET", "x", "v"}}); guessed && got != "a/2" {
			t.Errorf("a request of another process made %s the holder", got)
		}
	}
}

// An unlock on a stream may hand the lock to a thread of any process, by a value that nobody could read. One whose words are known
// hands it to a thread of its own, if nobody wrote the value before.
func TestAGrantSaysWhoseAValueIsThatAnUnlockBroughtForward(t *testing.T) {
	for command, want := range map[string]bool{model.SegmentCommand: true, "EVAL": false} {
		o := sim.NewOwners()
		by := sim.Author{Thread: "a/1", Op: 1, Action: model.ActUnlock, Lock: "x"}.Writer("a", sim.Request{Name: command}, "")
		if got := o.Name("x", &model.LockState{Owner: "v", Count: 1}, by).Owner; got != "v" {
			t.Errorf("%s: the holder is %s before a grant", command, got)
		}
		if got := o.Granted(sim.Writer{Process: "b", Thread: "b/1"}, "x", "v"); got != want {
			t.Errorf("%s: the grant of b/1 says whose the value is: %t", command, got)
		}
	}
}

// A queue keeps a ticket per waiter, and its first ticket holds. An acquire on a stream that gives its own ticket up, or deletes that of
// a dead waiter, brings the ticket of another thread forward.
func TestAnAcquireOnAStreamBringsATicketForward(t *testing.T) {
	acquire := func(thread string) sim.Author {
		return sim.Author{Thread: thread, Op: 1, Action: model.ActLock, Lock: "x"}
	}
	held := func(value string) *model.LockState { return &model.LockState{Owner: value, Count: 1} }
	for _, c := range []struct {
		rule, before, ticket string
		sends                bool // b/1 sent its ticket
		want, granted        string
	}{
		{"it is that of the thread that sent it", "ticket-of-a", "ticket-of-b", true, "b/1", "b/1"},
		{"also if the lock was free for a moment", "", "ticket-of-b", true, "b/1", "b/1"},
		{"one that nobody sent as it is, is that of the thread that is granted the lock", "ticket-of-a", "made-of-b", false, "made-of-b", "b/1"},
		{"so is one that is too short to be looked for", "ticket-of-a", "b7", true, "b7", "b/1"},
		{"so is one that is a part of another word", "ticket-of-a", "ticket-o", true, "ticket-o", "b/1"},
		{"one that the acquire sent is its own", "ticket-of-b", "ticket-of-a", true, "a/1", "a/1"},
	} {
		o := sim.NewOwners()
		o.SendsSegment(acquire("a/1"), "INSERT 'ticket-of-a'")
		if c.sends {
			o.SendsSegment(acquire("b/1"), "INSERT 'ticket-of-b', 'b7'")
		}
		var before *model.LockState
		if c.before != "" {
			before = o.Name("x", held(c.before), nil)
		}
		by := acquire("a/1").Writer("a", sim.Request{Name: model.SegmentCommand, Words: []string{"DELETE"}}, "")
		o.Follows("x", before, held(c.ticket), by)
		if got := o.Name("x", held(c.ticket), by).Owner; got != c.want {
			t.Errorf("%s: the holder is %s, want %s", c.rule, got, c.want)
		}
		o.Follows("x", nil, held(c.ticket), by) // the lock was free, and the same ticket is the first one again
		o.Granted(sim.Writer{Process: "b", Thread: "b/1"}, "x", c.ticket)
		if got := o.Name("x", held(c.ticket), nil).Owner; got != c.granted {
			t.Errorf("%s: the holder is %s after the grant of b/1, want %s", c.rule, got, c.granted)
		}
	}
}

// A value that no request has, since State makes it, and one that a list hands on, belong to the thread whose request
// made the free lock held.
func TestAHoldOfTheSameValueIsThatOfWhoTookIt(t *testing.T) {
	for _, c := range []struct {
		rule       string
		sent, here bool // a/1 sent the value; the reply to b/1 has it
		want       string
	}{
		{"nobody sent it", false, false, "b/1"},
		{"a/1 sent it, and b/1 got it", true, true, "b/1"},
		{"a/1 sent it, and stands in front", true, false, "a/1"},
	} {
		o, s := sim.NewOwners(), &model.LockState{Owner: "taken", Count: 1}
		if c.sent {
			o.Sends(sim.Author{Thread: "a/1", Op: 1, Action: model.ActLock, Lock: "x"}, []string{"RPUSH", "x", "taken"}, false, nil)
		}
		take := func(thread string, reply ...string) string {
			by := &sim.Writer{Process: model.ProcessOf(thread), Thread: thread, Words: []string{"BLPOP", "x"}, Reply: reply}
			o.Took("x", s, by)
			return o.Name("x", s, by).Owner
		}
		if got := take("a/1"); got != "a/1" {
			t.Errorf("%s: the first holder is %s", c.rule, got)
		}
		var reply []string
		if c.here {
			reply = []string{"x", "taken"}
		}
		if got := take("b/1", reply...); got != c.want {
			t.Errorf("%s: the second holder is %s, want %s", c.rule, got, c.want)
		}
	}
}

// The value of a waiter that another's request hands the lock stays the waiter's, also if it was guessed which thread sent it.
func TestAHandOverToAGuessedThread(t *testing.T) {
	for carried, want := range map[string]string{"v": "a/1", "w": "b/1"} {
		o := sim.NewOwners()
		o.Name("x", &model.LockState{Queue: []string{"v"}}, &sim.Writer{Process: "a", Thread: "a/1", Guessed: true, Words: []string{"EVALSHA", "x", carried}})
		s, by := &model.LockState{Owner: "v", Count: 1}, &sim.Writer{Process: "b", Thread: "b/1", Words: []string{"EVALSHA", "x", "u"}}
		o.Took("x", s, by)
		if got := o.Name("x", s, by).Owner; got != want {
			t.Errorf("a/1 sent %s: the holder is %s, want %s", carried, got, want)
		}
	}
}

// Of several values of unknown threads, a grant takes the only one that its thread may have written, or none.
func TestAGrantTakesTheValueThatItsThreadMayHaveWritten(t *testing.T) {
	for _, c := range []struct {
		first, second string // the threads that may have written the values
		taken         string
	}{{"a/1", "a/2", "first"}, {"a/2", "a/1", "second"}, {"a/1", "a/1", ""}, {"", "", ""}, {"a/2", "", ""}} {
		o := sim.NewOwners()
		for value, perhaps := range map[string]string{"first": c.first, "second": c.second} {
			o.Name("x", &model.LockState{Owner: value, Count: 1}, &sim.Writer{Process: "a", Words: []string{"SET", "x", value}, Perhaps: perhaps})
		}
		learned := o.Granted(sim.Writer{Process: "a", Thread: "a/1"}, "x", "first", "second", "first")
		taken := ""
		for _, value := range []string{"first", "second"} {
			if o.Name("x", &model.LockState{Owner: value, Count: 1}, nil).Owner == "a/1" {
				taken += value
			}
		}
		if learned != (c.taken != "") || taken != c.taken {
			t.Errorf("%q and %q: a/1 takes %q, want %q", c.first, c.second, taken, c.taken)
		}
	}
}

// A value with which a thread asks for two locks is about neither alone, and the words beside it say about which.
func TestAValueOfTwoLocks(t *testing.T) {
	o := sim.NewOwners()
	o.Took("x", &model.LockState{Owner: "v", Count: 1}, &sim.Writer{Process: "a", Thread: "a/1", Words: []string{"EVAL", "x", "x:queue", "v"}})
	if got := o.About([]string{"EVAL", "x", "v"}); got != "x" {
		t.Errorf("the value is about %q", got)
	}
	o.Sends(sim.Author{Thread: "a/1"}, []string{"EVAL", "y", "v"}, false, nil)
	if got := o.About([]string{"EVAL", "y", "v"}); got != "x" {
		t.Errorf("a request outside of calls made the value one about %q", got)
	}
	o.Sends(sim.Author{Thread: "a/1", Op: 1, Lock: "y"}, []string{"EVAL", "y", "y:queue", "v"}, false, nil)
	if got := o.About([]string{"EVAL", "y", "v"}); got != "" {
		t.Errorf("the value of two locks is about %q", got)
	}
	for _, lock := range []string{"x", "y"} {
		if got := o.Beside("a/1", []string{"EVAL", lock, lock + ":queue", "v"}); got != lock {
			t.Errorf("a request with the words of %s is about %q", lock, got)
		}
	}
}

// A request of an unknown thread renews a lock if one of the same form, with any value of a hold, prolonged a hold.
func TestARequestOfTheFormOfARenewal(t *testing.T) {
	o := sim.NewOwners()
	for lock, value := range map[string]string{"x": "v1", "y": "v2"} {
		o.Took(lock, &model.LockState{Owner: value, Count: 1}, &sim.Writer{Process: "a", Thread: "a/1", Words: []string{"SET", lock, value}})
	}
	o.Prolonged("x", []string{"EVAL", "renew", "x", "v1"})
	for want, words := range map[string][]string{"x": {"EVAL", "renew", "x", "v2"}, "": {"EVAL", "renew", "y", "v2"}} {
		if got := o.Renews(words); got != want {
			t.Errorf("%v renews %q, want %q", words, got, want)
		}
	}
	o.Prolonged("y", []string{"EVAL", "renew", "x", "v2"})
	if got := o.Renews([]string{"EVAL", "renew", "x", "v1"}); got != "" {
		t.Errorf("a form that prolongs holds of two locks renews %q", got)
	}
}

func holderOf(s *model.LockState) string {
	if s == nil {
		return ""
	}
	return s.Owner
}

// A holder that leaves a queue brings the next ticket forward, and does not write it over its own, if another process sent it.
func TestATicketOfAnUnknownThreadComesForward(t *testing.T) {
	for process, want := range map[string]string{"b": "v", "a": "a/1"} {
		o := sim.NewOwners()
		before := o.Name("x", &model.LockState{Owner: "u"}, &sim.Writer{Process: "a", Thread: "a/1", Words: []string{"RPUSH", "x", "u"}})
		o.Name("x", &model.LockState{Owner: "u", Queue: []string{"v"}}, &sim.Writer{Process: process, Words: []string{"RPUSH", "x", "v"}})
		after, by := &model.LockState{Owner: "v"}, &sim.Writer{Process: "a", Thread: "a/1", Words: []string{"LREM", "x", "u"}}
		o.Follows("x", before, after, by)
		if got := o.Name("x", after, by).Owner; got != want {
			t.Errorf("%s sent the ticket: the holder is %s, want %s", process, got, want)
		}
	}
}

// A holder that writes a word over its value keeps its hold, also if another holder has written the same word before, and if the
// holder writes it in an unlock. A word that somebody else writes begins another hold, and so does a value of another thread.
func TestAHolderMayWriteAnotherValueOverItsOwn(t *testing.T) {
	for name, c := range map[string]struct {
		writes []string // each after a thread; an unlock begins with a dash
		stream bool     // the servers know no words
		want   []string
	}{
		"a word of one holder":          {[]string{"a/1", "v1", "a/1", "renewed"}, true, []string{"a/1", "a/1"}},
		"a word of two holders":         {[]string{"a/1", "v1", "a/1", "renewed", "a/1", "", "b/1", "v2", "b/1", "renewed"}, true, []string{"a/1", "a/1", "", "b/1", "b/1"}},
		"the words are known":           {[]string{"a/1", "v1", "a/1", "renewed", "a/1", "", "b/1", "v2", "b/1", "renewed"}, false, []string{"a/1", "a/1", "", "b/1", "b/1"}},
		"somebody else renews":          {[]string{"a/1", "v1", "a/1", "renewed", "a/1", "", "b/1", "v2", "a/1", "renewed"}, true, []string{"a/1", "a/1", "", "b/1", "a/1"}},
		"the holder takes its value":    {[]string{"a/1", "v1", "a/1", "v3", "a/1", "v1"}, true, []string{"a/1", "a/1", "a/1"}},
		"it is handed to a known value": {[]string{"a/1", "v1", "a/1", "", "b/1", "v2", "b/1", "v1"}, true, []string{"a/1", "", "b/1", "a/1"}},
		"an unlock hands it over":       {[]string{"a/1", "v1", "-a/1", "v2"}, true, []string{"a/1", "v2"}},
		"an unlock after a renewal":     {[]string{"a/1", "v1", "a/1", "renewed", "a/1", "", "b/1", "v2", "-b/1", "renewed"}, true, []string{"a/1", "a/1", "", "b/1", "b/1"}},
	} {
		o, was, got := sim.NewOwners(), (*model.LockState)(nil), []string(nil)
		for i := 0; i < len(c.writes); i += 2 {
			thread, unlocks := strings.CutPrefix(c.writes[i], "-")
			value := c.writes[i+1]
			author := sim.Author{Thread: thread, Lock: "x"}
			if unlocks {
				author.Op, author.Action = i+1, model.ActUnlock
			}
			var words []string
			if !c.stream {
				words = []string{"SET", "x", value}
				o.Sends(author, words, false, func(string) string { return holderOf(was) })
			}
			by := author.Writer(model.ProcessOf(thread), sim.Request{Words: words}, "")
			s := &model.LockState{Owner: value}
			o.Follows("x", was, s, by)
			was = o.Name("x", s, by)
			got = append(got, was.Owner)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: the holders are %q, want %q", name, got, c.want)
		}
	}
}

// A word that a holder of one lock wrote over its value is not about that lock if the thread that sends it took another one with a
// request like that. A value of a hold is.
func TestAWordOverTheValuesOfTwoLocks(t *testing.T) {
	for _, line := range []bool{false, true} { // a protocol may have its words in one line
		o := sim.NewOwners()
		held := map[string]*model.LockState{}
		write := func(thread, lock string, words ...string) sim.Author {
			if line {
				words = []string{strings.Join(words[:3], " "), words[3]}
			}
			by := o.Sends(sim.Author{Thread: thread}, words, false, func(lock string) string { return holderOf(held[lock]) })
			w := by.Writer(model.ProcessOf(thread), sim.Request{Words: words}, "")
			s := &model.LockState{Owner: words[len(words)-1]}
			o.Follows(lock, held[lock], s, w)
			held[lock] = o.Name(lock, s, w)
			return by
		}
		write("a/1", "x", "add", "x", "8", "v1")
		write("a/2", "y", "add", "y", "8", "v2")
		write("a/1", "x", "cas", "x", "8", "renewed")
		if by := write("a/2", "y", "cas", "y", "8", "renewed"); by.Thread != "a/2" || by.Lock != "y" || holderOf(held["y"]) != "a/2" {
			t.Errorf("the renewal is of %s and about %s, which %s holds", by.Thread, by.Lock, holderOf(held["y"]))
		}
		if by := o.Sends(sim.Author{Thread: "a/2"}, []string{"cas", "y", "8", "v1"}, false, nil); by.Thread != "a/1" || by.Lock != "x" {
			t.Errorf("a request with the value of a hold is of %s and about %s", by.Thread, by.Lock)
		}
	}
}
