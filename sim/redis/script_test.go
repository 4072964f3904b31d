package redis

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2/proto"
	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl/redisserver"
	"lockstep/lockimpl/redisson"

	"lockstep/sim"
)

// releaseScripts returns every script of every release once, by its SHA-1.
func releaseScripts() map[string]redisson.Script {
	all := map[string]redisson.Script{}
	for _, rel := range redisson.Releases {
		for _, s := range rel.Scripts() {
			all[s.SHA] = s
		}
	}
	return all
}

func TestTheScriptsOfTheReleasesRunOnPooledStates(t *testing.T) {
	for _, s := range releaseScripts() {
		if scriptOf(s.Text).code == nil {
			t.Errorf("%s is left to miniredis", s.Name)
		}
	}
}

// miniredis runs each script that could change a state for later scripts.
func TestAPooledStateCannotBeChanged(t *testing.T) {
	for _, text := range []string{
		"x = 1", "KEYS = {}", "redis = nil", "tostring = nil", "function f() end", "local function f() x = 1 end",
		"string.format = nil", "function string.more() end", "local s = string; s.format = nil", "local s; s = redis; s.call = nil",
		"table.insert(string, 1)", "for k, v in pairs(redis) do end", "return (function(t) t.x = 1 end)(math)", "return {redis}",
		"return function() return string end", "local t = {s = string}", "return redis[KEYS[1]]", "string['format'] = nil",
		"local f; f = redis.call; redis.call = f", "string:x()", "return #string", "return string", "return KEYS or redis",
		"return (KEYS and redis).call", "redis['ca' .. 'll'] = 1", "redis.setresp(3)", "string.gsub, x = 1, 2",
		"getmetatable('').__index = nil", "setmetatable(_G, {})", "_G.x = 1", "rawset(_G, 'x', 1)", "setfenv(1, {})",
		"getfenv().x = 1", "require('math').max = nil", "package.loaded.x = 1", "math.randomseed(1)", "return math.random()",
		"loadstring('x = 1')()", "coroutine.wrap(print)()", "module('x')", "return nobody", "os.exit()", "print(1)",
		"collectgarbage()", "debug.getinfo(1)", "newproxy()", "this is no Lua",
	} {
		if scriptOf(text).code != nil {
			t.Errorf("runs on a pooled state: %s", text)
		}
	}
	for _, text := range []string{
		"local call = redis.call; return call('get', KEYS[1])", "return {pcall(redis.call, 'x')}", "local t = {}; t.x = 1; table.insert(t, 2)",
		"return string.format('%d', math.floor(3.5))", "return ('x'):rep(3)", "return cjson.encode({1})", "KEYS[1] = 'x'",
		"local function f(n) return n == 0 and 1 or n * f(n - 1) end return f(5)", "return redis.sha1hex('x')",
		"local x = 1; local f = function() x = x + 1 end; f() return x",
	} {
		if scriptOf(text).code == nil {
			t.Errorf("is left to miniredis: %s", text)
		}
	}
}

// said returns commands in the form in which a client writes them.
func said(commands ...[]string) string {
	var b strings.Builder
	for _, words := range commands {
		fmt.Fprintf(&b, "*%d\r\n", len(words))
		for _, word := range words {
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(word), word)
		}
	}
	return b.String()
}

// ask sends commands on a connection, one after the other, and returns the bytes of each reply.
func ask(c net.Conn, commands [][]string) (replies []string, err error) {
	rd := bufio.NewReader(c)
	for _, words := range commands {
		if _, err := io.WriteString(c, said(words)); err != nil {
			return replies, err
		}
		reply, err := proto.Read(rd)
		if err != nil {
			return replies, fmt.Errorf("%w after %q", err, words)
		}
		replies = append(replies, reply)
	}
	return replies, nil
}

// asked is ask on a world's server. It also returns the digest of the run.
func asked(t *testing.T, h *sim.Host, commands [][]string) (replies []string, digest string) {
	t.Helper()
	return askedRelease(t, h, Release{}, commands)
}

// askedRelease is asked on a server of a release.
func askedRelease(t *testing.T, h *sim.Host, release Release, commands [][]string) (replies []string, digest string) {
	t.Helper()
	var err error
	s := newStage().does("a/1", func(th *sim.Thread, _ *redis.Client) {
		c, dialErr := dial(th)
		if err = dialErr; err == nil {
			defer c.Close()
			replies, err = ask(c, commands)
		}
	})
	s.Release = release
	r := s.run(h)
	if err != nil {
		t.Fatal(err)
	}
	return replies, r.Record.Digest()
}

