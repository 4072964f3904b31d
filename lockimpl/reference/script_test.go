package reference

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"lockstep/internal/longtest"
	"lockstep/lockimpl/internal/luatest"
)

// The owners in the states from which the test runs scripts. The caller's acquire has the fifth
// number; it asks with the sixth and seventh, and leaves with the eighth.
const (
	me, other, third  = "c:1", "c:2", "d:1"
	call, asked, left = 5, 7, 8
)

// scriptState is a state that commands make; now is the server's millisecond.
type scriptState struct {
	what string
	with func(now int64) [][]any
}

// scriptCall is KEYS and ARGV of a script.
type scriptCall struct {
	what string
	keys []string
	args func(now int64) []any
}

func always(with ...[]any) func(int64) [][]any { return func(int64) [][]any { return with } }

func heldBy(owner string, count, request int) func(int64) [][]any {
	return always([]any{"HSET", "x", "owner", owner, "count", count, "token", 41, "request", request}, []any{"PEXPIRE", "x", 2_000_000})
}

// queued makes a queue of waiters, whose deadlines count from now.
func queued(waiters ...any) func(int64) [][]any {
	return func(now int64) (all [][]any) {
		for i := 0; i < len(waiters); i += 2 {
			all = append(all, []any{"RPUSH", QueueName("x"), waiters[i]})
			if d := waiters[i+1].(int); d != 0 {
				all = append(all, []any{"ZADD", DeadlinesName("x"), now + int64(d), waiters[i]})
			}
		}
		return all
	}
}

func remembered(answer string) scriptState {
	return scriptState{"remembers " + answer, always([]any{"SET", MemoryName("x", me), answer, "PX", 500_000})}
}

func token(n string) scriptState {
	return scriptState{"token " + n, always([]any{"SET", TokenName("x"), n})}
}

var (
	free   = scriptState{"free", always()}
	states = map[string][]scriptState{
		"hold": {free, {"held by me", heldBy(me, 1, call)}, {"held by me twice, last by another call", heldBy(me, 2, 4)},
			{"held by me by another call", heldBy(me, 1, 4)}, {"held by another", heldBy(other, 1, call)}},
		"memory": {free, remembered("7:granted"), remembered("7:busy"), remembered("6:granted"), remembered("6:busy"), remembered("5:granted"), remembered("5:busy"), remembered("8:left"), remembered("8:busy"), remembered("8:granted"), remembered("9:granted")},
		"token":  {free, token("41"), token("5000000000000000")},
		"queue": {free, {"me, then another", queued(me, 400_000, third, 800_000)}, {"another, then me", queued(third, 400_000, me, 800_000)},
			{"another", queued(third, 400_000)}, {"two others", queued(third, 400_000, other, 800_000)},
			{"a dead one, then me", queued(third, -20_000, me, 800_000)}, {"one, a dead one, and me", queued(third, 400_000, other, -20_000, me, 800_000)},
			{"a dead one", queued(third, -20_000)}, {"me without deadline, then another", queued(me, 0, third, 800_000)},
			{"another without deadline, then me", queued(third, 0, me, 800_000)}, {"me, dead", queued(me, -20_000, third, 400_000)},
			{"me twice, then another", queued(me, 400_000, me, 400_000, third, 800_000)},
			{"another, then me twice, then a dead one twice", queued(other, 400_000, me, 800_000, me, 800_000, third, -20_000, third, -20_000)},
			{"another without deadline, then me and others", queued(third, 0, me, 400_000, other, 800_000)},
			{"another, whose time is over now", func(now int64) [][]any {
				return append(queued(third, 0)(now), []any{"ZADD", DeadlinesName("x"), now, third})
			}},
			{"me, and a queue that ends later", func(now int64) [][]any {
				return append(queued(third, 400_000, me, 600_000)(now), []any{"PEXPIRE", QueueName("x"), 900_000}, []any{"PEXPIRE", DeadlinesName("x"), 900_000})
			}}},
	}
)

