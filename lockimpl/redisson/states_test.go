package redisson

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// The tests run every script from these states with these arguments: on miniredis and on Redis
// (script_test.go), against the kept answers (golden_test.go), and with each of its mutants
// (mutation_test.go).

// The owners, and the instant at which all scripts run.
const (
	me, other, third = "c1:1", "c1:2", "c2:1"
	// It is no power of ten: miniredis writes a score of 100000000 as 1e+8, which the tonumber of its Lua
	// does not read. Redis writes 100000000.
	caseNow = 946_684_800_000
	// No two of these numbers are equal, and none equals a number of a state.
	caseLease = 1_000_000
	caseWait  = 300_000
	caseLatch = 4_000_000
)

// The keys of a case, and their names in the kept answers.
var (
	caseQueue, caseDeadlines, caseLatchKey, caseToken = QueueName("x"), DeadlinesName("x"), LatchName("x", "r"), TokenName("x")

	caseKeys = []struct{ key, called string }{
		{"x", "lock"}, {"y", "lock y"}, {"z", "lock z"}, {caseQueue, "queue"}, {caseDeadlines, "deadlines"},
		{caseLatchKey, "latch"}, {caseToken, "token"},
	}
)

// A state is made by commands.
type state struct {
	what string
	with [][]any
}

// scriptCase is a state and the call of a script from it.
type scriptCase struct {
	what string
	with [][]any
	keys []string
	args []any
}

func lockOf(owner string, count int) [][]any {
	return [][]any{{"HSET", "x", owner, count}, {"PEXPIRE", "x", 2_000_000}}
}

func waiting(owner string, deadline int) [][]any {
	return [][]any{{"RPUSH", caseQueue, owner}, {"ZADD", caseDeadlines, deadline, owner}}
}

var holderStates = []state{
	{"free", nil},
	{"held by me", lockOf(me, 1)},
	{"held by me twice", lockOf(me, 2)},
	{"held by another", lockOf(other, 1)},
	{"held by another without expiry", [][]any{{"HSET", "x", other, 1}}},
	{"held by me and, somehow, another", slices.Concat(lockOf(me, 1), lockOf(other, 1))},
	{"held by me, y by another", slices.Concat(lockOf(me, 1), [][]any{{"HSET", "y", other, 1}})},
	{"not a hash", [][]any{{"SET", "x", "y"}}},
}

var queueStates = []state{
	{"no queue", nil},
	{"me at the head", slices.Concat(waiting(me, caseNow+500_000), waiting(third, caseNow+900_000))},
	{"me at the head of four", slices.Concat(waiting(me, caseNow+500_000), waiting(third, caseNow+900_000), waiting(other, caseNow+1_300_000), waiting("c3:1", caseNow+1_700_000))},
	{"me at the head, the next with an earlier deadline", slices.Concat(waiting(me, caseNow+500_000), waiting(third, caseNow+400_000))},
	{"another at the head", slices.Concat(waiting(third, caseNow+500_000), waiting(me, caseNow+900_000), waiting(other, caseNow+1_300_000))},
	{"me last of three", slices.Concat(waiting(third, caseNow+500_000), waiting(other, caseNow+900_000), waiting(me, caseNow+1_300_000))},
	{"another queues, I do not", waiting(third, caseNow+500_000)},
	{"two others queue, I do not", slices.Concat(waiting(third, caseNow+500_000), waiting(other, caseNow+900_000))},
	{"three others queue, I do not", slices.Concat(waiting(third, caseNow+500_000), waiting(other, caseNow+900_000), waiting("c3:1", caseNow+1_300_000))},
	{"a stale head, then me", slices.Concat(waiting(third, caseNow-10_000), waiting(me, caseNow+500_000))},
	{"a head whose deadline is now", slices.Concat(waiting(third, caseNow), waiting(other, caseNow+500_000))},
	{"a head whose deadline is next", slices.Concat(waiting(third, caseNow+1), waiting(other, caseNow+500_000))},
	{"all stale", slices.Concat(waiting(third, caseNow-20_000), waiting(me, caseNow-10_000))},
	{"a stale one behind one who is not", slices.Concat(waiting(third, caseNow+500_000), waiting(other, caseNow-10_000))},
	{"a head without deadline", [][]any{{"RPUSH", caseQueue, third, me}, {"ZADD", caseDeadlines, caseNow + 500_000, me}}},
	{"a last waiter without deadline", slices.Concat(waiting(other, caseNow+500_000), [][]any{{"RPUSH", caseQueue, third}})},
	{"only a waiter without deadline", [][]any{{"RPUSH", caseQueue, third}}},
	{"me in front of one without deadline", [][]any{{"RPUSH", caseQueue, me, third}, {"ZADD", caseDeadlines, caseNow + 500_000, me}}},
	{"me without deadline, last", slices.Concat(waiting(third, caseNow+500_000), [][]any{{"RPUSH", caseQueue, me}})},
	{"me twice", slices.Concat(waiting(third, caseNow+500_000), waiting(me, caseNow+900_000), [][]any{{"RPUSH", caseQueue, me}})},
	{"a deadline of one who does not queue", [][]any{{"ZADD", caseDeadlines, caseNow + 500_000, third}}},
}

