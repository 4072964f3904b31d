package redis

import (
	"testing"
	"testing/synctest"
	"time"

	"lockstep/sim"
)

// After a command that is Still, the world does not wait for the server. If a goroutine of
// miniredis then still had a message, the world would miss it.
func TestACommandIsStillUnlessItMayWakeASubscriber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Config{})
		s.Start(sim.Setup{Start: time.Now()})
		defer s.Stop()
		s.Open(1)
		s.Open(2)
		for _, c := range []struct {
			conn  sim.ConnID
			still bool
			words []string
		}{
			{1, false, []string{"SUBSCRIBE", "ch"}},
			{2, true, []string{"SET", "k", "v"}},
			{2, true, []string{"GET", "k"}},
			{2, true, []string{"DEL", "k"}},
			{2, true, []string{"EVAL", "return redis.call('set', KEYS[1], 'v')", "1", "k"}},
			{2, false, []string{"PUBLISH", "ch", "text"}},
			{2, false, []string{"EVAL", "return redis.call('publish', 'ch', 'text')", "0"}},
			{2, false, []string{"SCRIPT", "LOAD", "return redis.call('publish', 'ch', 'text')"}},
			{2, false, []string{"EVALSHA", scriptOf("return redis.call('publish', 'ch', 'text')").sha, "0"}},
			{2, false, []string{"MULTI"}},
			{2, true, []string{"EVAL", "return redis.call('publish', 'ch', 'text')", "0"}}, // only queued
			{2, false, []string{"EXEC"}},
			{2, true, []string{"GET", "k"}},
			{1, false, []string{"UNSUBSCRIBE", "ch"}},
		} {
			r, out := RequestOf(c.words), &sim.Effects{}
			s.Handle(0, c.conn, &r, out)
			equal(t, c.words[0]+": still", out.Still, c.still)
			before := len(s.Pushed(nil))
			synctest.Wait()
			if late := len(s.Pushed(nil)); c.still && late > 0 {
				t.Errorf("%q: %d messages when it was done, and %d later", c.words, before, late)
			}
		}
		s.Close(0, 1, &sim.Effects{})
		s.Close(0, 2, &sim.Effects{})
	})
}
