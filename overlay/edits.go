package overlay

// An edit replaces a text of a file of the standard library, which is found exactly once.
type edit struct{ old, new string }

// edits are the changes of the standard library, by file below GOROOT/src.
var edits = map[string][]edit{
	"runtime/runtime2.go": {
		{"\tcoroarg *coro // argument during coroutine transfers\n\tbubble  *synctestBubble\n",
			"\tcoroarg *coro // argument during coroutine transfers\n\tbubble  *synctestBubble\n\tlockstep lockstepG\n"},
	},
	"runtime/proc.go": {
		{"\t\tnewg.bubble = callergp.bubble\n", "\t\tnewg.bubble = callergp.bubble\n\t\tnewg.lockstep = callergp.lockstep.child()\n"},
		{"\tgp.timer = nil\n\tgp.bubble = nil\n\tgp.fipsOnlyBypass = false\n", "\tgp.timer = nil\n\tgp.bubble = nil\n\tgp.lockstep = lockstepG{}\n\tgp.fipsOnlyBypass = false\n"},
	},
	// Mutexes.
	"runtime/synctest.go": {
		{"\tid      uint64 // unique id\n", "\tid      uint64 // unique id\n\tlockstep uint64 // of a world: the seed of the order of its maps, never 0\n"},
		{"\tcase _Gwaiting:\n\t\tif gp.waitreason.isIdleInSynctest() {\n\t\t\twasRunning = false\n", "\tcase _Gwaiting:\n\t\tif bubble.lockstepIdle(gp.waitreason) {\n\t\t\twasRunning = false\n"},
		{"\tcase _Gwaiting:\n\t\tif gp.waitreason.isIdleInSynctest() {\n\t\t\tisRunning = false\n", "\tcase _Gwaiting:\n\t\tif bubble.lockstepIdle(gp.waitreason) {\n\t\t\tisRunning = false\n"},
	},
	"runtime/traceback.go": {
		{"\t\tgp.waitreason.isIdleInSynctest() &&\n", "\t\tbubble.lockstepIdle(gp.waitreason) &&\n"},
	},
	"runtime/sema.go": {
		{"func internal_sync_nanotime() int64 {\n\treturn nanotime()\n", "func internal_sync_nanotime() int64 {\n\treturn lockstepNanotime()\n"},
	},
	// Chance.
	"runtime/select.go": {
		{"\t\tj := cheaprandn(uint32(norder + 1))\n", "\t\tj := lockstepCase(gp, uint32(norder+1))\n"},
	},
	"runtime/rand.go": {
		{"func rand() uint64 {\n", "func rand() uint64 {\n\tif gp := getg(); gp.lockstep.draw {\n\t\treturn gp.bubble.lockstep // see lockstep.go\n\t}\n"},
		{"func legacy_fastrand() uint32 {\n", "func legacy_fastrand() uint32 {\n\tif n, ok := lockstepDraw(0); ok {\n\t\treturn uint32(n)\n\t}\n"},
		{"func legacy_fastrandn(n uint32) uint32 {\n", "func legacy_fastrandn(n uint32) uint32 {\n\tif x, ok := lockstepDraw(0); ok {\n\t\treturn uint32(uint64(uint32(x)) * uint64(n) >> 32)\n\t}\n"},
		{"func legacy_fastrand64() uint64 {\n", "func legacy_fastrand64() uint64 {\n\tif n, ok := lockstepDraw(0); ok {\n\t\treturn n\n\t}\n"},
	},
	"runtime/alg.go": {
		{"\t\thashkey[i] = uintptr(bootstrapRand())\n", "\t\thashkey[i] = uintptr(lockstepHashKey(i))\n"},
		{"\t\tkey[i] = bootstrapRand()\n", "\t\tkey[i] = lockstepHashKey(i)\n"},
	},
	"os/tempfile.go": {
		{"//go:linkname runtime_rand runtime.rand\nfunc runtime_rand() uint64\n", "//go:linkname runtime_rand runtime.fastrand64\nfunc runtime_rand() uint64\n"},
	},
	"hash/maphash/maphash_runtime.go": {
		{"func randUint64() uint64 {\n", "//go:linkname lockstepDraw\nfunc lockstepDraw(seeded uint64) (uint64, bool)\n\nfunc randUint64() uint64 {\n\tif n, ok := lockstepDraw(0); ok {\n\t\treturn n\n\t}\n"},
	},
	"math/rand/v2/rand.go": {
		{"func (runtimeSource) Uint64() uint64 {\n",
			"//go:linkname lockstepDraw\nfunc lockstepDraw(seeded uint64) (uint64, bool)\n\n//go:linkname lockstepWorld\nfunc lockstepWorld() uint64\n\n" +
				"func (runtimeSource) Uint64() uint64 {\n\tif n, ok := lockstepDraw(0); ok {\n\t\treturn n\n\t}\n"},
	},
	"math/rand/v2/pcg.go": {
		{"\thi uint64\n\tlo uint64\n}\n", "\thi uint64\n\tlo uint64\n\n\tlockstep uint64 // the world in which the source was seeded; 0: in none\n}\n"},
		{"\treturn &PCG{seed1, seed2}\n", "\treturn &PCG{seed1, seed2, lockstepWorld()}\n"},
		{"\tp.hi = seed1\n\tp.lo = seed2\n", "\tp.hi = seed1\n\tp.lo = seed2\n\tp.lockstep = lockstepWorld()\n"},
		{"\tp.hi = byteorder.BEUint64(data[4:])\n", "\tp.lockstep = lockstepWorld()\n\tp.hi = byteorder.BEUint64(data[4:])\n"},
		{"func (p *PCG) Uint64() uint64 {\n", "func (p *PCG) Uint64() uint64 {\n\tif n, ok := lockstepDraw(p.lockstep); ok {\n\t\treturn n\n\t}\n"},
	},
	"math/rand/v2/chacha8.go": {
		{"\tstate chacha8rand.State\n", "\tstate chacha8rand.State\n\n\tlockstep uint64 // the world in which the source was seeded; 0: in none\n"},
		{"\tc := new(ChaCha8)\n", "\tc := new(ChaCha8)\n\tc.lockstep = lockstepWorld()\n"},
		{"func (c *ChaCha8) Seed(seed [32]byte) {\n", "func (c *ChaCha8) Seed(seed [32]byte) {\n\tc.lockstep = lockstepWorld()\n"},
		{"func (c *ChaCha8) UnmarshalBinary(data []byte) error {\n", "func (c *ChaCha8) UnmarshalBinary(data []byte) error {\n\tc.lockstep = lockstepWorld()\n"},
		{"func (c *ChaCha8) Uint64() uint64 {\n", "func (c *ChaCha8) Uint64() uint64 {\n\tif n, ok := lockstepDraw(c.lockstep); ok {\n\t\treturn n\n\t}\n"},
		{"\tif c.readLen > 0 {\n\t\tn = copy", "\tif _, ok := lockstepDraw(c.lockstep); ok {\n\t\tc.readLen = 0\n\t}\n\tif c.readLen > 0 {\n\t\tn = copy"},
	},
	"math/rand/rng.go": {
		{"\tvec  [rngLen]int64 // current feedback register\n", "\tvec  [rngLen]int64 // current feedback register\n\n\tlockstep uint64 // the world in which the source was seeded; 0: in none\n"},
		{"func (rng *rngSource) Seed(seed int64) {\n", "func (rng *rngSource) Seed(seed int64) {\n\trng.lockstep = lockstepWorld()\n"},
		{"func (rng *rngSource) Uint64() uint64 {\n", "func (rng *rngSource) Uint64() uint64 {\n\tif n, ok := lockstepDraw(rng.lockstep); ok {\n\t\treturn n\n\t}\n"},
	},
	"math/rand/rand.go": {
		{"\trng, _ := src.(*rngSource)\n\tfor n", "\trng, _ := src.(*rngSource)\n\tif rng != nil {\n\t\tif _, ok := lockstepDraw(rng.lockstep); ok {\n\t\t\tpos = 0\n\t\t}\n\t}\n\tfor n"},
		{"// runtimeSource is an implementation of Source64 that uses the runtime\n",
			"//go:linkname lockstepDraw\nfunc lockstepDraw(seeded uint64) (uint64, bool)\n\n//go:linkname lockstepWorld\nfunc lockstepWorld() uint64\n\n// runtimeSource is an implementation of Source64 that uses the runtime\n"},
	},
	"crypto/internal/sysrand/rand.go": {
		{"func Read(b []byte) {\n", "//go:noescape\n//go:linkname lockstepFill\nfunc lockstepFill(b []byte) bool\n\nfunc Read(b []byte) {\n\tif lockstepFill(b) {\n\t\treturn\n\t}\n"},
	},
	// Dials.
	"net/dial.go": {
		{"func (d *Dialer) DialContext(ctx context.Context, network, address string) (Conn, error) {\n",
			"func (d *Dialer) DialContext(ctx context.Context, network, address string) (Conn, error) {\n\tif lockstepDial != nil {\n" +
				"\t\tif c, ours, err := lockstepDial(ctx, network, address); ours {\n\t\t\treturn c, err\n\t\t}\n\t}\n"},
	},
	// Clocks.
	"time/time.go": {
		{"func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n\tif mono == 0 {\n",
			"func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n\tif mono == 0 {\n\t\tif ahead, mono, ok := lockstepClock(); ok {\n\t\t\treturn lockstepTime(sec*1e9+int64(nsec)+ahead, mono)\n\t\t}\n"},
		{"//go:linkname runtimeIsBubbled\nfunc runtimeIsBubbled() bool\n",
			"//go:linkname runtimeIsBubbled\nfunc runtimeIsBubbled() bool\n\n" +
				"// lockstepClock returns how far the wall clock of the caller's process is ahead, and the time since the start of its world.\n" +
				"//\n//go:linkname lockstepClock\nfunc lockstepClock() (ahead, mono int64, ok bool)\n\n" +
				"// lockstepTime returns a time with a monotonic reading. unix is a time since 1970 in nanoseconds.\n" +
				"func lockstepTime(unix, mono int64) Time {\n\tt := Unix(0, unix)\n\tsec := t.sec() - minWall\n" +
				"\tif uint64(sec)>>33 != 0 {\n\t\treturn t\n\t}\n\treturn Time{hasMonotonic | uint64(sec)<<nsecShift | uint64(t.nsec()), mono, Local}\n}\n"},
	},
	// Pauses.
	"runtime/time.go": {
		{"\tperiod int64\n\tf      func(arg any, seq uintptr, delay int64)\n\targ    any\n\tseq    uintptr\n\n\t// If non-nil",
			"\tperiod int64\n\tf      func(arg any, seq uintptr, delay int64)\n\targ    any\n\tseq    uintptr\n\n\tlockstep      lockstepTimer\n\tlockstepDraws bool // see lockstepG.draw\n\n\t// If non-nil"},
		{"\tgp.sleepWhen = when\n", "\tgp.sleepWhen = when\n\tt.lockstep.process = gp.lockstep.process\n"},
		{"\tt.timer.init(nil, nil)\n", "\tt.timer.init(nil, nil)\n\tt.timer.lockstepMade()\n"},
		{"\tpending := t.when > 0\n\tt.when = when\n", "\tpending := t.when > 0\n\tt.when = when\n\tt.lockstep.due = 0\n"},
		{"\t\tif t.state&timerHeaped == 0 && when <= bubble.now {\n", "\t\tif t.state&timerHeaped == 0 && when <= bubble.now && !t.lockstepPaused(bubble.now) {\n"},
		{"\t\t\tt.rand = cheaprand()\n", "\t\t\tt.rand = lockstepOrder()\n"},
		{"\tt.unlockAndRun(now, bubble)\n\tassertLockHeld(&ts.mu)", "\tif t.lockstepPaused(now) {\n\t\tt.lockstepPutOff()\n\t\tt.unlock()\n\t\tgoto Redo\n\t}\n\n\tt.unlockAndRun(now, bubble)\n\tassertLockHeld(&ts.mu)"},
		{"\tvar next int64\n\tdelay := now - t.when\n", "\tvar next int64\n\tif due := t.lockstep.due; due != 0 {\n\t\tt.when, t.lockstep.due = due, 0\n\t}\n\tdelay := now - t.when\n"},
		{"\t\tgp.bubble = bubble\n\t\tbubble.changegstatus(gp, _Gdead, _Grunning)\n", "\t\tgp.bubble = bubble\n\t\tgp.lockstep = t.lockstepFires()\n\t\tbubble.changegstatus(gp, _Gdead, _Grunning)\n"},
		{"\t\tgp.bubble = nil\n\t}\n\n\tif ts != nil {\n", "\t\tgp.bubble = nil\n\t\tgp.lockstep = lockstepG{}\n\t}\n\n\tif ts != nil {\n"},
	},
}
