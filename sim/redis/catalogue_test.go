package redis

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl/redisserver"
)

var update = flag.Bool("update", false, "write the table of commands in docs/servers.md anew from catalogue.txt")

// documented returns the commands and subcommands of COMMAND DOCS with the words of their options.
func documented(t *testing.T, server *redisserver.Server) map[string][]string {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: server.Addr, Protocol: 3})
	defer client.Close()
	docs, err := client.Do(context.Background(), "COMMAND", "DOCS").Result()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	var tokens func(list any) []string
	tokens = func(list any) (words []string) {
		arguments, _ := list.([]any)
		for _, a := range arguments {
			argument := a.(map[any]any)
			if word, ok := argument["token"].(string); ok && strings.ContainsAny(word, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
				words = append(words, word)
			}
			words = append(words, tokens(argument["arguments"])...)
		}
		return words
	}
	var add func(commands any)
	add = func(commands any) {
		list, _ := commands.(map[any]any)
		for name, doc := range list {
			about := doc.(map[any]any)
			found[strings.ToUpper(name.(string))] = tokens(about["arguments"])
			add(about["subcommands"])
		}
	}
	add(docs)
	return found
}

// The catalogue has what COMMAND DOCS of a real server names, and says of nothing else that this release has it.
func TestTheCatalogueIsThatOfRedis(t *testing.T) {
	server := redisserver.Start(t, "redis-server")
	version, err := server.Version()
	if err != nil {
		t.Fatal(err)
	}
	release, err := ParseRelease(version[:strings.LastIndex(version, ".")])
	if err != nil {
		t.Fatal(err)
	}
	docs := documented(t, server)
	for _, name := range slices.Sorted(maps.Keys(docs)) {
		l := catalogue[name]
		if l == nil || !release.has(l.since) {
			t.Errorf("%s of Redis %s is not in the catalogue", name, version)
			continue
		}
		for _, word := range docs[name] {
			if l.simulated && !l.has(release, word) {
				t.Errorf("%s of %s is not in the catalogue", word, name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(catalogue)) {
		l := catalogue[name]
		if !release.has(l.since) {
			continue
		}
		words, ok := docs[name]
		if !ok {
			t.Errorf("the catalogue has %s in %s, and Redis does not", name, release)
			continue
		}
		for _, o := range l.options {
			if release.has(o.since) && !slices.Contains(words, o.word) {
				t.Errorf("the catalogue has %s of %s in %s, and Redis does not", o.word, name, release)
			}
		}
	}
}

// What is not simulated is a fact of the record, and what no release has is the error of the lock.
func TestWhatIsNotSimulatedIsAFact(t *testing.T) {
	for _, c := range []struct {
		release, command string
		want             string // "": no fact
		answer           string // the beginning
	}{
		{"", "BITFIELD k GET u8 0", "BITFIELD", "-ERR lockstep: BITFIELD is not simulated"},
		{"", "bitfield k GET u8 0", "BITFIELD", "-ERR lockstep: BITFIELD is not simulated"},
		{"", "CLIENT KILL ID 3", "CLIENT KILL", "-ERR lockstep: CLIENT KILL is not simulated"},
		{"", "XADD s KEEPREF * f v", "XADD with KEEPREF", "-ERR lockstep: XADD with KEEPREF is not simulated"},
		{"", "XADD s * KEEPREF v", "", "$14"},
		{"", "GEOADD k NX 1 2 m", "GEOADD with NX", "-ERR lockstep: "},
		{"", "CONFIG SET maxmemory 100", "CONFIG SET maxmemory", "-ERR lockstep: "},
		{"", "CONFIG SET maxmemories 100", "", "-ERR Unknown option or number of arguments for CONFIG SET - 'maxmemories'"},
		{"", "JSON.SET k $ 1", "JSON.SET", "-ERR lockstep: "},
		{"", "XREADGROUP GROUP g c CLAIM 5 STREAMS s >", "XREADGROUP with CLAIM", "-ERR lockstep: "},
		{"", "CLIENT TRACKING ON REDIRECT 4", "CLIENT TRACKING with REDIRECT", "-ERR lockstep: "},
		{"", "EVAL return_redis.pcall('sort','k') 0", "SORT", "-ERR lockstep: SORT"},
		{"", "LOCK k v", "", "-ERR unknown command 'LOCK', with args beginning with: 'k' 'v' "},
		{"", "lock", "", "-ERR unknown command 'lock', with args beginning with: \r\n"},
		{"", "SET k v IFFOO x", "", "-ERR syntax error"},
		{"", "CLIENT NOSUCH", "", "-ERR unknown subcommand 'NOSUCH'. Try CLIENT HELP."},
		{"", "DELIFEQ k v", "", ":0"},
		{"7.0", "DELEX k", "", "-ERR unknown command 'DELEX', with args beginning with: 'k' "},
		{"8.4", "DELIFEQ k v", "", "-ERR unknown command 'DELIFEQ', with args beginning with: 'k' 'v' "},
		{"valkey 9.0", "DELEX k", "", "-ERR unknown command 'DELEX', with args beginning with: 'k' "},
		{"valkey 9.0", "SET k v IFNE x", "", "-ERR syntax error"},
		{"7.0", "SET k v IFEQ x", "", "-ERR syntax error"},
		{"7.0", "XADD s KEEPREF * f v", "", "-ERR"},
		{"7.0", "WAITAOF 0 0 0", "", "-ERR unknown command 'WAITAOF', with args beginning with: '0' '0' '0' "},
		{"7.2", "WAITAOF 0 0 0", "WAITAOF", "-ERR lockstep: WAITAOF is not simulated"},
		{"7.0", "CLIENT SETINFO LIB-NAME x", "", "-ERR unknown subcommand 'SETINFO'. Try CLIENT HELP."},
	} {
		t.Run(c.release+" "+c.command, func(t *testing.T) {
			release := Release{}
			if c.release != "" {
				var err error
				if release, err = ParseRelease(c.release); err != nil {
					t.Fatal(err)
				}
			}
			line := "a: " + c.command
			replies, r := exchange{line, line}.inTheWorld(t, release)
			if got := strings.TrimPrefix(replies[0], line+" => "); !strings.HasPrefix(got, c.answer) {
				t.Errorf("answered %q, want %q", got, c.answer)
			}
			equal(t, "not simulated", strings.Join(r.Record.Unsimulated(), ", "), c.want)
			equal(t, "facts", len(pick(r, ofKind("unsimulated"))), map[bool]int{true: 1}[c.want != ""])
		})
	}
}

// A transaction with a command that is unknown or not simulated executes nothing.
func TestATransactionWithARefusedCommand(t *testing.T) {
	for _, command := range []string{"BITFIELD k", "NOSUCH", "GET", "CLIENT NOSUCH"} {
		replies, _ := exchange{"a: MULTI", "a: SET k v", "a: " + command, "a: EXEC", "a: EXISTS k"}.inTheWorld(t, Release{})
		equal(t, "EXEC after "+command, replies[3], "a: EXEC => -EXECABORT Transaction discarded because of previous errors.\r\n")
		equal(t, "EXISTS after "+command, replies[4], "a: EXISTS k => :0\r\n")
	}
}

func TestTransactionsAnswerAsRedisDoes(t *testing.T) {
	server := redisserver.Start(t, "redis-server")
	for name, e := range map[string]exchange{
		"queued":            {"a: MULTI", "a: SET k v", "a: INCR k", "a: GET k", "a: LPUSH l 1", "a: HGETALL h", "a: EXEC", "a: EXEC"},
		"refused":           {"a: MULTI", "a: GET", "a: SET k v", "a: EXEC", "a: MULTI", "a: NOSUCH x", "a: EXEC", "a: EXISTS k"},
		"wrong syntax":      {"a: MULTI", "a: SET k v FOO", "a: SET k v EX x", "a: SET k w", "a: EXEC", "a: GET k"},
		"nested":            {"a: MULTI", "a: MULTI", "a: WATCH k", "a: SET k v", "a: EXEC", "a: GET k"},
		"discarded":         {"a: DISCARD", "a: MULTI", "a: SET k v", "a: DISCARD", "a: EXISTS k", "a: MULTI x", "a: EXEC"},
		"a watch":           {"a: WATCH k", "b: SET k v", "a: MULTI", "a: GET k", "a: EXEC", "a: MULTI", "a: GET k", "a: EXEC"},
		"a watch that ends": {"a: WATCH k", "a: UNWATCH", "b: SET k v", "a: MULTI", "a: GET k", "a: EXEC", "a: WATCH k", "a: MULTI", "a: DISCARD", "b: SET k w", "a: MULTI", "a: EXEC"},
		"a watch in RESP3":  {"a: HELLO 3 SETNAME a", "a: WATCH k", "b: SET k v", "a: MULTI", "a: GET k", "a: EXEC", "a: MULTI", "a: HGETALL h", "a: EXEC"},
		"a script":          {"a: MULTI", "a: EVAL return_redis.call('set','k',1) 0", "a: EVAL return_{1,redis.call('get','k')} 0", "a: EXEC"},
	} {
		t.Run(name, func(t *testing.T) { sameAsRealRedis(t, server, e) })
	}
}

// The release shows in HELLO and INFO.
func TestTheServerNamesItsRelease(t *testing.T) {
	for name, want := range map[string][2]string{
		"": {"redis 7.2.0", ""}, "7.0": {"redis 7.0.15", "redis_version:7.0.15"}, "8.4": {"redis 8.4.0", "redis_version:8.4.0"},
		"valkey 9.0": {"valkey 9.0.0", "valkey_version:9.0.0"},
	} {
		release := Release{}
		if name != "" {
			release, _ = ParseRelease(name)
		}
		replies, _ := exchange{"a: INFO", "a: INFO replication", "a: INFO server", "a: HELLO 3 SETNAME a"}.inTheWorld(t, release)
		hello := strings.Split(replies[3], "\r\n")
		equal(t, name+" in HELLO", hello[4]+" "+hello[8], want[0])
		for i, has := range []bool{want[1] != "", false, want[1] != ""} {
			equal(t, fmt.Sprint(name, " in INFO ", i), want[1] != "" && strings.Contains(replies[i], want[1]), has)
		}
	}
}

// Without a release the server knows every command that is simulated.
func TestTheTableOfCommandsInTheDocuments(t *testing.T) {
	const file, begin, end = "../../docs/servers.md", "<!-- commands: written by go test ./sim/redis -update -->\n", "<!-- end of commands -->\n"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(text), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no lines %q and %q", file, begin, end)
	}
	want := head + begin + commandTable() + end + tail
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	equal(t, file+" is what go test ./sim/redis -run TheTableOfCommands -update writes", string(text) == want, true)
}

// commandTable returns the number of simulated commands, a table of their limits, and a list of the other commands.
func commandTable() string {
	var rows strings.Builder
	var without []string
	with := 0
	for _, name := range slices.Sorted(maps.Keys(catalogue)) {
		l := catalogue[name]
		shown := "`" + strings.ReplaceAll(name, "|", " ") + "`"
		command, _, sub := strings.Cut(name, "|")
		if !l.simulated {
			if !sub || catalogue[command].simulated {
				without = append(without, shown)
			}
			continue
		}
		var missing, from []string
		since := l.since.from()
		if since != "" {
			from = append(from, since)
		}
		for _, o := range l.options {
			switch later := o.since.from(); {
			case !o.simulated:
				missing = append(missing, "`"+o.word+"`")
			case later != since:
				from = append(from, "`"+o.word+"` "+later)
			}
		}
		if !sub {
			with++
		}
		if len(missing)+len(from) > 0 {
			fmt.Fprintf(&rows, "| %s | %s | %s |\n", shown, strings.Join(missing, ", "), strings.Join(from, "; "))
		}
	}
	return fmt.Sprintf("Simulated: %d commands, which are all of Redis 8.6 and Valkey 9.1 but those below the table.\n\n", with) + "| command | without | only from |\n|---|---|---|\n" + rows.String() +
		"\nNot simulated: " + strings.Join(without, ", ") + ", and the commands of modules (`JSON.SET` and the like).\n"
}

// from returns the releases that have a command or an option first, if Redis 7.0 and Valkey 7.2 do not both have it.
func (s since) from() string {
	redis7, _ := ParseRelease("7.0")
	valkey7, _ := ParseRelease("valkey 7.2")
	if redis7.has(s) && valkey7.has(s) {
		return ""
	}
	var list []string
	for _, r := range []struct {
		name    string
		release []int
	}{{"Redis", s.redis}, {"Valkey", s.valkey}} {
		if r.release != nil {
			list = append(list, fmt.Sprintf("%s %d.%d", r.name, r.release[0], r.release[1]))
		}
	}
	return strings.Join(list, ", ")
}