var (
	noState     = []state{{"", nil}}
	latchStates = []state{
		{"", nil},
		{"answered 1 before", [][]any{{"SET", caseLatchKey, 1, "PX", 3_000_000}}},
		{"answered 0 before", [][]any{{"SET", caseLatchKey, 0, "PX", 3_000_000}}},
	}
	tokenStates = []state{
		{"", nil},
		{"token 41 drawn", [][]any{{"SET", caseToken, 41}}},
	}
)

// caseCalls gives KEYS and ARGV of each script, by the name of its file.
var caseCalls = func() map[string]scriptCase {
	hash := []string{"x"}
	plain := []string{"x", ChannelName("x")}
	fair := []string{"x", caseQueue, caseDeadlines}
	channel := append(slices.Clone(fair), ChannelName("x"))
	call := func(keys []string, args ...any) scriptCase { return scriptCase{keys: keys, args: args} }
	return map[string]scriptCase{
		"acquire_hset":    call(hash, caseLease, me),
		"acquire_hincrby": call(hash, caseLease, me),
		"acquire_merged":  call(hash, caseLease, me),
		"acquire_fenced":  call([]string{"x", caseToken}, caseLease, me),
		"acquire_token":   call([]string{"x", caseToken}, caseLease, me),

		"unlock_lenient": call(plain, 0, caseLease, me),
		"unlock_owner":   call(plain, 0, caseLease, me),
		"unlock_latch":   call(append(slices.Clone(plain), caseLatchKey), 0, caseLease, me, "PUBLISH", caseLatch),

		"force_unlock":         call(plain, 0),
		"force_unlock_command": call(plain, 0, "PUBLISH"),

		"renew_owner": call(hash, caseLease, me),
		"renew_batch": call([]string{"x", "y", "z"}, caseLease, me, other, third),

		"fair_acquire_first":       call(fair, caseLease, me, caseNow+caseWait, caseNow),
		"fair_acquire_deadline":    call(fair, caseLease, me, caseWait, caseNow),
		"fair_acquire_lock_ttl":    call(fair, caseLease, me, caseWait, caseNow),
		"fair_acquire_scored_last": call(fair, caseLease, me, caseWait, caseNow),

		"fair_try_acquire":      call(fair, caseLease, me, caseNow),
		"fair_try_acquire_wait": call(fair, caseLease, me, caseNow, caseWait),

		"fair_leave":        call(fair[1:], me),
		"fair_leave_head":   call(fair[1:], me, caseWait),
		"fair_leave_behind": call(fair[1:], me, caseWait),

		"fair_unlock":       call(channel, 0, caseLease, me, caseNow),
		"fair_unlock_latch": call(append(slices.Clone(channel), caseLatchKey), 0, caseLease, me, caseNow, "PUBLISH", caseLatch),

		"fair_force_unlock":         call(channel, 0, caseNow),
		"fair_force_unlock_command": call(channel, 0, caseNow, "PUBLISH"),
	}
}()

