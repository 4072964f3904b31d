package redisson

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// distinctScripts gives every script of every release once.
func distinctScripts() (all []Script) {
	for _, rel := range Releases {
		for _, s := range rel.Scripts() {
			if !slices.ContainsFunc(all, func(o Script) bool { return o.SHA == s.SHA }) {
				all = append(all, s)
			}
		}
	}
	return all
}

func TestScriptsAreTheirFilesWithTheirParts(t *testing.T) {
	used := map[string]bool{}
	for _, s := range distinctScripts() {
		used[s.Name] = true
		sum := sha1.Sum([]byte(s.Text))
		same(t, s.Name+" hash", s.SHA, hex.EncodeToString(sum[:]))
		if strings.Contains(s.Text, "--@") {
			t.Errorf("%s still has the place of a part", s.Name)
		}
		for _, p := range allParts {
			same(t, s.Name+" has the part "+p.file, strings.Contains(s.Text, scriptText(p.file)),
				strings.Contains(scriptText(s.Name), "--@"+p.place+"\n") && strings.Contains(s.Text, scriptText(p.file)))
		}
	}
	files, err := scriptFiles.ReadDir("scripts")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if name := strings.TrimSuffix(f.Name(), ".lua"); !used[name] && !f.IsDir() {
			t.Errorf("no release uses %s", f.Name())
		}
	}
}

// The head of each file names every KEYS and ARGV that is used, and no other.
func TestHeadsOfScriptsNameKeysAndArguments(t *testing.T) {
	index := regexp.MustCompile(`(KEYS|ARGV)\[([^\]]+)\]`)
	comment := regexp.MustCompile(`(?m)^\s*--.*$`)
	check := func(name, text string) {
		named, usedIn := map[string][]string{}, map[string][]string{}
		for line := range strings.Lines(scriptText(name)) {
			line, isComment := strings.CutPrefix(strings.TrimSpace(line), "-- ")
			if !isComment {
				break
			}
			for _, of := range []string{"KEYS", "ARGV"} {
				list, ok := strings.CutPrefix(line, of+": ")
				if !ok {
					continue
				}
				for entry := range strings.SplitSeq(list, ", ") {
					first, what, _ := strings.Cut(entry, " ")
					if what == "" {
						t.Errorf("%s: the head says nothing of %s[%s]", name, of, first)
					}
					named[of] = append(named[of], strings.Replace(first, "1..", "i", 1))
				}
			}
		}
		for _, m := range index.FindAllStringSubmatch(comment.ReplaceAllString(text, ""), -1) {
			if of, i := m[1], strings.ReplaceAll(m[2], " ", ""); !slices.Contains(usedIn[of], i) {
				usedIn[of] = append(usedIn[of], i)
			}
		}
		for _, of := range []string{"KEYS", "ARGV"} {
			slices.Sort(named[of])
			slices.Sort(usedIn[of])
			same(t, name+": "+of+" in the head", named[of], usedIn[of])
		}
	}
	for _, s := range distinctScripts() {
		check(s.Name, s.Text)
		if !strings.Contains(scriptText(s.Name), "-- reply: ") {
			t.Errorf("%s: the head does not name the reply", s.Name)
		}
	}
	for _, p := range allParts {
		check(p.file, scriptText(p.file))
	}
}

