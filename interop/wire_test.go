//go:build interop

package interop

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockstep/internal/realtime"
	"lockstep/lockimpl/redisson"
)

// chatter has the commands that a client sends for its connection, not for a lock. They differ
// between any two clients of Redis.
var chatter = []string{
	"PING", "CLIENT", "SELECT", "HELLO", "AUTH", "ROLE", "COMMAND", "CONFIG", "CLUSTER", "READONLY", "READWRITE", "ASKING",
	"QUIT", "REPLCONF", "PSYNC",
}

// move is one step of a fixed sequence.
type move struct {
	client int // 0 or 1
	thread int // 1, 2 or 3; 0: only wait
	op     string
	with   Fields // wait, lease, unit
	blocks bool   // the call does not return in this step
	ends   []int  // threads whose blocked calls return in this step
}

// line is a sequence of moves on one lock.
type line struct {
	name  string
	moves []move
	// repeats reports whether the number of attempts depends on the moment. An attempt
	// that repeats the one before it counts once.
	repeats bool
	watch   time.Duration // lockWatchdogTimeout; 0: the default
	only    string        // kind of lock; "": each
}

var lines = []line{
	{name: "enter, enter again, leave, leave", watch: -1, moves: []move{
		{thread: 1, op: "lock"}, {thread: 1, op: "lock"}, {thread: 1, op: "hold_count"},
		{thread: 1, op: "unlock"}, {thread: 1, op: "unlock"}, {thread: 1, op: "unlock"},
	}},
	{name: "a lease, and what the lock object keeps of it", moves: []move{
		{thread: 1, op: "lock", with: Fields{"lease", 12345}}, {thread: 1, op: "lock"}, {thread: 1, op: "unlock"},
		{thread: 1, op: "unlock"}, {thread: 1, op: "lock"}, {thread: 1, op: "unlock"},
		{thread: 1, op: "try_lock", with: Fields{"wait", 50, "lease", 23456}}, {thread: 1, op: "try_lock"},
		{thread: 2, op: "unlock"}, {thread: 1, op: "lock"}, {thread: 1, op: "unlock"},
		{thread: 1, op: "unlock"}, {thread: 1, op: "unlock"},
	}},
	{name: "leases that are none", moves: []move{
		{thread: 1, op: "lock", with: Fields{"lease", 7000}}, {thread: 1, op: "lock", with: Fields{"lease", -1}},
		{thread: 1, op: "unlock"}, {thread: 1, op: "unlock"},
		{thread: 1, op: "try_lock", with: Fields{"wait", 20, "lease", -1}}, {thread: 1, op: "unlock"},
		{thread: 1, op: "lock", with: Fields{"lease", 7, "unit", "SECONDS"}}, {thread: 1, op: "unlock"},
	}},
	{name: "single attempts", moves: []move{
		{thread: 1, op: "try_lock"}, {thread: 2, op: "try_lock"}, {thread: 1, op: "try_lock"}, {thread: 2, op: "unlock"},
		{thread: 2, op: "try_lock", with: Fields{"wait", 0}}, {thread: 2, op: "try_lock", with: Fields{"wait", 0, "lease", 3000}},
		{thread: 1, op: "unlock"}, {thread: 1, op: "unlock"}, {thread: 2, op: "try_lock"}, {thread: 2, op: "unlock"},
	}},
	{name: "a wait that ends", moves: []move{
		{thread: 1, op: "lock"}, {thread: 2, op: "try_lock", with: Fields{"wait", 900}},
		{thread: 2, op: "try_lock", with: Fields{"wait", 900, "lease", 4000}},
		{thread: 2, op: "try_lock", with: Fields{"wait", 1, "unit", "SECONDS"}},
		{client: 1, thread: 1, op: "try_lock", with: Fields{"wait", 1500, "lease", 4000}},
		{thread: 1, op: "unlock"},
	}},
	{name: "hand over", moves: []move{
		{thread: 1, op: "lock"}, {thread: 2, op: "lock", blocks: true},
		{thread: 1, op: "unlock", ends: []int{2}}, {thread: 2, op: "unlock"},
		// The unlock's answer and the grant write one object's lease field, in either order, so there are
		// two clients.
		{thread: 1, op: "lock"}, {client: 1, thread: 1, op: "lock", with: Fields{"lease", 9000}, blocks: true},
		{thread: 1, op: "unlock", ends: []int{11}}, {client: 1, thread: 1, op: "unlock"},
		{thread: 1, op: "lock"}, {thread: 2, op: "try_lock", with: Fields{"wait", 9000}, blocks: true},
		{thread: 1, op: "unlock", ends: []int{2}}, {thread: 2, op: "unlock"},
		{thread: 1, op: "lock"}, {client: 1, thread: 1, op: "try_lock", with: Fields{"wait", 9000, "lease", 8000}, blocks: true},
		{thread: 1, op: "unlock", ends: []int{11}}, {client: 1, thread: 1, op: "unlock"},
		{thread: 1, op: "lock"}, {thread: 2, op: "lock_interruptibly", blocks: true},
		{thread: 1, op: "unlock", ends: []int{2}}, {thread: 2, op: "unlock"},
	}},
	{name: "two who wait on one client", moves: []move{
		{thread: 1, op: "lock"}, {thread: 2, op: "lock", blocks: true}, {thread: 3, op: "lock", blocks: true},
		{thread: 1, op: "unlock", ends: []int{2}}, {thread: 2, op: "unlock", ends: []int{3}}, {thread: 3, op: "unlock"},
	}},
	{name: "one who waits on another client", moves: []move{
		{thread: 1, op: "lock"}, {client: 1, thread: 1, op: "lock", blocks: true},
		{thread: 1, op: "unlock", ends: []int{11}}, {client: 1, thread: 1, op: "unlock"},
	}},
	// Not on a fair lock: after a negative answer some releases wait for ever.
	{name: "a wait to the end of a lease", only: "plain", repeats: true, moves: []move{
		{thread: 1, op: "lock", with: Fields{"lease", 300}}, {thread: 2, op: "lock"}, {thread: 2, op: "unlock"},
	}},
	{name: "force unlock", moves: []move{
		{thread: 1, op: "force_unlock"}, {thread: 1, op: "lock"}, {thread: 1, op: "lock"}, {thread: 2, op: "force_unlock"},
		{thread: 1, op: "unlock"}, {thread: 1, op: "lock"}, {thread: 2, op: "lock", blocks: true},
		{client: 1, thread: 1, op: "force_unlock", ends: []int{2}}, {thread: 2, op: "unlock"},
	}},
	{name: "looking", moves: []move{
		{thread: 1, op: "is_locked"}, {thread: 1, op: "is_held"}, {thread: 1, op: "hold_count"}, {thread: 1, op: "remain_ttl"},
		{thread: 1, op: "lock", with: Fields{"lease", 60000}},
		{thread: 1, op: "is_locked"}, {thread: 1, op: "is_held"}, {thread: 1, op: "hold_count"},
		{thread: 2, op: "is_held"}, {thread: 2, op: "hold_count"}, {thread: 1, op: "unlock"},
	}},
	{name: "an interrupted wait", moves: []move{
		{thread: 1, op: "lock"}, {thread: 2, op: "lock_interruptibly", blocks: true}, {thread: 2, op: "interrupt", ends: []int{2}},
		{thread: 2, op: "try_lock", with: Fields{"wait", 9000}, blocks: true}, {thread: 2, op: "interrupt", ends: []int{2}},
		{thread: 1, op: "unlock"},
	}},
	{name: "renewals", watch: 1200 * time.Millisecond, moves: []move{
		{thread: 1, op: "lock"}, {thread: 1, op: "lock"}, {}, {thread: 1, op: "unlock"}, {}, {thread: 1, op: "unlock"}, {},
	}},
	{name: "tokens", only: "fenced", moves: []move{
		{thread: 1, op: "get_token"}, {thread: 1, op: "lock_and_get_token"}, {thread: 1, op: "try_lock_and_get_token"},
		{thread: 1, op: "get_token"},
		{thread: 1, op: "unlock"}, {thread: 2, op: "lock_and_get_token", blocks: true},
		{thread: 1, op: "unlock", ends: []int{2}}, {thread: 2, op: "unlock"},
	}},
	{name: "tries that tell a token", only: "fenced", moves: []move{
		{thread: 1, op: "lock_and_get_token"},
		{thread: 2, op: "try_lock_and_get_token", with: Fields{"wait", 0}},
		{thread: 2, op: "try_lock_and_get_token", with: Fields{"wait", 900}},
		{thread: 2, op: "try_lock_and_get_token", with: Fields{"wait", 900, "lease", 4000}},
		{thread: 2, op: "try_lock_and_get_token", blocks: true}, // without a wait it waits without bound
		{thread: 1, op: "unlock", ends: []int{2}},
		// The unlock's answer and the grant write one object's lease field, in either order, so there are
		// two clients.
		{client: 1, thread: 1, op: "try_lock_and_get_token", with: Fields{"wait", 9000, "lease", 60000}, blocks: true},
		{thread: 2, op: "unlock", ends: []int{11}},
		{thread: 2, op: "lock_and_get_token", blocks: true},
		{client: 1, thread: 1, op: "force_unlock", ends: []int{2}}, {thread: 2, op: "unlock"},
	}},
}

