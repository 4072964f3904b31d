//go:build interop

package interop

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl/redisson"
)

// statesPerScript is the number of random states in which each script is compared.
const statesPerScript = 2500

// use is a way to make a client send a script: the moves, and the command that runs the script.
type use struct {
	script string
	kind   string
	moves  []move
	keys   int // number of keys of the command, which is the last one with this number
}

// uses names the scripts of a release.
func uses(rel *redisson.Release) []use {
	take := []move{{thread: 1, op: "lock", with: Fields{"lease", 60000}}}
	then := func(m ...move) []move { return append(slices.Clone(take), m...) }
	leave := move{thread: 2, op: "try_lock", with: Fields{"wait", 1, "lease", 1000}}
	var all []use
	for _, kind := range []string{"plain", "fair"} {
		all = append(all,
			use{"acquire", kind, take, keysOf(rel, kind, "lock")},
			use{"unlock", kind, then(move{thread: 1, op: "unlock"}), keysOf(rel, kind, "unlock")},
			use{"force unlock", kind, then(move{thread: 2, op: "force_unlock"}), keysOf(rel, kind, "force_unlock")},
		)
	}
	all = append(all,
		use{"acquire at once", "fair", []move{{thread: 1, op: "try_lock"}}, 3},
		use{"leave", "fair", then(leave), 2},
		use{"renew", "plain", []move{{thread: 1, op: "lock"}, {}}, 1},
	)
	if rel.Fenced != nil {
		all = append(all,
			use{"acquire", "fenced", take, 2},
			use{"acquire with token", "fenced", []move{{thread: 1, op: "lock_and_get_token"}}, 2},
		)
	}
	if rel.NonReentrant != nil {
		all = append(all,
			use{"acquire", "nonreentrant", take, 1},
			use{"acquire", "nonreentrant_fair", take, 3},
			use{"acquire at once", "nonreentrant_fair", []move{{thread: 1, op: "try_lock"}}, 3},
		)
	}
	return all
}

// spoken is a script as it was sent: the hash of its text, and its keys and arguments.
type spoken struct {
	text string
	args []string
}

// listen makes a client send a script and returns it.
func listen(t *testing.T, p player, u use, lock string) (spoken, error) {
	via := p.proxies()[0]
	from := len(via.Sent(0))
	for _, m := range u.moves {
		if m.thread == 0 {
			called := len(via.Sent(0))
			if err := until("a renewal is sent", func() bool { // by 3.4.2 after 10 s
				return slices.ContainsFunc(via.Sent(called), func(s Sent) bool { return evals(u.keys)(s.Words) })
			}); err != nil {
				return spoken{}, err
			}
			continue
		}
		await(t, p.do(m.thread, m.op, append(Fields{"kind", u.kind, "lock", lock}, m.with...)))
	}
	via.Quiet(20*time.Millisecond, time.Second)
	texts := map[string]string{}
	for _, s := range via.Sent(0) {
		switch {
		case s.Is("EVAL"):
			texts[s.Words[1]] = s.Words[1]
		case s.Is("SCRIPT"):
			texts[shaOf(s.Words[2])] = s.Words[2]
		}
	}
	last := spoken{}
	for _, s := range via.Sent(from) {
		if len(s.Words) > 3 && strings.HasPrefix(strings.ToUpper(s.Words[0]), "EVAL") && s.Words[2] == strconv.Itoa(u.keys) {
			last = spoken{texts[s.Words[1]], s.Words[3+u.keys:]}
		}
	}
	if last.text == "" {
		return last, fmt.Errorf("no script with %d keys was sent", u.keys)
	}
	return last, nil
}

// watchdogForScripts is a lockWatchdogTimeout with early renewals.
const watchdogForScripts = 600 * time.Millisecond