// Every script, from every state, does on a real Redis what it does on
// miniredis: the reply, what it publishes and the database that it leaves.
func TestScriptsDoOnRedisWhatTheyDoOnMiniredis(t *testing.T) {
	realRedis := startRedis(t)
	m := miniredis.NewMiniRedis()
	t.Cleanup(m.Close)
	mini := redis.NewClient(&redis.Options{
		Addr: "192.0.2.1:6379", Protocol: 2, MaxRetries: -1, DisableIdentity: true,
		Dialer:                   func(context.Context, string, string) (net.Conn, error) { return m.Dial() },
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { _ = mini.Close() })
	servers := []*redis.Client{mini, realRedis}
	var heard []<-chan *redis.Message
	for _, s := range servers {
		ps := s.PSubscribe(background, "*")
		t.Cleanup(func() { _ = ps.Close() })
		if _, err := ps.Receive(background); err != nil {
			t.Fatal(err)
		}
		heard = append(heard, ps.Channel(redis.WithChannelHealthCheckInterval(0)))
	}

	const me, other, third = "c1:1", "c1:2", "c2:1"
	// Not a power of ten: miniredis writes a score of 100000000 as 1e+8, which
	// the tonumber of its Lua does not read. Redis writes 100000000.
	const now = 946_684_800_000
	queue, deadlines, latch := QueueName("x"), DeadlinesName("x"), latchName("x", "r")
	type commands [][]any
	lock := func(owner string, count int) commands {
		return commands{{"HSET", "x", owner, count}, {"PEXPIRE", "x", 2_000_000}}
	}
	waiting := func(owner string, deadline int) commands {
		return commands{{"RPUSH", queue, owner}, {"ZADD", deadlines, deadline, owner}}
	}
	holders := []struct {
		what string
		commands
	}{
		{"free", nil},
		{"held by me", lock(me, 1)},
		{"held by me twice", lock(me, 2)},
		{"held by another", lock(other, 1)},
		{"held by another without expiry", commands{{"HSET", "x", other, 1}}},
		{"held by me and, somehow, another", slices.Concat(lock(me, 1), lock(other, 1))},
		{"held by me, another lock too", slices.Concat(lock(me, 1), commands{{"HSET", "y", other, 1}})},
		{"not a hash", commands{{"SET", "x", "y"}}},
	}
	queues := []struct {
		what string
		commands
	}{
		{"no queue", nil},
		{"me at the head", slices.Concat(waiting(me, now+500_000), waiting(third, now+900_000))},
		{"another at the head", slices.Concat(waiting(third, now+500_000), waiting(me, now+900_000), waiting(other, now+1_300_000))},
		{"another queues, I do not", waiting(third, now+500_000)},
		{"a stale head, then me", slices.Concat(waiting(third, now-10_000), waiting(me, now+500_000))},
		{"a head whose deadline is now", slices.Concat(waiting(third, now), waiting(other, now+500_000))},
		{"all stale", slices.Concat(waiting(third, now-20_000), waiting(me, now-10_000))},
		{"a head without deadline", commands{{"RPUSH", queue, third, me}, {"ZADD", deadlines, now + 500_000, me}}},
		{"a last waiter without deadline", slices.Concat(waiting(other, now+500_000), commands{{"RPUSH", queue, third}})},
		{"only a waiter without deadline", commands{{"RPUSH", queue, third}}},
		{"me in front of one without deadline", commands{{"RPUSH", queue, me, third}, {"ZADD", deadlines, now + 500_000, me}}},
		{"a deadline of one who does not queue", commands{{"ZADD", deadlines, now + 500_000, third}}},
	}
	latches := []struct {
		what string
		commands
	}{
		{"", nil},
		{", answered 1 before", commands{{"SET", latch, 1, "PX", 3_000_000}}},
		{", answered 0 before", commands{{"SET", latch, 0, "PX", 3_000_000}}},
	}
	arguments := map[string]struct {
		keys []string
		args []any
	}{
		"acquire_merged":           {[]string{"x"}, []any{1_000_000, me}},
		"unlock_latch":             {[]string{"x", ChannelName("x"), latch}, []any{0, 1_000_000, me, "PUBLISH", 4_000_000}},
		"force_unlock":             {[]string{"x", ChannelName("x")}, []any{0, "PUBLISH"}},
		"renew_owner":              {[]string{"x"}, []any{1_000_000, me}},
		"renew_batch":              {[]string{"x", "y", "z"}, []any{1_000_000, me, other, third}},
		"fair_acquire_lock_ttl":    {[]string{"x", queue, deadlines}, []any{1_000_000, me, 300_000, now}},
		"fair_acquire_scored_last": {[]string{"x", queue, deadlines}, []any{1_000_000, me, 300_000, now}},
		"fair_try_acquire":         {[]string{"x", queue, deadlines}, []any{1_000_000, me, now, 300_000}},
		"fair_leave_behind":        {[]string{queue, deadlines}, []any{me, 300_000}},
		"fair_unlock_latch":        {[]string{"x", queue, deadlines, ChannelName("x"), latch}, []any{0, 1_000_000, me, now, "PUBLISH", 4_000_000}},
		"fair_force_unlock":        {[]string{"x", queue, deadlines, ChannelName("x")}, []any{0, now, "PUBLISH"}},
	}

	cases := 0
	for _, script := range distinctScripts() {
		call, ok := arguments[script.Name]
		if !ok {
			t.Errorf("%s has no arguments in this test", script.Name)
			continue
		}
		isFair, isUnlock := strings.HasPrefix(script.Name, "fair_"), script.Kind == KindUnlock
		for _, h := range holders {
			for _, q := range queues {
				for _, l := range latches {
					if !isFair && q.commands != nil || !isUnlock && l.commands != nil {
						continue // the script knows nothing of it
					}
					cases++
					what := fmt.Sprintf("%s, %s, %s%s", script.Name, h.what, q.what, l.what)
					var results []string
					for i, s := range servers {
						results = append(results, playOn(t, s, heard[i], slices.Concat(h.commands, q.commands, l.commands), script, call.keys, call.args))
					}
					if results[0] != results[1] {
						t.Errorf("%s:\nminiredis:\n%s\nredis:\n%s", what, results[0], results[1])
					}
				}
			}
		}
	}
	if cases < 500 {
		t.Errorf("only %d cases", cases)
	}
	t.Logf("%d cases", cases)
}

// playOn runs a script from a state and gives the reply, the messages and the
// final state as text.
func playOn(t *testing.T, s *redis.Client, heard <-chan *redis.Message, state [][]any, script Script, keys []string, args []any) string {
	t.Helper()
	if err := s.FlushAll(background).Err(); err != nil {
		t.Fatal(err)
	}
	for _, c := range state {
		if err := s.Do(background, c...).Err(); err != nil {
			t.Fatalf("%v: %v", c, err)
		}
	}
	reply, err := s.Eval(background, script.Text, keys, args...).Result()
	var b strings.Builder
	switch {
	case errors.Is(err, redis.Nil):
		b.WriteString("reply nil\n")
	case err != nil:
		b.WriteString("reply an error\n") // the texts differ
	default:
		fmt.Fprintf(&b, "reply %s\n", coarse(reply))
	}
	if err := s.Publish(background, "end of case", "").Err(); err != nil {
		t.Fatal(err)
	}
	for msg := range heard {
		if msg.Channel == "end of case" {
			break
		}
		fmt.Fprintf(&b, "published %s to %s\n", msg.Payload, msg.Channel)
	}
	b.WriteString(dump(t, s))
	return b.String()
}

// dump gives a server's database: a line a key with its content and time to live.
func dump(t *testing.T, s *redis.Client) string {
	t.Helper()
	keys, err := s.Keys(background, "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(keys)
	var b strings.Builder
	for _, k := range keys {
		typ := s.Type(background, k).Val()
		var content any
		switch typ {
		case "hash":
			content = s.HGetAll(background, k).Val() // printed in order
		case "list":
			content = s.LRange(background, k, 0, -1).Val()
		case "zset":
			scores := map[string]string{}
			for _, z := range s.ZRangeWithScores(background, k, 0, -1).Val() {
				scores[fmt.Sprint(z.Member)] = coarse(int64(z.Score))
			}
			content = scores
		case "string":
			content = s.Get(background, k).Val()
		}
		fmt.Fprintf(&b, "%s %s %v for %s ms\n", typ, k, content, coarse(s.Do(background, "PTTL", k).Val()))
	}
	return b.String()
}

// coarse prints a number; a large one, which may have a time to live in it, to
// the next ten thousand, so that a slow machine gives the same.
func coarse(v any) string {
	if n, ok := v.(int64); ok && (n > 10_000 || n < -10_000) {
		return strconv.FormatFloat(math.Round(float64(n)/10_000)*10, 'f', 0, 64) + " k"
	}
	return fmt.Sprint(v)
}

// startRedis starts a Redis without persistence on a free loopback port.
func startRedis(t *testing.T) *redis.Client {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		const missing = "no redis-server to compare with: apt-get install redis-server"
		if os.Getenv("LOCKSTEP_REQUIRE") == "all" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	for range 3 { // somebody may take the port before Redis does
		if c := tryRedis(t, path); c != nil {
			return c
		}
	}
	t.Fatal("redis-server did not start on any of three free ports")
	return nil
}

func tryRedis(t *testing.T, path string) *redis.Client {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", t.TempDir(), "--daemonize", "no")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() { // ends when Redis does
		if strings.Contains(lines.Text(), "Ready to accept connections") {
			drained := make(chan struct{})
			go func() {
				defer close(drained)
				for lines.Scan() {
				}
			}()
			c := redis.NewClient(&redis.Options{
				Addr: net.JoinHostPort("127.0.0.1", port), Protocol: 2, MaxRetries: -1, DisableIdentity: true,
				MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
			})
			t.Cleanup(func() {
				_ = c.Close()
				_ = cmd.Process.Kill()
				<-drained
				_ = cmd.Wait()
				runtime.GC() // its timers are not for the bubbles
			})
			return c
		}
	}
	_ = cmd.Wait()
	return nil
}