// sameAsMiniredis compares the answers and the records of the world with those of miniredis alone,
// and returns the answers.
func sameAsMiniredis(t *testing.T, commands [][]string) []string {
	t.Helper()
	h := sim.NewHost(t)
	got, digest := asked(t, h, commands)
	h.NoShortcuts = true
	want, wantDigest := asked(t, h, commands)
	for i, words := range commands {
		if got[i] != want[i] {
			t.Fatalf("%q\nhere:      %q\nminiredis: %q", words, got[i], want[i])
		}
	}
	equal(t, "digest", digest, wantDigest)
	return got
}

func eval(text string, words ...string) []string {
	n := len(words) / 2
	return append([]string{"EVAL", text, fmt.Sprint(n)}, words...)
}

func TestScriptsAnswerAsMiniredisDoes(t *testing.T) {
	sha := func(text string) string { return scriptOf(text).sha }
	const get, set, bad = "return redis.call('get', KEYS[1])", "return redis.call('set', KEYS[1], ARGV[1])", "return nobody("
	var commands [][]string
	add := func(words ...string) { commands = append(commands, words) }
	for _, text := range []string{
		// Values that come back.
		"", "return", "return nil", "return false", "return true", "return 1", "return 3.99", "return -3.99", "return 1e15", "return 'x'", "return ''",
		"return 'a\\r\\nb'", "return {}", "return {1, 2, nil, 3}", "return {nil}", "return {1, {2, {3, 'x'}}, true, false}", "return {x = 1}",
		"return {ok = 'fine'}", "return {err = 'ERR oh no'}", "return {ok = 1}", "return {err = 'a\\nb'}", "return {1, {err = 'ERR x'}, {ok = 'y'}}", "return {err = false, 1}",
		"return 1, 2, 3", "return unpack({4, 5})", "return tostring(3.0)", "return tostring(1e20)", "return 10 / 0", "return {1, 2, [4] = 3}",
		// Answers of Redis, in Lua.
		"return type(redis.call('get', 'none'))", "return redis.call('set', 'k', 'v').ok", "return redis.call('get', 'k')", "return redis.call('hgetall', 'h')",
		"redis.call('hset', 'h', 'f', 1, 'g', 2.5) return redis.call('hmget', 'h', 'f', 'x', 'g')", "return {redis.call('mget', 'k', 'none', 'k')}",
		"return redis.call('incr', 'n') + 1", "return redis.call('ttl', 'n')", "return redis.call('zadd', 'z', 1.5, 'm')", "return redis.call('zrange', 'z', 0, -1, 'withscores')",
		"return redis.call('lpop', 'none', 2)", "return redis.call('scan', 0)", "return redis.call('time')[3]", "return redis.call('ping')", "return redis.call('ping', 'x')",
		"return redis.call('SET', 'k', 1)", "return redis.call('set', 'k', 3.5)", "redis.call('set', 'k', 1e20) return redis.call('get', 'k')", "return redis.call('del', 'k', 'h', 'n')",
		// Errors.
		"return redis.call()", "return redis.pcall()", "return redis.call('nobody')", "return redis.pcall('nobody')", "return redis.call('get')", "return redis.pcall('get').err",
		"redis.call('set', 'k', 'v') return redis.call('incr', 'k')", "return redis.pcall('incr', 'k')", "return redis.call('hget', 'k', 'f')", "return redis.call({})", "return redis.call(nil)", "return redis.call('get', true)",
		"error('oh no')", "error('100% %d of it')", "error('x', 0)", "error()", "local x = nil; return x.y", "return 1 + {}", "return #5", "local function f() return f() + 1 end return f()",
		"return {pcall(redis.call, 'incr', 'k')}", "return {pcall(error, 'x')}", "return {xpcall(function() error('y') end, function(m) return m .. '!' end)}", "assert(false, 'no')", "return tonumber('x') + 1",
		"local t = {} for i = 1, 3 do t[i] = function() return i end end return t[1]() + t[3]()", bad, "return nobody", "x = 1", "KEYS = nil",
		"return redis.error_reply('oh no')", "return redis.error_reply('oh')", "return redis.error_reply('-oh no')", "return redis.error_reply('')", "return redis.error_reply(1)", "return redis.error_reply('ERR x').err",
		"return redis.status_reply('fine')", "return redis.status_reply(1)", "return redis.sha1hex('x')", "return redis.sha1hex()", "return redis.sha1hex(1)", "return redis.log(redis.LOG_NOTICE, 'x')", "return redis.log('x')", "return redis.LOG_WARNING",
		// Libraries.
		"return string.format('%5.2f|%s|%d', 3.14159, 'x', 7)", "return {('abc'):find('b')}", "return ('x=1, y=2'):gsub('%w+=', '')", "return table.concat({1, 2, 'x'}, '-')", "local t = {3, 1, 2} table.sort(t) return t",
		"local t = {1} table.insert(t, 1, 'first') table.remove(t) return t", "return math.floor(-3.5)", "return math.max(1, 5, 3)", "return math.huge", "return cjson.encode({1, 'x', {y = true}})", "return cjson.decode('{\"x\":[1,2]}').x", "return {cjson.decode('no json')}",
		"return select('#', 1, nil, 2)", "return {next({5})}", "return rawget({7}, 1)", "return rawequal(KEYS, KEYS)",
		"setmetatable(_G, nil) x = 1 return x", "return x", "rawset(_G, 'x', 1) return x", "return redis.setresp(2)", "return type(_G)", "return os.clock()", "return redis.replicate_commands()", "return {type(math.random), type(bit), type(struct)}",
		"return coroutine.wrap(function() return 1 end)()", "return loadstring('return 1')()",
		// Commands that concern other connections.
		"return redis.call('publish', 'ch', 'x')", "return redis.pcall('wait', 1, 0)", "return redis.call('blpop', 'l', 0)", "redis.call('select', 3) return redis.call('set', 'k3', 1)", "return redis.call('get', 'k3')",
		"redis.call('select', 3) return redis.pcall('get', 'k3')", "return redis.call('info')",
	} {
		add(eval(text)...)
		add(eval(text)...)
		add("EVALSHA", sha(text), "0")
	}
	// KEYS and ARGV.
	add(eval("return {#KEYS, #ARGV, KEYS[1], ARGV[1], KEYS[2], ARGV[2]}", "a", "b")...)
	add("EVAL", "return {KEYS[1], ARGV[1], ARGV[2]}", "1", "a", "b", "")
	add("EVAL", "KEYS[1] = 'z' ARGV[3] = 'y' return {KEYS[1], #ARGV}", "1", "a", "b")
	add("EVAL", "return {KEYS[1], ARGV[3]}", "1", "a", "b")
	for _, n := range []string{"2", "-1", "x", "", "1.5"} {
		add("EVAL", "return 1", n, "a")
		add("EVALSHA", sha("return 1"), n, "a")
	}
	add("EVAL")
	add("EVAL", "return 1")
	add("EVALSHA", sha("return 1"))
	// The cache.
	add("SCRIPT", "LOAD", get)
	add("EVALSHA", sha(get), "1", "k")
	add("EVALSHA", strings.ToUpper(sha(get)), "1", "k")
	add("SCRIPT", "LOAD", bad)
	add("EVALSHA", sha(bad), "0")
	add("EVALSHA", sha(set), "1", "k", "v")
	add("EVAL", set, "1", "k", "v")
	add("EVALSHA", sha(set), "1", "k", "v")
	add("SCRIPT", "EXISTS", sha(get), sha(set), sha(bad), "x")
	add("SCRIPT", "FLUSH")
	add("EVALSHA", sha(set), "1", "k", "v")
	add("SCRIPT", "EXISTS", sha(get), sha(set))
	add("EVAL", "error('x')", "0") // is not kept in the cache
	add("SCRIPT", "EXISTS", sha("error('x')"))
	add("EVAL", set, "1", "k", "v")
	add("SCRIPT", "EXISTS", sha(get), sha(set))
	add("MULTI")
	add("SCRIPT", "FLUSH")
	add("EVALSHA", sha(set), "1", "k", "w")
	add("EVAL", get, "1", "k")
	add("EXEC")
	add("EVALSHA", sha(set), "1", "k", "v")
	add("EVALSHA", sha(get), "1", "k")
	add("EVAL_RO", get, "1", "k")
	add("EVAL_RO", set, "1", "k", "v")
	add("EVALSHA_RO", sha(get), "1", "k")
	// Commands that scripts may not send, or send wrongly.
	for _, cmd := range append([]string{"HELLO", "RESET", "nobody"}, commandNames...) {
		if cmd == "COMMAND" {
			continue // miniredis does not turn its answer into Lua
		}
		for n := range 4 {
			add("EVAL", "return redis.pcall(unpack(ARGV))", "0", cmd)
			commands[len(commands)-1] = append(commands[len(commands)-1], []string{"1", "1", "x"}[:n]...)
			add("EVAL", "return redis.call(unpack(ARGV))", "0", cmd)
			commands[len(commands)-1] = append(commands[len(commands)-1], []string{"1", "1", "x"}[:n]...)
		}
	}
	// With a subscription no script runs.
	add("SUBSCRIBE", "ch")
	add("EVAL", get, "1", "k")
	sameAsMiniredis(t, commands)
}