// callsOf returns the calls of a script.
func callsOf(s script, fair bool) (calls []scriptCall) {
	thirdKey := ChannelName("x")
	if s.name == "acquire" {
		thirdKey = TokenName("x")
	}
	keys := []string{"x", MemoryName("x", me), thirdKey}
	if fair {
		keys = append(keys, QueueName("x"), DeadlinesName("x"))
	}
	if s.name == "force_unlock" || fair && s.name == "leave" {
		keys = append(keys, TokenName("x"))
	}
	add := func(what string, number int, until int64, more ...any) {
		calls = append(calls, scriptCall{what, keys, func(now int64) []any {
			args := []any{me, number, now + until, 3_000_000}
			for _, a := range more {
				if end, ok := a.(time.Duration); ok {
					a = now + end.Milliseconds()
				}
				args = append(args, a)
			}
			return args
		}})
	}
	switch s.name {
	case "acquire":
		for _, lease := range []int{1_000_000, 2_500_000} {
			add(fmt.Sprintf("lease %d", lease), asked, 100_000, lease, 300_000, call)
			add(fmt.Sprintf("lease %d, at once", lease), asked, 100_000, lease, 0, call)
		}
		add("a place of a millisecond", asked, 100_000, 1_000_000, 1, call)
		add("late", asked, -50_000, 1_000_000, 300_000, call)
	case "unlock":
		add("the last level", asked, 100_000, 0)
		add("others want it shorter", asked, 100_000, 700*time.Second)
		add("others want it longer", asked, 100_000, 9000*time.Second)
		add("others wanted it until now", asked, 100_000, -50*time.Second)
		add("late", asked, -50_000, 0)
	case "force_unlock":
		add("", asked, 100_000)
		add("late", asked, -50_000)
	case "leave":
		if fair {
			add("to take it at last", left, 100_000, call, 1_000_000)
			add("to have it for a millisecond at last", left, 100_000, call, 1)
		}
		add("", left, 100_000, call, 0)
		add("late", left, -50_000, call, 0)
	case "renew":
		for _, owner := range []string{me, other} {
			for _, n := range []int{41, 40} {
				for _, lease := range []int{1_000_000, 3_000_000} {
					calls = append(calls, scriptCall{fmt.Sprintf("as %s with token %d for %d", owner, n, lease), []string{"x"}, func(int64) []any { return []any{owner, n, lease} }})
				}
			}
		}
	}
	return calls
}

// referenceCase is a call from a state.
type referenceCase struct {
	what string
	with []scriptState
	call scriptCall
}

func casesOf(s script, fair bool) (cases []referenceCase) {
	queues, tokens, memories := states["queue"], []scriptState{free}, states["memory"]
	if !fair {
		queues = queues[:1]
	}
	if s.name == "acquire" || s.name == "force_unlock" || fair && s.name == "leave" {
		tokens = states["token"]
	}
	if s.name == "force_unlock" {
		memories = append(slices.Clip(memories), remembered("7:released:41"), remembered("7:not_held:0"))
	}
	if s.name == "renew" {
		queues, memories = queues[:1], memories[:1]
	}
	for _, call := range callsOf(s, fair) {
		for _, h := range states["hold"] {
			for _, m := range memories {
				for _, tk := range tokens {
					for _, q := range queues {
						if tk.what != free.what && h.what != free.what {
							continue // a token is drawn for a new hold only
						}
						cases = append(cases, referenceCase{strings.Join([]string{s.name, call.what, h.what, m.what, tk.what, q.what}, ", "), []scriptState{h, m, tk, q}, call})
					}
				}
			}
		}
	}
	return cases
}

// stage is a server that plays cases.
type stage struct {
	rdb   *redis.Client
	heard <-chan *redis.Message
	mini  bool // it is a miniredis, whose clock stands still
	exact bool // print numbers without rounding
}

func newStage(t *testing.T, rdb *redis.Client, mini bool) *stage {
	t.Helper()
	ps := rdb.PSubscribe(background, "*")
	t.Cleanup(func() { _ = ps.Close() })
	if _, err := ps.Receive(background); err != nil {
		t.Fatal(err)
	}
	return &stage{rdb: rdb, heard: ps.Channel(redis.WithChannelHealthCheckInterval(0)), mini: mini}
}