// In the same random states on a server, the scripts of the library and of the port give the same
// reply, state and messages.
func TestScriptsInRandomStates(t *testing.T) {
	t.Parallel()
	for _, rel := range redisson.Releases {
		t.Run(rel.Version, func(t *testing.T) {
			t.Parallel()
			lib := StartLibrary(t, rel.Version)
			speakers := func(watchdog time.Duration) []player {
				set := settings{watchdog: watchdog}
				return []player{
					newLibraryPlayer(t, lib, StartProxy(t, StartServer(t).Addr), set, 3),
					newPortPlayer(t, rel, StartProxy(t, StartServer(t).Addr), set),
				}
			}
			calm, lively := speakers(noWatchdog), speakers(watchdogForScripts)
			bench := newBench(t, StartServer(t))
			var counts []string
			for i, u := range uses(rel) {
				name := u.kind + " " + u.script
				var pair [2]spoken
				speak := calm
				if u.script == "renew" {
					speak = lively
				}
				var hearing sync.WaitGroup
				errs := make([]error, 2)
				for side, p := range speak {
					hearing.Go(func() { pair[side], errs[side] = listen(t, p, u, fmt.Sprintf("speak%d", i)) })
				}
				hearing.Wait()
				if err := errors.Join(errs...); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				rng := rand.New(rand.NewPCG(uint64(i), 4711))
				agreed := bench.compare(t, name, rng, u, pair)
				counts = append(counts, fmt.Sprintf("%s %d", name, agreed))
			}
			t.Logf("redisson %s: states in which scripts agree: %s", rel.Version, strings.Join(counts, ", "))
		})
	}
}

// bench runs scripts in states on a server.
type bench struct {
	rdb    *redis.Client
	pubsub *redis.PubSub
	fence  int
	dump   string // SHA
}

const (
	benchLock = "b"
	benchNow  = 1_700_000_000_000
)

var benchOwners = []string{"u1:1", "u1:2", "u2:1", "u3:7"}

// benchDump returns type, content and time to live of every key.
const benchDump = `
local out = {}
local keys = redis.call('keys', '*')
table.sort(keys)
for _, k in ipairs(keys) do
  local t = redis.call('type', k).ok
  local c
  if t == 'hash' then
    c = redis.call('hgetall', k)
    local pairs_ = {}
    for i = 1, #c, 2 do pairs_[#pairs_ + 1] = c[i] .. '=' .. c[i + 1] end
    table.sort(pairs_)
    c = pairs_
  elseif t == 'list' then c = redis.call('lrange', k, 0, -1)
  elseif t == 'zset' then c = redis.call('zrange', k, 0, -1, 'withscores')
  else c = {redis.call('get', k)} end
  out[#out + 1] = k .. ' ' .. t .. ' ' .. table.concat(c, ',') .. ' pttl ' .. redis.call('pttl', k)
end
return table.concat(out, '; ')`

func newBench(t *testing.T, server *Server) *bench {
	b := &bench{rdb: redis.NewClient(&redis.Options{Addr: server.Addr, Protocol: 2, ReadTimeout: time.Minute, MaxRetries: -1})}
	ctx := context.Background()
	var err error
	if b.dump, err = b.rdb.ScriptLoad(ctx, benchDump).Result(); err != nil {
		t.Fatal(err)
	}
	b.pubsub = b.rdb.PSubscribe(ctx, "*")
	channels := []string{redisson.ChannelName(benchLock)}
	for _, o := range benchOwners {
		channels = append(channels, redisson.WaiterChannel(benchLock, o))
	}
	if err := b.pubsub.SSubscribe(ctx, channels...); err != nil {
		t.Fatal(err)
	}
	for range 1 + len(channels) {
		if _, err := b.pubsub.Receive(ctx); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		_ = b.pubsub.Close()
		_ = b.rdb.Close()
	})
	return b
}

// scriptOutcome is the effect of a script.
type scriptOutcome struct{ reply, state, published string }

// scriptCase is one state and the operands of one run in it.
type scriptCase struct {
	setup [][]any
	keys  []string
	args  []string
}