// writer writes random small scripts.
type writer struct {
	*rand.Rand
	// tidy writes only scripts on which miniredis and Redis are known to agree.
	tidy  bool
	depth int
}

func (w *writer) of(choices ...string) string { return choices[w.IntN(len(choices))] }

func (w *writer) expr() string {
	w.depth++
	defer func() { w.depth-- }()
	if w.depth > 3 || w.IntN(3) == 0 {
		return w.of("1", "0", "-7", "42", "3.99", "-2.5", "'x'", "''", "'12'", "'abc'", "nil", "true", "false", "KEYS[1]", "KEYS[2]", "ARGV[1]", "ARGV[2]", "ARGV[3]", "v", "w", "#KEYS", "1e3")
	}
	switch e := w.expr; w.IntN(14) {
	case 0:
		return "{" + e() + ", " + e() + ", " + e() + "}"
	case 1:
		return "{" + w.of("ok", "err") + " = " + w.of("'fine'", "'ERR oh no'", "'x y'") + "}"
	case 2, 3, 4, 5:
		return w.command()
	case 6:
		return e() + w.of(" == ", " ~= ", " and ", " or ") + e()
	case 7:
		return "num(" + e() + ")" + w.of(" + ", " - ", " * ", " < ", " >= ") + "num(" + e() + ")"
	case 8:
		return "text(" + e() + ") .. text(" + e() + ")"
	case 9:
		return "type(" + e() + ")"
	case 10:
		return w.of("math.floor", "math.max", "math.abs", "string.len", "string.upper", "tonumber", "not", "string.rep", "redis.sha1hex", "unpack") + "(" + e() + ")"
	case 11:
		return "(function(v, w) " + w.block() + " end)(" + e() + ", " + e() + ")"
	case 12:
		return "pcall(function() " + w.block() + " end)"
	default:
		if w.tidy {
			return w.of("redis.status_reply('fine')", "redis.error_reply('ERR x')", "table.concat({1, 'x', 2}, '-')")
		}
		return w.of("redis.status_reply('fine')", "redis.error_reply('oh no')", "cjson.encode({"+e()+"})", "("+e()+")[1]", "("+e()+").ok", "redis.call("+e()+", "+e()+")",
			"string.format('%s %d', text("+e()+"), "+e()+")", "type(string.extra)", "type(rawget(_G, 'extra'))", "next({"+e()+"})", "select(2, "+e()+", "+e()+")", "1 + "+e())
	}
}

