package sim

import (
	"strings"
	"testing"
)

// Only the frames of the lock and its adapter are left of a stack, without addresses and numbers of goroutines.
func TestFramesOfTheLock(t *testing.T) {
	frames := func(lines ...string) string {
		return strings.ReplaceAll(strings.Join(lines, "\n"), "STD/", sources)
	}
	waits := frames("sync.(*Mutex).Lock(...)", "\tSTD/sync/mutex.go:46",
		"example.org/shop.(*lock).Unlock(0xc000012345, {0x1, 0x2})", "\t/shop/lock.go:57 +0x3b",
		"lockstep/locktest.(*lock).Unlock(0xc000012345)", "\t/lockstep/locktest/adapter.go:150 +0x1d",
		"lockstep/scenarios/play.(*player).unlock.func1()", "\t/lockstep/scenarios/play/player.go:280 +0x1d",
		here+".(*Thread).Call(0xc000012345)", "\t/lockstep/sim/process.go:600 +0x1d")
	renews := frames("example.org/shop.(*lock).renew(0xc000012345)", "\t/shop/lock.go:80 +0x3b",
		"created by example.org/shop.(*lock).Lock in goroutine 7", "\t/shop/lock.go:30 +0x1d")
	const unlock, renew = "  example.org/shop.(*lock).Unlock\n      /shop/lock.go:57", "  example.org/shop.(*lock).renew\n      /shop/lock.go:80\n  created by example.org/shop.(*lock).Lock\n      /shop/lock.go:30"
	equal(t, "the frames of a call", LockFrames("goroutine 8 [running]:\n"+waits+"\n"), unlock)
	equal(t, "the frames of a goroutine of the lock", LockFrames("goroutine 9 [running]:\n"+renews), renew)
	world := "goroutine 1 [select]:\n" + here + ".Run()\n\t/lockstep/sim/world.go:152 +0x1d"
	equal(t, "the frames of the world", LockFrames(world), "")

	const mutex = " [sync.Mutex.Lock, synctest bubble 3]:\n"
	h := &Hung{Stacks: "goroutine 9" + mutex + waits + "\n\ngoroutine 8" + mutex + waits + "\n\n" + world + "\n"}
	equal(t, "the frames of a world that hangs", h.LockFrames(), "a goroutine [sync.Mutex.Lock] in\n"+unlock+"\n")
	h.Stacks = world + "\n"
	equal(t, "the frames if none is of the lock", h.LockFrames(), world+"\n")
}
