package sim

import (
	"path"
	"strings"
	"testing"
)

// Only the frames of the lock and its adapter are left of a stack, without addresses and numbers of goroutines.
func TestFramesOfTheLock(t *testing.T) {
	module := path.Dir(here) // the main module, since this test is a part of it
	frames := func(lines ...string) string {
		return strings.NewReplacer("STD/", sources, "MODULE/", module+"/").Replace(strings.Join(lines, "\n"))
	}
	waits := frames("sync.(*Mutex).Lock(...)", "\tSTD/sync/mutex.go:46",
		"example.org/client.(*Client).Do(...)", "\texample.org/client/client.go:5",
		"example.org/client.call()", "\texample.org/client/client.go:9 +0x3b",
		"MODULE/shop.(*lock).Unlock(0xc000012345, {0x1, 0x2})", "\t/shop/lock.go:57 +0x3b",
		"MODULE/locktest.(*lock).Unlock(0xc000012345)", "\t/lockstep/locktest/adapter.go:150 +0x1d",
		"MODULE/scenarios/play.(*player).unlock.func1()", "\t/lockstep/scenarios/play/player.go:280 +0x1d",
		here+".(*Thread).Call(0xc000012345)", "\t/lockstep/sim/process.go:600 +0x1d")
	renews := frames("MODULE/shop.(*lock).renew(0xc000012345)", "\t/shop/lock.go:80 +0x3b",
		"created by MODULE/shop.(*lock).Lock in goroutine 7", "\t/shop/lock.go:30 +0x1d")
	unlock := frames("  example.org/client.(*Client).Do", "      example.org/client/client.go:5", "  MODULE/shop.(*lock).Unlock", "      /shop/lock.go:57")
	renew := frames("  MODULE/shop.(*lock).renew", "      /shop/lock.go:80", "  created by MODULE/shop.(*lock).Lock", "      /shop/lock.go:30")
	equal(t, "the frames of a call", LockFrames("goroutine 8 [running]:\n"+waits+"\n"), unlock)
	equal(t, "the frames of a goroutine of the lock", LockFrames("goroutine 9 [running]:\n"+renews), renew)
	world := "goroutine 1 [select]:\n" + here + ".Run()\n\t/lockstep/sim/world.go:152 +0x1d"
	equal(t, "the frames of the world", LockFrames(world), "")

	const mutex = " [sync.Mutex.Lock, synctest bubble 3]:\n"
	h := &Hung{Stacks: "goroutine 9" + mutex + waits + "\n\ngoroutine 8" + mutex + waits + "\n\n" + world + "\n"}
	equal(t, "the frames of a world that hangs", h.LockFrames(), "a goroutine [sync.Mutex.Lock] in\n"+unlock+"\n")
	h.Others = "goroutine 10 [select (durable), synctest bubble 3]:\n" + renews + "\n\n" + world + "\n"
	equal(t, "the frames with those of a goroutine that may hold the mutex", h.LockFrames(), "a goroutine [sync.Mutex.Lock] in\n"+unlock+
		"\n\nThese goroutines of the lock wait for a server or for time. One of them may hold the mutex, if it waits for one:\n\na goroutine [select] in\n"+renew+"\n")
	h.Stacks = world + "\n"
	equal(t, "the frames if none is of the lock", h.LockFrames(), world+"\n")
}