// wireKinds are the kinds of lock that a release has.
func wireKinds(rel *redisson.Release) []string {
	kinds := []string{"plain", "fair"}
	if rel.Fenced != nil {
		kinds = append(kinds, "fenced")
	}
	if rel.NonReentrant != nil {
		kinds = append(kinds, "nonreentrant", "nonreentrant_fair")
	}
	return kinds
}

// The test compares the commands, keys, arguments and channels that both sides send, sequence by
// sequence.
func TestWireOnOneServer(t *testing.T) {
	t.Parallel()
	for _, rel := range redisson.Releases {
		t.Run(rel.Version, func(t *testing.T) {
			t.Parallel()
			compareLines(t, rel, redisson.Single, func(t *testing.T) []*Proxy {
				return []*Proxy{StartProxy(t, StartServer(t).Addr)}
			})
		})
	}
}

// team has the clients a and b of one side, by their watchdog timeout.
type team struct {
	begin   func(watchdog time.Duration) player
	players map[time.Duration][]player
}

func (m *team) of(watchdog time.Duration) []player {
	if m.players == nil {
		m.players = map[time.Duration][]player{}
	}
	if m.players[watchdog] == nil {
		m.players[watchdog] = []player{m.begin(watchdog), m.begin(watchdog)}
	}
	return m.players[watchdog]
}