func miniStage(t *testing.T) *stage {
	t.Helper()
	m := miniredis.RunT(t)
	m.SetTime(miniNow)
	rdb := redis.NewClient(&redis.Options{
		Addr: m.Addr(), Protocol: 2, MaxRetries: -1, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return newStage(t, rdb, true)
}

// miniNow is the time on a miniredis.
var miniNow = time.Unix(946_684_800, 999_456_000)

const endOfCase = "end of case"

// play runs a script's text from a case's state, and returns one line with its answer, its messages
// and the keys that it left.
func (s *stage) play(t *testing.T, text string, c referenceCase) string {
	t.Helper()
	now := miniNow.UnixMilli()
	if !s.mini {
		at, err := s.rdb.Time(background).Result()
		if err != nil {
			t.Fatal(err)
		}
		now = at.UnixMilli()
	}
	pipe := s.rdb.Pipeline()
	pipe.FlushAll(background)
	for _, st := range c.with {
		for _, words := range st.with(now) {
			pipe.Do(background, words...)
		}
	}
	run := pipe.Eval(background, text, c.call.keys, c.call.args(now)...)
	pipe.Publish(background, endOfCase, "")
	var left []func() string
	coarse := coarse
	if s.exact {
		coarse = func(n, _ int64) string { return strconv.FormatInt(n, 10) }
	}
	tell := func(what string, ttl *redis.Cmd, val func() string) {
		left = append(left, func() string {
			if n, _ := ttl.Int64(); n != -2 {
				return what + " " + val() + " for " + coarse(n, now)
			}
			return ""
		})
	}
	words := func(v any) string {
		parts := strings.Split(fmt.Sprint(v), ":") // the value of a memory key has numbers, too
		for i, part := range parts {
			if n, err := strconv.ParseInt(part, 10, 64); err == nil {
				parts[i] = coarse(n, now)
			}
		}
		return strings.Join(parts, ":")
	}
	for _, key := range []string{"x", MemoryName("x", me), TokenName("x"), QueueName("x"), DeadlinesName("x")} {
		ttl := pipe.Do(background, "PTTL", key)
		switch key {
		case "x":
			fields := pipe.HMGet(background, key, "owner", "count", "token", "request")
			tell("hold", ttl, func() string {
				var all []string
				for _, v := range fields.Val() {
					all = append(all, words(v))
				}
				return strings.Join(all, " ")
			})
		case QueueName("x"):
			list := pipe.LRange(background, key, 0, -1)
			tell("queue", ttl, func() string { return fmt.Sprint(list.Val()) })
		case DeadlinesName("x"):
			set := pipe.ZRangeWithScores(background, key, 0, -1)
			tell("deadlines", ttl, func() string {
				var all []string
				for _, z := range set.Val() {
					all = append(all, fmt.Sprintf("%v=%s", z.Member, coarse(int64(z.Score), now)))
				}
				return fmt.Sprint(all)
			})
		default:
			val := pipe.Get(background, key)
			tell(key, ttl, func() string { return words(val.Val()) })
		}
	}
	size := pipe.DBSize(background)
	_, _ = pipe.Exec(background) // the errors of single commands are looked at below
	if size.Err() != nil {
		t.Fatalf("%s: %v", c.what, size.Err())
	}
	var out []string
	switch val, err := run.Result(); {
	case errors.Is(err, redis.Nil):
		out = append(out, "nil")
	case err != nil:
		out = append(out, "error") // the text differs from server to server
	default:
		list, ok := val.([]any)
		if !ok {
			list = []any{val}
		}
		for _, v := range list {
			out = append(out, words(v))
		}
	}
	for msg := range s.heard {
		if msg.Channel == endOfCase {
			break
		}
		out = append(out, fmt.Sprintf("published %q to %s", msg.Payload, msg.Channel))
	}
	for _, l := range left {
		if text := l(); text != "" {
			out = append(out, text)
		}
	}
	return strings.Join(append(out, fmt.Sprint(size.Val(), " keys")), "; ")
}

// coarse prints an instant in ms as its distance from now, rounds large numbers to ten thousand,
// and does not print instants in µs, so that a slow machine prints the same.
func coarse(n, now int64) string {
	switch {
	case n > now/2 && n < 2*now:
		n -= now
		return fmt.Sprintf("now%+.0fk", math.Round(float64(n)/10_000)*10)
	case n > now*500 && n < now*2000:
		return "now in us"
	case n > 10_000:
		return fmt.Sprintf("%.0fk", math.Round(float64(n)/10_000)*10)
	}
	return strconv.FormatInt(n, 10)
}

// eachScript visits the scripts of both locks, and each script that they share once.
func eachScript(visit func(s script, fair bool)) {
	seen := map[string]bool{}
	for _, of := range []*scripts{plainScripts, fairScripts} {
		for _, s := range []script{of.acquire, of.unlock, of.forceUnlock, of.leave, of.renew} {
			if !seen[s.text] {
				seen[s.text] = true
				visit(s, of == fairScripts)
			}
		}
	}
}

// From every state, every script has the same effect on a real Redis as on miniredis.
func TestScriptsDoOnRedisWhatTheyDoOnMiniredis(t *testing.T) {
	real, mini := newStage(t, luatest.StartServer(t, "redis-server"), false), miniStage(t)
	cases := 0
	every := 12 / longtest.Size(t, 1, 12)
	eachScript(func(s script, fair bool) {
		for _, c := range casesOf(s, fair) {
			if cases++; cases%every != 0 {
				continue
			}
			got, want := mini.play(t, s.text, c), real.play(t, s.text, c)
			for again := 0; got != want && again < 3; again++ { // a lease of 1 ms may end before the test reads it
				want = real.play(t, s.text, c)
			}
			if got != want {
				t.Errorf("%s:\nminiredis: %s\nreal:      %s", c.what, got, want)
			}
		}
	})
	if cases < 2000 {
		t.Errorf("only %d cases", cases)
	}
	t.Logf("%d cases", cases/every)
}