// casesOf returns every case of a script: all states of the keys that it takes.
func casesOf(t *testing.T, s Script) (cases []scriptCase) {
	t.Helper()
	call, ok := caseCalls[s.Name]
	if !ok {
		t.Fatalf("%s has no arguments in the table of states", s.Name)
	}
	holders, queues, latches, tokens := holderStates, noState, noState, noState
	if s.Kind == KindLeave {
		holders = noState
	}
	if strings.HasPrefix(s.Name, "fair_") {
		queues = queueStates
	}
	if s.takes("unlock latch of this request") {
		latches = latchStates
	}
	if s.takes("token counter") {
		tokens = tokenStates
	}
	for _, h := range holders {
		for _, q := range queues {
			for _, l := range latches {
				for _, k := range tokens {
					c := call
					c.what = strings.Join(slices.DeleteFunc([]string{h.what, q.what, l.what, k.what}, func(s string) bool { return s == "" }), ", ")
					c.with = slices.Concat(h.with, q.with, l.with, k.with)
					cases = append(cases, c)
				}
			}
		}
	}
	if s.Kind == KindAcquire { // PEXPIRE 0 deletes the lock that was just taken
		c := call
		c.what, c.args = "free, with a lease of 0", append([]any{0}, c.args[1:]...)
		cases = append(cases, c)
	}
	return cases
}

// variant names a script with its parts, since one file may make two scripts.
func variant(s Script) string {
	names := []string{s.Name}
	for _, p := range allParts {
		if strings.Contains(s.Text, scriptText(p.file)) {
			names = append(names, strings.TrimPrefix(p.file, "parts/"))
		}
	}
	return strings.Join(names, " + ")
}

// stage is a server that plays cases.
type stage struct {
	rdb   *redis.Client
	heard <-chan *redis.Message
}

func newStage(t *testing.T, rdb *redis.Client) *stage {
	t.Helper()
	ps := rdb.PSubscribe(background, "*")
	t.Cleanup(func() { _ = ps.Close() })
	if _, err := ps.Receive(background); err != nil {
		t.Fatal(err)
	}
	return &stage{rdb, ps.Channel(redis.WithChannelHealthCheckInterval(0))}
}

