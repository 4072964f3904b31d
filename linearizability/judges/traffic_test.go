package judges

import (
	"fmt"
	"strings"
	"testing"

	"lockstep/model"
)

func TestTraffic(t *testing.T) {
	// asks is a waiter's commands, one every so many milliseconds, after the first.
	asks := func(n, every int, also ...string) string {
		var b strings.Builder
		b.WriteString("0 a/1 takes lease=9000\n100 b/1 waits lock\n")
		for i := 1; i < n; i++ {
			at := 100 + i*every
			fmt.Fprintf(&b, "%d b/1 send acquire\n%d b/1 exec acquire\n%d b/1 deliver acquire\n", at, at, at)
			for _, line := range also {
				fmt.Fprintf(&b, "%d %s\n", at, line)
			}
		}
		return b.String() + "9000 server leave"
	}
	// kept is a waiter that gets the answers to its commands 2 ms after an unlock. It sends them, and the server has them, so many
	// ms before the answer.
	kept := func(sent, had, holds int) string {
		var b strings.Builder
		b.WriteString("100 b/1 waits lock\n")
		for i := range holds {
			at := 110 + 20*i
			fmt.Fprintf(&b, "%d c/1 takes\n%d c/1 releases\n", at, at+8)
			fmt.Fprintf(&b, "%d b/1 send acquire\n%d b/1 exec acquire\n%d b/1 deliver acquire\n", at+10-sent, at+10-had, at+10)
		}
		fmt.Fprintf(&b, "%d c/1 takes lease=9000\n", 110+20*holds)
		return b.String() + "9000 server leave"
	}
	// prolongs returns a renewal of the hold of a lock, which a goroutine of the waiter sends.
	prolongs := func(lock string) string {
		who := map[string]string{"k": "b/1", "l": "a/1"}[lock]
		return fmt.Sprintf("\n300 b/1 send acquire lock=%s\n301 b/1 exec acquire lock=%s -> %s 1 9301\n302 b/1 deliver acquire", lock, lock, who)
	}
	// failed has so many calls of the waiter whose outcome is unknown.
	failed := func(n int) string {
		return strings.Repeat("0 b/1 invoke try_lock_timed wait=200\n0 b/1 return unknown\n", n)
	}
	threads := func(n int) model.Params {
		p := plainLock
		p.Processes = []model.ProcessParams{{Name: "a", Threads: 1}, {Name: "b", Threads: n}}
		return p
	}
	guessed := strings.ReplaceAll(asks(21, 5), "b/1 send acquire", "b/1 send acquire guessed=y")
	testJudged(t, []judged{
		{rule: "whose commands they are must be known of several threads", lock: threads(2), record: guessed},
		{rule: "of a single one it is", lock: threads(1), record: guessed, finds: "traffic bug: b/1 sent 21 commands for l"},
		{rule: "twenty commands in a second", record: asks(20, 5)},
		{rule: "and not one more", finds: "traffic bug: b/1 sent 21 commands for l in the second from 0.100s on, 21 more than it was woken; at most 20 more are allowed", record: asks(21, 5)},
		{rule: "but a renewal of another lock more", lock: anybodys, record: "0 b/1 takes lease=9000 lock=k\n" + asks(20, 5) + prolongs("k")},
		{rule: "a request about this one is none", lock: anybodys, record: "0 b/1 takes lease=9000 lock=k\n" + asks(20, 5) + prolongs("l"), finds: `
			misdelete bug: acquire of b/1
			traffic bug: b/1 sent 21 commands for l`},
		{rule: "but one greeting more", record: strings.Replace(asks(21, 5), "b/1 send acquire", "b/1 send acquire greets=y", 1)},
		{rule: "twenty in every second", record: asks(100, 50)},
		{rule: "a second that begins later", finds: "traffic bug: b/1 sent 21 commands for l in the second from 0.450s on", record: asks(9, 50) + "\n" +
			strings.Repeat("1400 b/1 send acquire\n1400 b/1 exec acquire\n1400 b/1 deliver acquire\n", 19)},
		{rule: "who is woken may ask", record: asks(100, 5, "b woken")},
		{rule: "who is woken may ask once", finds: "traffic bug: b/1 sent 43 commands for l in the second from 0.100s on, 21 more than it was woken", record: asks(43, 5) +
			"\n" + strings.Repeat("300 b woken\n", 22)},
		{rule: "who may have missed messages may ask", record: asks(100, 5, "b push lost connection reset")},
		{rule: "a message that is lost alone is no reason", finds: "traffic bug: b/1 sent 100 commands", record: asks(100, 5, "b push lost dropped")},
		{rule: "that another process is woken is no reason", finds: "traffic bug: b/1 sent 100 commands", record: asks(100, 5, "c woken")},
		{rule: "what a fault met may be sent again", record: asks(100, 5, "b/1 hit 1 acquire")},
		{rule: "what timers of a paused process send is of the world's making", record: asks(100, 5) + "\n100 server fault 1 pause of b for 6s\n6100 server heal 1"},
		{rule: "that another is paused is no reason", finds: "traffic bug: b/1 sent 100 commands", record: asks(100, 5) + "\n100 server fault 1 pause of c for 6s\n6100 server heal 1"},
		{rule: "nor that it was, but for as many commands once more", finds: "traffic bug: b/1 sent 60 commands for l in the second from 0.300s on", record: asks(100, 5) + "\n90 server fault 1 pause of b for 110ms\n200 server heal 1"},
		{rule: "who waits at the server during an unlock may ask again and try", record: kept(5, 0, 40)},
		{rule: "and so may whose answer is on its way", record: kept(5, 4, 40)},
		{rule: "an unlock is no reason for others", finds: "traffic bug: b/1 sent 41 commands for l in the second from 0.100s on, 41 more than it was woken", record: kept(0, 0, 40)},
		{rule: "but on a stream, which may bring any message", record: strings.ReplaceAll(kept(0, 0, 40), "b/1 send acquire", "b/1 send acquire command=SEGMENT")},
		{rule: "also if something came", record: strings.ReplaceAll(kept(0, 0, 40), "b/1 send acquire", "b/1 send acquire command=SEGMENT") + "\n300 b woken"},
		{rule: "if nobody unlocks, what came is all", finds: "traffic bug: b/1 sent 22 commands for l in the second from 0.100s on, 21 more than it was woken",
			record: strings.ReplaceAll(asks(22, 5), "b/1 send acquire", "b/1 send acquire command=SEGMENT") + "\n300 b woken"},
		{rule: "who failed twice may clean up twice", record: failed(2) + asks(28, 5)},
		{rule: "and not once more", finds: "traffic bug: b/1 sent 29 commands for l in the second from 0.100s on", record: failed(2) + asks(29, 5)},
		{rule: "two waiters are two", record: asks(20, 5) + `
			100 c/1 waits lock
			` + strings.Repeat("101 c/1 send acquire\n101 c/1 exec acquire\n101 c/1 deliver acquire\n", 19)},
		{rule: "one who does not wait may ask as often as it likes", record: `
			0 a/1 invoke unlock
			` + strings.Repeat("0 a/1 send unlock\n0 a/1 exec unlock\n0 a/1 deliver unlock\n", 30) + `
			1 a/1 return not_held
			9000 server leave`},
	})
}

func TestWaits(t *testing.T) {
	var text strings.Builder
	for i := range 100 {
		at := 1000 * i
		fmt.Fprintf(&text, "%d a/1 invoke lock lease=500\n%d a/1 send acquire\n%d a/1 exec acquire -> a/1 1 %d\n%d a/1 return granted\n", at, at, at+i, at+i+500, at+i+1)
		fmt.Fprintf(&text, "%d server expire -> free\n", at+i+501)
	}
	text.WriteString("100000 b/1 waits try_lock\n100700 b/1 return busy\n200000 server leave\n")
	got := judgeRecord(recordOf(t, plainLock, text.String()), nil).Waits
	want := Waits{Granted: 100, P50Ns: 50e6, P90Ns: 90e6, P99Ns: 99e6, MaxNs: 100e6}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := judgeRecord(recordOf(t, plainLock, "0 a/1 waits lock\n5000 server leave"), nil).Waits; got != (Waits{}) {
		t.Errorf("nobody was granted anything: %+v", got)
	}
}