// compare runs both scripts in random states, and counts the states in which they agree. Since time
// passes between the commands of a run, a state in which they differ is tried again, up to 50
// times.
func (b *bench) compare(t *testing.T, name string, rng *rand.Rand, u use, pair [2]spoken) (agreed int) {
	cases := make([]scriptCase, statesPerScript)
	for i := range cases {
		cases[i] = randomCase(rng, u, pair[1])
	}
	open := cases
	var last [2][]scriptOutcome
	for try := 0; try < 50 && len(open) > 0; try++ {
		for side := range pair {
			last[side] = b.run(t, pair[side], open, side == 0)
		}
		var left []scriptCase
		var lib, port []scriptOutcome
		for i := range open {
			if last[0][i] == last[1][i] {
				agreed++
				continue
			}
			left, lib, port = append(left, open[i]), append(lib, last[0][i]), append(port, last[1][i])
		}
		open, last = left, [2][]scriptOutcome{lib, port}
	}
	for i := range min(len(open), 3) {
		t.Errorf("%s differs in state %v, arguments %v:\n  library: %+v\n  port:    %+v", name, open[i].setup, open[i].args, last[0][i], last[1][i])
	}
	if len(open) > 0 {
		t.Errorf("%s differs in %d states of %d", name, len(open), statesPerScript)
	}
	return agreed
}

// run runs a script in each state.
func (b *bench) run(t *testing.T, s spoken, cases []scriptCase, library bool) []scriptOutcome {
	ctx := context.Background()
	sha, err := b.rdb.ScriptLoad(ctx, s.text).Result()
	if err != nil {
		t.Fatal(err)
	}
	out := make([]scriptOutcome, 0, len(cases))
	for part := range slices.Chunk(cases, 100) {
		first := b.fence
		var execs []*redis.Cmd
		_, _ = b.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, c := range part {
				p.Do(ctx, "MULTI")
				p.Do(ctx, "FLUSHALL")
				for _, words := range c.setup {
					p.Do(ctx, words...)
				}
				words := []any{"EVALSHA", sha, len(c.keys)}
				for _, k := range c.keys {
					words = append(words, k)
				}
				for _, a := range c.args {
					words = append(words, a)
				}
				if library && len(s.args) > len(c.args) {
					words = append(words, s.args[len(s.args)-1]) // the error of a non-reentrant lock
				}
				p.Do(ctx, words...)
				p.Do(ctx, "EVALSHA", b.dump, 0)
				execs = append(execs, p.Do(ctx, "EXEC"))
				b.fence++
				p.Do(ctx, "PUBLISH", "fence", b.fence)
			}
			return nil
		})
		published := make([][]string, len(part))
		for at := 0; at < len(part); {
			m, err := b.pubsub.ReceiveMessage(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if m.Channel == "fence" {
				at++
				if want := strconv.Itoa(first + at); m.Payload != want {
					t.Fatalf("fence %s where %s was due", m.Payload, want)
				}
				continue
			}
			published[at] = append(published[at], m.Channel+"="+m.Payload)
		}
		for i, e := range execs {
			answers, err := e.Slice()
			if err != nil || len(answers) < 2 {
				t.Fatalf("a run came to nothing: %v", err)
			}
			state, _ := answers[len(answers)-1].(string)
			out = append(out, scriptOutcome{replyText(answers[len(answers)-2]), state, strings.Join(published[i], ", ")})
		}
	}
	return out
}

// replyText writes a reply. It leaves the name of the script out of an error.
func replyText(v any) string {
	err, ok := v.(error)
	if !ok {
		return fmt.Sprint(v)
	}
	if errors.Is(err, redis.Nil) {
		return "nil"
	}
	text := err.Error()
	code := firstWord(text)
	if _, after, found := strings.Cut(text, "user_script:"); found {
		if _, why, found := strings.Cut(after, ": "); found {
			why, _, _ = strings.Cut(why, " script:")
			if code == "ERR" {
				return "error in the script: " + classOf(why)
			}
		}
	}
	return "error " + code
}

// classOf removes Lua's name for the variable at fault from an error.
func classOf(why string) string {
	for _, class := range []string{"compare", "arithmetic", "concatenate", "index"} {
		if strings.Contains(why, class) {
			return class
		}
	}
	return why
}