func (w *writer) command() string {
	key := func() string { return w.of("KEYS[1]", "KEYS[2]", "'k'", "'h'", "'l'", "'z'") }
	val := func() string { return w.of("ARGV[1]", "ARGV[2]", "1", "5", "'f'", "'x'", "-3") }
	args := w.of(
		"'get', "+key(), "'set', "+key()+", "+val(), "'incr', "+key(), "'incrby', "+key()+", "+val(), "'del', "+key(), "'exists', "+key(), "'type', "+key(),
		"'hset', "+key()+", "+val()+", "+val(), "'hget', "+key()+", "+val(), "'hincrby', "+key()+", "+val()+", "+val(), "'hdel', "+key()+", "+val(), "'hexists', "+key()+", "+val(),
		"'rpush', "+key()+", "+val(), "'lpop', "+key(), "'lrange', "+key()+", 0, -1", "'lindex', "+key()+", 0", "'lrem', "+key()+", 0, "+val(), "'llen', "+key(),
		"'zadd', "+key()+", 3, "+val(), "'zrange', "+key()+", 0, -1", "'zscore', "+key()+", "+val(), "'zrem', "+key()+", "+val(),
		"'pexpire', "+key()+", 90000", "'persist', "+key(), "'publish', "+key()+", "+val(), "'nobody', 1", "'get'", "'sadd', "+key()+", "+val(), "'sismember', "+key()+", "+val())
	return "redis." + w.of("call", "call", "pcall") + "(" + args + ")"
}