// noWatchdog is a lockWatchdogTimeout so long that no renewal comes during a test, however slow the
// machine is. (The watchdog of 3.4.2 has no such setting.)
const noWatchdog = 3000 * time.Second

// compareLines runs all sequences of a release on both sides, each on servers of its own, and
// compares the commands that they sent. begin starts such servers and returns a proxy of each, the
// master's first.
func compareLines(t *testing.T, rel *redisson.Release, topology redisson.Topology, begin func(*testing.T) []*Proxy) {
	lib := StartLibrary(t, rel.Version)
	side := func(make func(*Proxy, settings) player) *team {
		first := begin(t)
		return &team{begin: func(watchdog time.Duration) player {
			switch {
			case watchdog == 0 && rel.Watchdog != redisson.WatchdogTimer:
				watchdog = noWatchdog
			case watchdog == -1:
				watchdog = 0
			}
			via := proxiesAgain(t, first)
			return make(via[0], settings{watchdog: watchdog, topology: topology, replicas: via[1:]})
		}}
	}
	library := side(func(p *Proxy, set settings) player { return newLibraryPlayer(t, lib, p, set, 3) })
	port := side(func(p *Proxy, set settings) player { return newPortPlayer(t, rel, p, set) })
	agreed, commands := 0, 0
	for _, kind := range wireKinds(rel) {
		for i, ln := range lines {
			if ln.only != "" && ln.only != kind || ln.watch > 0 && rel.Version == "3.4.2" || !chosen(kind+" "+ln.name) {
				continue
			}
			name := fmt.Sprintf("wire%d%s", i, kind)
			ok := t.Run(kind+" "+ln.name, func(t *testing.T) {
				realtime.Case(t, "library and port", func(try int) string {
					lock := fmt.Sprintf("%s.%d", name, try)
					want := playLine(t, rel, library.of(ln.watch), kind, lock, ln)
					got := playLine(t, rel, port.of(ln.watch), kind, lock, ln)
					if !slices.Equal(want, got) {
						return sideBySide(want, got)
					}
					commands += len(want)
					return ""
				})
			})
			if ok {
				agreed++
			}
		}
	}
	t.Logf("redisson %s, %v: %d sequences agree, %d commands and results", rel.Version, topologyNames[topology], agreed, commands)
}

