package sim

import (
	"encoding/binary"
	"hash/fnv"
	mathrand "math/rand"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"

	cryptorand "crypto/rand"

	"lockstep/internal/chance"
)

// worldChance answers the draws of code under test from the standard library while a world runs.
// See Host.Chance.
type worldChance struct {
	seed   uint64
	bubble string // only goroutines of this bubble draw from streams
	// With a lineage each thread has a stream of its own; nil: all goroutines of the world share
	// one.
	lineage *lineage

	mu      sync.Mutex
	streams map[string]*rand.ChaCha8
}

// beginChance seeds the draws of the standard library for the goroutines of the caller's bubble,
// until endChance.
func beginChance(chooser Chooser, lineage *lineage) {
	c := &worldChance{lineage: lineage, seed: chooser.Choose("chance", 1<<62), bubble: bubbleOfCaller(), streams: map[string]*rand.ChaCha8{}}
	seedMathRand(int64(c.seed))
	chance.Answer(c.answer)
}

// endChance ends the effect of beginChance.
func endChance() {
	chance.Answer(nil)
	var b [8]byte
	_, _ = cryptorand.Read(b[:]) // it never fails
	seedMathRand(int64(binary.LittleEndian.Uint64(b[:])))
}

// answer fills b from the caller's stream if the caller belongs to the world.
func (c *worldChance) answer(b []byte) bool {
	if _, thread := ownRoot(); (!thread || unended.Load()) && bubbleOfCaller() != c.bubble {
		return false
	}
	name := c.lineage.thread()
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.streams[name]
	if s == nil {
		s = rand.NewChaCha8(streamSeed(c.seed, name))
		c.streams[name] = s
	}
	_, _ = s.Read(b) // it never fails
	return true
}

// streamSeed returns the seed of the stream with a name.
func streamSeed(seed uint64, name string) (s [32]byte) {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name))
	for i := range len(s) / 8 {
		binary.LittleEndian.PutUint64(s[8*i:], mix(seed^mix(h.Sum64()+uint64(i))))
	}
	return s
}

// environment is locked while GODEBUG differs from the program's own value.
var environment sync.Mutex

// seedMathRand seeds the functions of math/rand, which Go does only on request.
func seedMathRand(seed int64) {
	environment.Lock()
	defer environment.Unlock()
	const name = "GODEBUG"
	was, set := os.LookupEnv(name)
	if os.Setenv(name, was+",randseednop=0") != nil {
		return
	}
	//lint:ignore SA1019 nothing else seeds the functions that code under test calls
	mathrand.Seed(seed)
	if set {
		_ = os.Setenv(name, was)
	} else {
		_ = os.Unsetenv(name)
	}
}

// bubbleOfCaller returns the name of the calling goroutine's bubble, or "" when it is in
// none.
func bubbleOfCaller() string {
	var b [256]byte
	return bubbleOf(string(b[:runtime.Stack(b[:], false)]))
}

// Rand returns the process's own source of chance. The chooser seeds it, and no other process draws
// from it. Any goroutine may draw; the order in which threads draw decides their numbers.
func (p *Process) Rand() *rand.Rand {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	if p.rand == nil {
		// The name makes the streams of two processes differ, whatever the chooser drew.
		p.rand = rand.New(&lockedSource{from: rand.NewChaCha8(streamSeed(p.entropy, "rand/"+p.cfg.Name))})
	}
	return p.rand
}

// lockedSource is a source for several goroutines.
type lockedSource struct {
	mu   sync.Mutex
	from rand.Source
}

func (s *lockedSource) Uint64() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.from.Uint64()
}