// randomCase draws a state and operands for a script of that use.
func randomCase(rng *rand.Rand, u use, s spoken) scriptCase {
	owner := func() string { return benchOwners[rng.IntN(len(benchOwners))] }
	one := func(words ...string) string { return words[rng.IntN(len(words))] }
	chance := func(percent int) bool { return rng.IntN(100) < percent }
	var c scriptCase
	set := func(words ...any) { c.setup = append(c.setup, words) }
	queue, zset := redisson.QueueName(benchLock), redisson.DeadlinesName(benchLock)
	wrong := func(key string) bool {
		if !chance(3) {
			return false
		}
		set("SET", key, one("", "7", "x"))
		return true
	}
	me := owner()
	if !wrong(benchLock) && chance(65) {
		for range 1 + rng.IntN(2) {
			o := owner()
			if chance(40) {
				o = me
			}
			set("HSET", benchLock, o, one("1", "1", "1", "2", "3", "0", "-1", "x"))
		}
		if chance(80) {
			set("PEXPIRE", benchLock, 1000*(5+rng.IntN(400)))
		}
	}
	if !wrong(queue) {
		var last string
		for range rng.IntN(5) {
			last = owner()
			if chance(20) {
				last = me
			}
			set("RPUSH", queue, last)
		}
	}
	if !wrong(zset) {
		for _, o := range benchOwners {
			if chance(80) {
				score := benchNow + 1000*(rng.IntN(800)-300)
				switch rng.IntN(12) {
				case 0:
					score = benchNow
				case 1:
					score = benchNow + rng.IntN(3) - 1
				}
				set("ZADD", zset, score, o)
			}
		}
	}
	latch := "redisson_unlock_latch:{" + benchLock + "}:0123456789abcdef"
	if !wrong(latch) && chance(25) {
		set("SET", latch, one("0", "1", "x"))
	} else if chance(2) {
		set("RPUSH", latch, "1")
	}
	token := redisson.TokenName(benchLock)
	if !wrong(token) && chance(60) {
		set("SET", token, rng.IntN(100))
	}
	fair := strings.HasSuffix(u.kind, "fair")
	switch {
	case u.script == "leave":
		c.keys = []string{queue, zset}
	case fair && strings.HasPrefix(u.script, "acquire"):
		c.keys = []string{benchLock, queue, zset}
	case fair:
		c.keys = []string{benchLock, queue, zset, redisson.ChannelName(benchLock), latch}[:u.keys]
	case u.kind == "fenced":
		c.keys = []string{benchLock, token}
	default:
		c.keys = []string{benchLock, redisson.ChannelName(benchLock), latch}[:u.keys]
	}
	lease := one("30000", "12345", "1000000", "0", "-1", "x")
	if chance(80) {
		lease = strconv.Itoa(1000 * (1 + rng.IntN(60)))
	}
	wait := one("5000", "300000", "250", "0", "60000")
	now := strconv.Itoa(benchNow)
	publish := one("PUBLISH", "PUBLISH", "SPUBLISH")
	life := one("13500", "16000", "20000", "1", "0")
	later := strconv.Itoa(benchNow + 5000)
	switch n := len(s.args); {
	case u.script == "leave":
		c.args = []string{me, wait}[:n]
	case u.script == "unlock" && fair:
		c.args = []string{"0", lease, me, now, publish, life}[:n]
	case u.script == "unlock":
		c.args = []string{"0", lease, me, publish, life}[:n]
	case u.script == "force unlock" && fair:
		c.args = []string{"0", now, publish}[:n]
	case u.script == "force unlock":
		c.args = []string{"0", publish}[:n]
	case u.script == "acquire at once":
		c.args = []string{lease, me, now, wait}[:n]
	case fair && len(s.args[2]) > 10: // the argument is an instant, so the rule is that of the first waiter
		c.args = []string{lease, me, later, now}
	case fair:
		c.args = []string{lease, me, wait, now}
	default:
		c.args = []string{lease, me}[:n]
	}
	return c
}