var topologyNames = map[redisson.Topology]string{
	redisson.Single: "one server", redisson.Replicated: "master and replica", redisson.Cluster: "cluster",
}

// playLine makes the moves, and returns the commands and the results in words that do not depend on
// the run.
func playLine(t *testing.T, rel *redisson.Release, players []player, kind, lock string, ln line) []string {
	n := newWording(rel, players)
	ears := make([]*lineEar, len(players))
	for i, p := range players {
		ears[i] = &lineEar{p: p, at: map[*Proxy]int{}}
		for _, x := range p.proxies() {
			ears[i].at[x] = len(x.Sent(0))
		}
	}
	blocked := map[int]<-chan string{}
	var out []string
	renewals := map[string]bool{} // the commands that belong to no call
	for _, m := range ln.moves {
		p := players[m.client]
		who := fmt.Sprintf("%c%d", 'a'+m.client, m.thread)
		id := 10*m.client + m.thread
		due := make([]due, len(players))
		switch {
		case m.thread == 0:
			time.Sleep(ln.watch)
		case m.op == "interrupt":
			p.interrupt(m.thread)
		default:
			out = append(out, fmt.Sprintf("%s %s %v", who, m.op, m.with))
			result := p.do(m.thread, m.op, append(Fields{"kind", kind, "lock", lock}, m.with...))
			if m.blocks {
				blocked[id] = result
				due[m.client].attemptsOf = p.owner(m.thread)
				break
			}
			r := await(t, result)
			if m.op == "force_unlock" && rel.Version == "3.4.2" {
				r = "done" // a method without a result
			}
			out = append(out, "  "+who+" "+m.op+" = "+r)
			if m.op == "unlock" && r == "ok" && rel.Unlock.Name == "unlock_latch" {
				due[m.client].latches = 1
			}
		}
		for _, who := range m.ends {
			out = append(out, fmt.Sprintf("  blocked call of %d = %s", who, await(t, blocked[who])))
			delete(blocked, who)
		}
		for i, e := range ears {
			for id := range blocked {
				if id/10 == i && (due[i].channels == 0 || strings.HasSuffix(kind, "fair")) {
					due[i].channels++
				}
			}
			e.settle(due[i])
			var main, latches []string
			for _, s := range e.takeAll() {
				text := n.command(s.via, s.Sent)
				if text != "" && s.node > 0 && !elsewhere(rel, s.Sent) {
					text = "to a replica: " + text
				}
				if text != "" {
					text += s.then
				}
				switch {
				case text == "":
				case s.Is("DEL"): // sent in the background
					latches = append(latches, text)
				default:
					main = append(main, text)
					if ln.repeats {
						main = withoutRepeat(main)
					}
				}
			}
			main = append(main, latches...)
			if m.thread == 0 { // their number, and the call that the last one precedes, depend on chance
				for _, text := range main {
					renewals[text] = true
				}
				main = nil
			} else if ln.watch > 0 {
				main = slices.DeleteFunc(main, func(text string) bool { return renewals[text] })
			}
			for _, text := range main {
				out = append(out, fmt.Sprintf("    %c: %s", 'a'+i, text))
			}
		}
	}
	for _, text := range slices.Sorted(maps.Keys(renewals)) {
		out = append(out, "renewed by "+text)
	}
	return out
}