func (w *writer) block() string {
	var b strings.Builder
	for range w.IntN(4) {
		w.depth++
		if w.depth < 4 {
			b.WriteString(w.statement() + "; ")
		}
		w.depth--
	}
	if w.IntN(5) > 0 {
		b.WriteString("return " + w.expr())
	}
	return b.String()
}

func (w *writer) statement() string {
	switch w.IntN(9) {
	case 0:
		return "v = " + w.expr()
	case 1:
		return "local " + w.of("v", "w") + " = " + w.expr()
	case 2:
		return "if " + w.expr() + " then " + w.statement() + " else " + w.statement() + " end"
	case 3:
		return "for i = 1, 3 do " + w.statement() + " end"
	case 4:
		return "for _, w in ipairs({" + w.expr() + ", " + w.expr() + "}) do " + w.statement() + " end"
	case 5, 6:
		return "v = " + w.command()
	case 7:
		return "local f = function() v = w end; f()"
	default:
		if w.tidy {
			return "KEYS[1] = 'h'"
		}
		return w.of("extra = 1", "string.extra = 1", "rawset(_G, 'extra', 1)", "local s = string; s.extra = 2", "setmetatable({}, {})", "KEYS[1] = nil", "ARGV = {}", "redis.extra = 1", "error('oh no')",
			"table.insert(KEYS, 'z')", "local t = {}; t[1] = 2; table.sort(t)", "math.extra = 1", "v = v .. 'x'", "getmetatable('').__index.extra = 1")
	}
}

// text writes a script: v and w are locals; num and text take anything.
func (w *writer) text() string {
	return "local v, w = 1, 'w' local function num(x) return tonumber(x) or 0 end " +
		"local function text(x) if type(x) == 'string' then return x end return type(x) end " + w.block()
}

// drawn returns n random scripts, each with a random call, and a command that reads what it leaves.
func drawn(seed uint64, n int, tidy bool) (commands [][]string, pooled int) {
	w := &writer{Rand: rand.New(rand.NewPCG(seed, 0)), tidy: tidy}
	for i := range n {
		if i%8 == 0 {
			commands = append(commands, []string{"FLUSHALL"}, []string{"HSET", "h", "f", "1", "x", "abc"}, []string{"RPUSH", "l", "x", "5", "x"}, []string{"ZADD", "z", "1", "x", "2", "5"}, []string{"SET", "k", "7"})
		}
		text := w.text()
		words := []string{"1", "k", "5"}
		switch n := w.IntN(4); {
		case n == 0:
			words = []string{"2", "h", "l", "f", "x", "1"}
		case n == 1 || tidy: // miniredis answers differently for an argument that is nil
			words = []string{"2", "z", "k", "-3", "5", "x"}
		case n == 2:
			words = []string{"0"}
		}
		if scriptOf(text).code != nil {
			pooled++
		}
		commands = append(commands, append([]string{"EVAL", text}, words...))
		if w.IntN(2) == 0 {
			commands = append(commands, append([]string{"EVALSHA", scriptOf(text).sha}, words...))
		}
		for _, read := range []string{"GET k", "HMGET h f x 1 5 -3", "HLEN h", "LRANGE l 0 -1", "ZRANGE z 0 -1 WITHSCORES", "DBSIZE", "PTTL k"} {
			commands = append(commands, strings.Fields(read))
		}
	}
	return commands, pooled
}

func TestRandomScriptsAnswerAsMiniredisDoes(t *testing.T) {
	const n = 1000
	commands, pooled := drawn(1, n, false)
	replies := sameAsMiniredis(t, commands)
	failed := 0
	for i, words := range commands {
		if words[0] == "EVAL" && strings.HasPrefix(replies[i], "-") {
			failed++
		}
	}
	t.Logf("%d scripts, %d on pooled states, %d failed", n, pooled, failed)
	if pooled < n/4 || n-pooled < n/10 || failed < n/10 || failed > n*3/4 {
		t.Error("they are not mixed enough to say much")
	}
}

// operands has values for the names in the heads of the releases' scripts.
var operands = map[string][]string{
	"lock hash": {"x"}, "queue": {"q"}, "deadlines": {"d"}, "channel": {"ch"}, "channel of the queue": {"ch"},
	"unlock latch of this request": {"latch", "latch 2"}, "token counter": {"token"},
	"lease in ms": {"30000", "1", "0", "5000.7"}, "owner": {"a:1", "a:2", "b:1", "c:1"}, "wait in ms": {"0", "5000", "300000"},
	"now in ms": {"946684800000", "946684805000", "946685000000"}, "now and wait in ms": {"946684805000", "946685100000"},
	"message": {"0", "1"}, "publish command": {"PUBLISH", "SPUBLISH"}, "life of the latch in ms": {"1000", "60000"},
}

