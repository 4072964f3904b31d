package interop

import (
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"
)

// Times of drawn stories, in ms. Acts are so far apart that a late act is not overtaken by the
// next.
var (
	drawnWatchdogs = []int64{1000, 1200, 1500, 2000}
	drawnWaits     = []int64{0, 200, 700, 1500, 3000}
	drawnLeases    = []int64{300, 900, 2000, minute}
	drawnGaps      = []int64{70, 70, 150, 150, 300, 300, 600, 1000}
)

// drawnActs lists the acts that are drawn for a story. An act is drawn more often if it is listed
// more often.
var drawnActs = []string{
	doLock, doLock, doLock, doLock,
	doLockInterruptibly, doLockInterruptibly,
	doTryLock, doTryLock,
	doTryLockTimed, doTryLockTimed, doTryLockTimed, doTryLockTimed, doTryLockTimed,
	doUnlock, doUnlock, doUnlock, doUnlock, doUnlock, doUnlock,
	doForceUnlock,
	doInterrupt, doInterrupt, doInterrupt,
	doRemove,
	doCrash,
	doLook, doLook, doLook, doLook,
}

// drawStory returns the story of a seed, which is always the same. It lasts two to eight seconds,
// in which holds are renewed, leases end while others wait, waits end, calls are interrupted at any
// point, and a client crashes.
func drawStory(kind string, seed int) timedStory {
	return rapid.Custom(func(t *rapid.T) timedStory {
		watchdog := rapid.SampledFrom(drawnWatchdogs).Draw(t, "watchdog")
		return timedStory{
			name: fmt.Sprint("seed ", seed), kinds: []string{kind},
			watchdog: time.Duration(watchdog) * time.Millisecond, acts: drawActs(t, watchdog),
		}
	}).Example(seed)
}

func drawActs(t *rapid.T, watchdog int64) (acts []act) {
	pick := func(what string, from []string) string { return rapid.SampledFrom(from).Draw(t, what) }
	chance := func(what string, percent int) bool { return rapid.IntRange(1, 100).Draw(t, what) <= percent }
	times := func(what string, from []int64) int64 { return rapid.SampledFrom(from).Draw(t, what) }

	freshness := map[string]int{"one object": 0, "an object each call": 100, "either": 50}[pick("objects", []string{"one object", "an object each call", "either"})]
	second := 0 // percent of acts on the second lock
	if chance("two locks", 30) {
		second = 30
	}
	guesses := map[string]*guess{}
	ends := map[string]int64{} // when the lease of the guessed holder ends
	for _, n := range lockNames {
		guesses[n] = &guess{}
	}
	busy := func(thread string) bool {
		return slices.ContainsFunc(lockNames, func(n string) bool { return slices.Contains(guesses[n].waiting, thread) })
	}
	crashed := ""
	at, last := int64(0), int64(0) // last: the newest lease
	length := rapid.IntRange(5, 11).Draw(t, "length")
	for len(acts) < length && at < 6500 || at < 2000 {
		o := Op{Client: pick("client", clientNames), Thread: rapid.SampledFrom(threadIDs).Draw(t, "thread"), Lock: lockNames[0]}
		if chance("second lock", second) {
			o.Lock = lockNames[1]
		}
		g := guesses[o.Lock]
		if ends[o.Lock] != 0 && at > ends[o.Lock] {
			g.handOver()
			ends[o.Lock] = 0
		}
		o.Do = pick("act", drawnActs)
		if o.Do == doUnlock && g.holder != "" && chance("by the holder", 75) {
			o.Client, o.Thread = g.holder[:1], int(g.holder[2]-'0')
		}
		if o.Do == doInterrupt && len(g.waiting) > 0 {
			w := pick("whom", g.waiting)
			o.Client, o.Thread = w[:1], int(w[2]-'0')
		}
		switch o.Do {
		case doLook, doRemove:
			o = Op{Do: o.Do, Lock: o.Lock}
		case doCrash:
			if crashed != "" || len(acts) < 2 || chance("no crash", 40) {
				continue
			}
			crashed = o.Client
			o = Op{Client: o.Client, Do: doCrash, Lock: o.Lock}
		default:
			if o.Client == crashed || busy(o.thread()) != (o.Do == doInterrupt) && chance("another", 95) {
				continue
			}
			o.Fresh = o.Do != doInterrupt && chance("fresh", freshness)
		}
		switch o.Do {
		case doLock, doLockInterruptibly, doTryLockTimed:
			if chance("lease", 50) {
				o.LeaseMS = times("lease of", drawnLeases)
				last = o.LeaseMS
			}
			if o.Do == doTryLockTimed {
				o.WaitMS = times("wait", drawnWaits)
			}
		}
		free := g.holder == ""
		g.note(o, o.mayWait())
		if free && g.holder != "" && o.LeaseMS != 0 {
			ends[o.Lock] = at + o.LeaseMS
		}
		acts = append(acts, act{at, o})

		gap := times("gap", drawnGaps)
		switch {
		case chance("past a tick of the watchdog", 12):
			gap = watchdog/3 + 170
		case chance("past the watchdog", 8):
			gap = watchdog + 170
		case last < minute && chance("past a lease", 12):
			gap = last + 70
		}
		at += gap + 10*int64(rapid.IntRange(0, 6).Draw(t, "more"))
	}
	return append(acts, to(at, doLook))
}