// withoutRepeat removes the last attempt if it repeats the one before it. An attempt is one
// command, or two if the client asks for the replicas first.
func withoutRepeat(sent []string) []string {
	for n := 1; n <= 2; n++ {
		if end := len(sent); end >= 2*n && slices.Equal(sent[end-n:], sent[end-2*n:end-n]) {
			return sent[:end-n]
		}
	}
	return sent
}

// due has the commands that a client must have sent before a step is over.
type due struct {
	attemptsOf string // the owner of a call that begins to wait: it has asked twice
	latches    int    // latches deleted
	channels   int    // channels open
}

// lineEar reads what one client sent, move by move.
type lineEar struct {
	p        player
	at       map[*Proxy]int
	channels int // open before this move
}

func (e *lineEar) take(x *Proxy) []Sent {
	sent := x.Sent(e.at[x])
	e.at[x] += len(sent)
	e.channels += channelsOpened(sent)
	return sent
}

// at is a command with its node: the first one, which is the master, or another.
type at struct {
	Sent
	via  *Proxy
	node int
	then string // WAIT, if it follows on the same connection
}

// takeAll returns the commands to all nodes, in the order of time.
func (e *lineEar) takeAll() []at {
	var all []at
	for node, x := range e.p.proxies() {
		for _, s := range e.take(x) {
			all = append(all, at{s, x, node, ""})
		}
	}
	slices.SortStableFunc(all, func(a, b at) int { return a.via.born.Add(a.At).Compare(b.via.born.Add(b.At)) })
	// Others' commands may come between a script and its WAIT.
	var out []at
	for _, c := range all {
		script := -1
		for i := range out {
			if out[i].via == c.via && out[i].Conn == c.Conn {
				script = i
			}
		}
		if c.Is("WAIT") && script >= 0 && out[script].then == "" && c.Words[1] != "0" {
			out[script].then = ", then " + strings.Join(c.Words, " ")
			continue
		}
		out = append(out, c)
	}
	return out
}

// elsewhere reports whether the library is known to send a command to a replica that the port sends
// to the master: the commands of isLocked and remainTimeToLive, and the subscriptions of 3.4.2.
func elsewhere(rel *redisson.Release, s Sent) bool {
	return s.Is("EXISTS") || s.Is("PTTL") || rel.Version == "3.4.2" && subscribes(s.Words[0])
}

func channelsOpened(sent []Sent) (n int) {
	for _, s := range sent {
		switch strings.TrimPrefix(strings.ToUpper(s.Words[0]), "S") {
		case "SUBSCRIBE", "UBSCRIBE":
			n++
		case "UNSUBSCRIBE":
			n--
		}
	}
	return n
}

// settleWait is the time that a client has to send the commands that are due. The comparison shows
// those that are missing.
const settleWait = 5 * time.Second

func (e *lineEar) settle(d due) {
	for end := time.Now().Add(settleWait); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		var sent []Sent
		attempts, latches := 0, 0
		for _, x := range e.p.proxies() {
			part := x.Sent(e.at[x])
			sent = append(sent, part...)
			for _, s := range part {
				switch answer := x.Answer(s); {
				case s.Is("DEL"):
					latches++
				case slices.Contains(s.Words, d.attemptsOf) && answer != "" && answer[0] != '-':
					attempts++
				}
			}
		}
		if (d.attemptsOf == "" || attempts >= 2) && latches >= d.latches && e.channels+channelsOpened(sent) == d.channels {
			break
		}
	}
	for _, x := range e.p.proxies() {
		x.Quiet(15*time.Millisecond, time.Second)
	}
}