// operandsOf draws values for the KEYS or the ARGV that the head of a script names.
func operandsOf(t *testing.T, r *rand.Rand, s redisson.Script, of string) (words []string) {
	_, list, _ := strings.Cut(s.Text, "-- "+of+": ")
	list, _, _ = strings.Cut(list, "\n")
	for entry := range strings.SplitSeq(list, ", ") {
		_, name, _ := strings.Cut(entry, " ")
		name, _, batch := strings.Cut(name, " for KEYS[i]")
		switch {
		case name == "lock hashes":
			words = append(words, "x", "y", "z")
			continue
		case batch:
			words = append(words, "a:1", "a:2")
		}
		values, ok := operands[name]
		if !ok {
			t.Fatalf("%s: no values for %q", s.Name, name)
		}
		words = append(words, values[r.IntN(len(values))])
	}
	return words
}

func TestTheScriptsOfTheReleasesAnswerAsMiniredisDoes(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 0))
	var commands [][]string
	add := func(line string) { commands = append(commands, strings.Fields(line)) }
	pick := func(from ...string) string { return from[r.IntN(len(from))] }
	all := releaseScripts()
	for _, sha := range slices.Sorted(maps.Keys(all)) {
		for range 40 {
			add("FLUSHALL")
			if r.IntN(8) == 0 {
				add("SET " + pick("x", "q", "d", "token", "latch") + " " + pick("1", "no"))
			}
			for range r.IntN(3) {
				add("HSET " + pick("x", "x", "y") + " " + pick(operands["owner"]...) + " " + pick("1", "2"))
			}
			if r.IntN(4) > 0 {
				add("PEXPIRE x " + pick("900", "20000"))
			}
			for range r.IntN(4) {
				owner := pick(operands["owner"]...)
				add("RPUSH q " + owner)
				if r.IntN(5) > 0 {
					add("ZADD d " + pick("946684799000", "946684802000", "946684804321", "946685200000") + " " + owner)
				}
			}
			for range 2 {
				keys, args := operandsOf(t, r, all[sha], "KEYS"), operandsOf(t, r, all[sha], "ARGV")
				commands = append(commands, append(append([]string{"EVAL", all[sha].Text, fmt.Sprint(len(keys))}, keys...), args...))
				for _, read := range []string{"HGETALL x", "PTTL x", "HGETALL y", "LRANGE q 0 -1", "ZRANGE d 0 -1 WITHSCORES", "GET latch", "GET token", "DBSIZE"} {
					add(read)
				}
			}
		}
	}
	different := map[string]bool{}
	for i, reply := range sameAsMiniredis(t, commands) {
		if commands[i][0] == "EVAL" {
			different[reply] = true
		}
	}
	if len(different) < 30 {
		t.Errorf("only %d different answers", len(different))
	}
}

// For scripts on which miniredis and Redis agree, Redis answers as this package does. The texts of
// errors differ.
func TestRandomScriptsAnswerAsRedisDoes(t *testing.T) {
	address := redisserver.Start(t, "redis-server").Addr
	commands, _ := drawn(2, 1500, true)
	commands = slices.DeleteFunc(commands, func(words []string) bool { return words[0] == "PTTL" || words[0] == "EVALSHA" })
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	want, err := ask(c, commands)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := asked(t, sim.NewHost(t), commands)
	errorText := regexp.MustCompile(`(?m)^-.*\r$`)
	differ := 0
	for i, words := range commands {
		got, want := errorText.ReplaceAllString(got[i], "-"), errorText.ReplaceAllString(want[i], "-")
		if got != want {
			t.Errorf("%q\nhere:  %q\nRedis: %q", words, got, want)
			if differ++; differ == 10 {
				break
			}
		}
	}
}

// miniredis would panic.
func TestAScriptThatReturnsAFunctionAnswersNilAsRedisDoes(t *testing.T) {
	got, _ := asked(t, sim.NewHost(t), [][]string{eval("return {1, tostring}"), eval("return function() end")})
	equal(t, "replies", strings.Join(got, ""), "*2\r\n:1\r\n$-1\r\n$-1\r\n")
}
