package judges

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"lockstep/model"
)

func TestWaitBound(t *testing.T) {
	// Round trips take 2 ms, and a clock in whole milliseconds one more.
	tries := func(returned string, more ...string) string {
		return `
			0   a/1 takes lease=9000
			100 b/1 waits try_lock_timed wait=500
			` + returned + ` b/1 return busy
			` + strings.Join(more, "\n") + `
			9000 server leave`
	}
	collects := func(forMs int, returned string) string {
		return fmt.Sprintf(`
			0    a/1 takes lease=9000
			50   b/1 send greeting greets=y nobody=y
			51   b/1 exec greeting
			52   b/1 deliver greeting
			100  b/1 invoke try_lock_timed wait=500
			%d   b/1 send acquire
			%d   b/1 exec acquire
			%d   b/1 deliver acquire
			%s   b/1 return busy
			9000 server leave`, 100+forMs, 101+forMs, 102+forMs, returned)
	}
	threeKeys := plainLock
	threeKeys.Parts = 3
	skewed := plainLock
	skewed.Processes = []model.ProcessParams{{Name: "a", Threads: 1}, {Name: "b", Threads: 1, Skew: time.Second}}
	testJudged(t, []judged{
		{rule: "its wait and one round trip", record: tries("603")},
		{rule: "and no more",
			finds:  "wait-bound bug: b/1 tried for l from 0.100s on, for 500ms, and returned at 0.604s, which is 1ms later than its wait and 1 round trip of at most 2ms",
			record: tries("604")},
		{rule: "a client sends together what comes within 3 ms", record: collects(3, "606")},
		{rule: "and its round trip is 5 ms", finds: "wait-bound bug: which is 1ms later than its wait and 1 round trip of at most 5ms", record: collects(3, "607")},
		{rule: "a client that connects collects nothing", finds: "wait-bound bug: and 1 round trip of at most 2ms", record: strings.Replace(collects(3, "607"), "greets=y nobody=y", "greets=y nobody=y conn=2", 1)},
		{rule: "no client keeps a command for longer", finds: "wait-bound bug: and 1 round trip of at most 12ms", record: collects(100, "614")},
		{rule: "two on the fair lock, where it leaves the queue", lock: fairLock, record: tries("605")},
		{rule: "and no more there", lock: fairLock, finds: "wait-bound bug: and 2 round trips", record: tries("606")},
		{rule: "one for each key, which are asked one after another", lock: threeKeys, record: tries("607")},
		{rule: "and no more on three keys", lock: threeKeys, finds: "wait-bound bug: and 3 round trips", record: tries("608")},
		{rule: "one more for a script that the server did not know", record: tries("605", `
			300 b/1 send acquire
			301 b/1 exec acquire (error) NOSCRIPT
			302 b/1 deliver acquire`)},
		{rule: "one more for greetings, which go out together", record: tries("605", strings.Repeat(`
			300 b/1 send acquire greets=y
			301 b/1 exec acquire
			302 b/1 deliver acquire`, 2))},
		{rule: "and no more for greetings", finds: "wait-bound bug: and 2 round trips", record: tries("606", `
			300 b/1 send acquire greets=y
			301 b/1 exec acquire
			302 b/1 deliver acquire`)},
		{rule: "a grant may not come later either", finds: "wait-bound bug: returned at 0.702s", record: `
			0   a/1 takes lease=300
			100 b/1 waits try_lock_timed wait=500
			302 server expire -> free
			700 b/1 gets -> b/1 1 30701
			9000 server leave`},
		{rule: "a round trip is the longest of that process", record: tries("650", `
			200 b/1 send renew
			240 b/1 exec renew
			280 b/1 deliver renew`)},
		{rule: "a command that waits at the server says nothing of a round trip", finds: "wait-bound bug: of at most 2ms", record: tries("650", `
			200 b/1 send acquire blocks=y
			640 b/1 exec acquire
			641 b/1 deliver acquire`)},
		{rule: "but one that asks about an earlier command is part of that one's", record: tries("650", `
			200 b/1 send acquire
			201 b/1 exec acquire
			202 b/1 deliver acquire
			200 b/1 send replicas command=WAIT blocks=y
			640 b/1 exec replicas
			641 b/1 deliver replicas`)},
		{rule: "one more for a greeting of the server, which begins a connection", record: tries("605", `
			300 b greeting comes`)},
		{rule: "and no more for it", finds: "wait-bound bug: and 2 round trips", record: tries("606", `
			300 b greeting comes`)},
		{rule: "and the client's first command may go out at once", record: tries("605", `
			300 b/1 send acquire conn=1 nobody=y
			300 b greeting comes
			301 b/1 exec acquire
			302 b/1 deliver acquire`)},
		{rule: "not if one went out before", finds: "wait-bound bug: and 1 round trip", record: tries("605", `
			299 b/1 send acquire conn=1 nobody=y
			300 b greeting comes
			301 b/1 exec acquire
			302 b/1 deliver acquire`)},
		{rule: "none for a message on a channel", finds: "wait-bound bug: and 1 round trip", record: tries("604", `
			300 b woken`)},
		{rule: "not of another", finds: "wait-bound bug: of at most 2ms", record: tries("650", `
			200 a/1 send renew
			240 a/1 exec renew
			280 a/1 deliver renew`)},
		{rule: "a call whose message a fault met is not judged", record: tries("5000", `
			300 b/1 send acquire
			301 b/1 hit 1 acquire`)},
		{rule: "nor one whose connection waits for the greeting of the server", record: tries("5000", `
			300  b greeting hit hold
			4900 b greeting comes`)},
		{rule: "but one where that of another waits", finds: "wait-bound bug: returned at 5.000s", record: tries("5000", `
			300  a greeting hit hold
			4900 a greeting comes`)},
		{rule: "one that says at its end that it listens no longer is", finds: "wait-bound bug: returned at 5.000s", record: tries("5000", `
			5000 b/1 send unsubscribe listens=stop
			5001 b/1 exec unsubscribe
			5002 b/1 lost unsubscribe reply nobody waits for it`)},
		{rule: "one that its client gave a command up for is not", record: tries("5000", `
			300 b/1 send acquire
			301 b/1 exec acquire
			900 b/1 lost acquire reply nobody waits for it`)},
		{rule: "nor one whose process is paused", record: tries("5000", `
			300  server fault 1 pause of b for 4s
			4300 server heal 1`)},
		{rule: "but one where another is", finds: "wait-bound bug: returned at 5.000s", record: tries("5000", `
			300  server fault 1 pause of c for 4s
			4300 server heal 1`)},
		{rule: "nor one whose server stalls", record: tries("5000", `
			300  server fault 1 server stall for 4s
			4300 server heal 1`)},
		{rule: "nor one that is interrupted", record: tries("5000", `
			300 c/1 interrupts b/1`)},
		{rule: "one that waits without bound has none", record: `
			0    a/1 takes lease=5000
			100  b/1 waits lock
			4990 a/1 releases
			5000 b/1 gets
			9000 server leave`},
		{rule: "a wall clock that is apart excuses nothing", lock: skewed, finds: "wait-bound bug: returned at 0.700s", record: tries("700")},
	})
}
