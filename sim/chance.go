package sim

import (
	crand "crypto/rand"
	"encoding/binary"
	"io"
	mrand "math/rand"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
)

// Rand returns a source of chance of the process, which repeats with the seed.
func (p *Process) Rand() *rand.Rand {
	return rand.New(rand.NewPCG(p.entropy, uint64(p.index)))
}

// chance is the source of chance for code that takes it from crypto/rand. Goroutines of a
// world with Config.Chance draw from the world; all others draw from the source that
// crypto/rand had before.
type chance struct {
	real  io.Reader
	world atomic.Pointer[World]
}

var (
	global      chance
	installOnce sync.Once
)

// SeedChance prepares the program for worlds with Config.Chance. It replaces the Reader
// of crypto/rand, and has to be called before other goroutines use it, as in an init
// function.
func SeedChance() {
	installOnce.Do(func() {
		global.real = crand.Reader
		crand.Reader = &global
	})
}

// Read implements io.Reader.
func (c *chance) Read(b []byte) (int, error) {
	w := c.world.Load()
	if w == nil || bubbleOf(string(ownStackHead())) != w.bubble {
		return c.real.Read(b)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	// A stream per thread, so that a draw does not depend on what other threads draw.
	stream := w.lineage.thread()
	if w.streams[stream] == nil {
		w.streams[stream] = seededReader(w.chanceSeed, stream)
	}
	return w.streams[stream].Read(b)
}

func seededReader(seed uint64, stream string) *rand.ChaCha8 {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	binary.LittleEndian.PutUint64(key[8:], uint64(NewSeeded(seed).Choose("chance/"+stream, 1<<62)))
	return rand.NewChaCha8(key)
}

// ownStackHead returns the first line of the calling goroutine's stack.
func ownStackHead() []byte {
	var b [128]byte
	return b[:runtime.Stack(b[:], false)]
}

// seedChance lets the goroutines of w draw from w until restore is called. The package
// functions of math/rand are seeded for the whole program; afterwards they are seeded
// from real chance. Those of math/rand/v2 and hash/maphash cannot be seeded.
func (w *World) seedChance() (restore func()) {
	if global.real == nil {
		panic("sim: Config.Chance needs SeedChance")
	}
	w.chanceSeed = w.chooser.Choose("chance", 1<<62)
	w.streams = map[string]*rand.ChaCha8{}
	w.bubble = bubbleOf(string(ownStackHead()))
	global.world.Store(w)
	before, was := os.LookupEnv("GODEBUG")
	_ = os.Setenv("GODEBUG", strings.TrimPrefix(before+",randseednop=0", ","))
	seedPackage(int64(w.chanceSeed))
	return func() {
		global.world.Store(nil)
		var b [8]byte
		_, _ = io.ReadFull(global.real, b[:])
		seedPackage(int64(binary.LittleEndian.Uint64(b[:])))
		if was {
			_ = os.Setenv("GODEBUG", before)
		} else {
			_ = os.Unsetenv("GODEBUG")
		}
	}
}

// seedPackage seeds the package functions of math/rand. GODEBUG must have randseednop=0.
func seedPackage(seed int64) {
	mrand.Seed(seed) //lint:ignore SA1019 nothing else seeds the functions that a lock under test calls
}