// callLimit is the longest time that a call may take to return once nothing keeps it waiting.
const callLimit = 60 * time.Second

func await(t testing.TB, result <-chan string) string {
	t.Helper()
	select {
	case r := <-result:
		return r
	case <-time.After(callLimit):
		return "no result"
	}
}

// wording turns commands into words that do not depend on the run: owners, scripts, requests and
// times get names.
type wording struct {
	rel      *redisson.Release
	replace  []string // pairs
	scripts  map[string]string
	requests map[string]string
}

func newWording(rel *redisson.Release, players []player) *wording {
	w := &wording{rel: rel, scripts: map[string]string{}, requests: map[string]string{}}
	for i, p := range players {
		for thread := 1; thread <= 3; thread++ {
			w.replace = append(w.replace, p.owner(thread), fmt.Sprintf("%c%d", 'a'+i, thread))
		}
	}
	return w
}

// script names a script by its order of first use.
func (w *wording) script(sha string) string {
	if w.scripts[sha] == "" {
		w.scripts[sha] = fmt.Sprintf("script%d", len(w.scripts)+1)
	}
	return w.scripts[sha]
}

// command returns the words of a command, "" for chatter.
func (w *wording) command(x *Proxy, s Sent) string {
	words := slices.Clone(s.Words)
	words[0] = strings.ToUpper(words[0])
	if slices.Contains(chatter, words[0]) {
		return ""
	}
	first := 1
	switch words[0] {
	case "EVAL":
		words[1], first = w.script(shaOf(words[1])), 2
	case "EVALSHA":
		words[1], first = w.script(words[1]), 2
	case "SCRIPT":
		words[1] = strings.ToUpper(words[1])
		words[2], first = w.script(shaOf(words[2])), 3
	case "INFO":
		return "INFO" // some ask for one section, some for all
	case "WAIT", "WAITAOF":
		if words[1] == "0" {
			return "" // 4.7.0 asks at its first script whether the server knows them
		}
	}
	if slices.Contains(words, "test1") {
		return "" // 3.43.0 asks whether a script may be sent to a replica
	}
	if i := slices.Index(words, "NON_REENTRANT_REACQUIRE"); i > 0 {
		words = slices.Delete(words, i, i+1) // the error that the library's script gives; the port's has it in its text
	}
	at := x.born.Add(s.At).UnixMilli()
	for i := first; i < len(words); i++ {
		words[i] = w.word(words[i], at)
	}
	return strings.Join(words, " ")
}

func shaOf(text string) string {
	sum := sha1.Sum([]byte(text))
	return hex.EncodeToString(sum[:])
}

// timeSlack is the largest difference between an instant in a command and the instant at which the
// proxy saw it: half of the shortest wait.
const timeSlack = 2400

func (w *wording) word(text string, at int64) string {
	text = strings.NewReplacer(w.replace...).Replace(text)
	if base, request, ok := strings.Cut(text, "}:"); ok && len(request) >= 16 && strings.Contains(base, "latch") {
		if w.requests[request] == "" {
			w.requests[request] = fmt.Sprintf("request%d", len(w.requests)+1)
		}
		return base + "}:" + w.requests[request]
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil:
	case w.rel.RetryDelay.Min > 0 && n >= 16000 && n <= 20000: // a drawn time for which a latch lives
		return "[16 s, 20 s]"
	default:
		for _, wait := range []int64{0, 5000, 300000} {
			if d := n - at - wait; d > -timeSlack && d < timeSlack {
				return fmt.Sprintf("now+%d", wait)
			}
		}
	}
	return text
}

func sideBySide(want, got []string) string {
	var b strings.Builder
	for i := range max(len(want), len(got)) {
		var l, r string
		if i < len(want) {
			l = want[i]
		}
		if i < len(got) {
			r = got[i]
		}
		if l == r {
			fmt.Fprintf(&b, "  %s\n", l)
		} else {
			fmt.Fprintf(&b, "- library: %s\n+ port:    %s\n", l, r)
		}
	}
	return b.String()
}