// miniStage is a miniredis whose clock stands still.
func miniStage(t *testing.T) *stage {
	t.Helper()
	m := miniredis.RunT(t)
	rdb := redis.NewClient(&redis.Options{
		Addr: m.Addr(), Protocol: 2, MaxRetries: -1, DisableIdentity: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return newStage(t, rdb)
}

// outcome is the effect of a script.
type outcome struct {
	reply     any
	published []string
	// before and after have the content of each of caseKeys, nil for none.
	before, after []*content
	others        int64 // keys that no script should make
}

// content is the content of a key.
type content struct {
	ttl int64
	val any // string, or a list, or pairs of a hash or a sorted set
}

// pair is a field of a hash or a member of a sorted set.
type pair struct {
	name   string
	number any // string or int64
}

const endOfCase = "end of case"

// play runs a script's text from the case's state.
func (s *stage) play(t *testing.T, text string, c scriptCase) (out outcome) {
	t.Helper()
	pipe := s.rdb.Pipeline()
	pipe.FlushAll(background)
	for _, words := range c.with {
		pipe.Do(background, words...)
	}
	before := ask(pipe)
	run := pipe.Eval(background, text, c.keys, c.args...)
	pipe.Publish(background, endOfCase, "")
	after := ask(pipe)
	size := pipe.DBSize(background)
	_, _ = pipe.Exec(background) // the errors of single commands are looked at below
	switch val, err := run.Result(); {
	case errors.Is(err, redis.Nil):
	case err != nil && strings.Contains(err.Error(), "NON_REENTRANT_REACQUIRE"):
		out.reply = "error NON_REENTRANT_REACQUIRE"
	case err != nil:
		out.reply = "error" // the text differs from server to server
	default:
		out.reply = val
	}
	for msg := range s.heard {
		if msg.Channel == endOfCase {
			break
		}
		out.published = append(out.published, fmt.Sprintf("%s to %s", msg.Payload, strings.Replace(msg.Channel, ChannelName("x"), "channel", 1)))
	}
	out.before, out.after = before(), after()
	out.others = size.Val()
	for _, c := range out.after {
		if c != nil {
			out.others--
		}
	}
	if size.Err() != nil {
		t.Fatalf("%s: %v", c.what, size.Err())
	}
	return out
}

// ask adds commands to a pipeline that read the content of each of caseKeys.
func ask(pipe redis.Pipeliner) func() []*content {
	var reads []func() *content
	for _, k := range caseKeys {
		ttl := pipe.Do(background, "PTTL", k.key)
		read := func(val func() any) {
			reads = append(reads, func() *content {
				if n, _ := ttl.Int64(); n != -2 {
					return &content{n, val()}
				}
				return nil
			})
		}
		switch k.key {
		case caseQueue:
			list := pipe.LRange(background, k.key, 0, -1)
			read(func() any { return list.Val() })
		case caseDeadlines:
			set := pipe.ZRangeWithScores(background, k.key, 0, -1)
			read(func() any {
				var pairs []pair
				for _, z := range set.Val() {
					pairs = append(pairs, pair{fmt.Sprint(z.Member), int64(z.Score)})
				}
				return pairs
			})
		default: // a hash, or text
			fields, text := pipe.HGetAll(background, k.key), pipe.Get(background, k.key)
			read(func() any {
				if fields.Err() != nil || len(fields.Val()) == 0 {
					return text.Val()
				}
				var pairs []pair
				for name, n := range fields.Val() {
					pairs = append(pairs, pair{name, n})
				}
				slices.SortFunc(pairs, func(a, b pair) int { return strings.Compare(a.name, b.name) })
				return pairs
			})
		}
	}
	return func() (all []*content) {
		for _, r := range reads {
			all = append(all, r())
		}
		return all
	}
}

// text writes an outcome in one line: the reply, the messages, and the content of each key that
// changed.
func (o outcome) text(number func(any) string) string {
	reply := "nil"
	switch v := o.reply.(type) {
	case nil:
	case []any:
		var parts []string
		for _, n := range v {
			parts = append(parts, number(n))
		}
		reply = "{" + strings.Join(parts, " ") + "}"
	default:
		reply = number(v)
	}
	parts := []string{reply}
	for _, p := range o.published {
		parts = append(parts, "published "+p)
	}
	for i, k := range caseKeys {
		if was, is := o.before[i].text(number), o.after[i].text(number); was != is {
			parts = append(parts, k.called+" "+is)
		}
	}
	if o.others != 0 {
		parts = append(parts, fmt.Sprintf("%d keys that nobody knows", o.others))
	}
	return strings.Join(parts, "; ")
}

func (c *content) text(number func(any) string) string {
	if c == nil {
		return "gone"
	}
	var s string
	switch v := c.val.(type) {
	case []pair:
		var parts []string
		for _, p := range v {
			parts = append(parts, p.name+"="+number(p.number))
		}
		s = "{" + strings.Join(parts, " ") + "}"
	case []string:
		s = "[" + strings.Join(v, " ") + "]"
	default:
		s = fmt.Sprintf("%q", v)
	}
	if c.ttl != -1 {
		s += " for " + number(c.ttl)
	}
	return s
}

// exact prints a number; an instant counts from caseNow.
func exact(v any) string {
	if n, ok := v.(int64); ok {
		switch d := n - caseNow; {
		case d == 0:
			return "now"
		case -caseNow/2 < d:
			return fmt.Sprintf("now%+d", d)
		default:
			return strconv.FormatInt(n, 10)
		}
	}
	return fmt.Sprint(v)
}
