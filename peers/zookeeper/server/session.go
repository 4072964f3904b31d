package server

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"lockstep/sim"
)

const millisecond = int64(time.Millisecond)

// session is a session of a client. It outlives connections.
type session struct {
	id        int64
	timeoutMs int32
	// endsMs is the tick, by the clock of the server, at which the session ends unless its client
	// sends something before.
	endsMs int64
	conn   sim.ConnID // the connection that it has; 0: none
}

// Sessions end at a tick. The ticks are at multiples of tickMs of the machine's monotonic clock,
// and a session whose client sends something gets the first tick that is later than its timeout
// from then on.

// touch delays the end of a session. It reports whether the end has moved.
func (s *Server) touch(nowNs int64, x *session, timeoutMs int32) (moved bool) {
	ends := (s.elapsedMs(nowNs)+int64(timeoutMs))/s.tickMs*s.tickMs + s.tickMs
	moved = ends != x.endsMs
	x.endsMs = ends
	return moved
}

// elapsedMs returns the time of the clock by which sessions end.
func (s *Server) elapsedMs(nowNs int64) int64 { return s.bootMs + nowNs/millisecond }

// endsNs returns the instant at which a session ends, which is never before the end of a
// stall.
func (s *Server) endsNs(x *session) int64 {
	return max((x.endsMs-s.bootMs)*millisecond, s.stalledNs)
}

// inOrder returns the sessions in the order in which they end. Sessions that end at one tick
// are in the order of their ids.
func (s *Server) inOrder() []*session {
	return slices.SortedFunc(maps.Values(s.sessions), func(a, b *session) int {
		return cmp.Or(cmp.Compare(a.endsMs, b.endsMs), cmp.Compare(a.id, b.id))
	})
}

// firstID returns the id of the first session of a program that starts now.
func (s *Server) firstID(nowNs int64) int64 {
	return int64(uint64(s.elapsedMs(nowNs))<<24>>8 | 1<<56)
}

// password returns the password of a session, which depends on its id: 16 numbers of
// java.util.Random.
func password(id int64) []byte {
	const multiplier, mask = 0x5DEECE66D, 1<<48 - 1
	state := (uint64(id) ^ 0xB3415C00 ^ multiplier) & mask
	out := make([]byte, 0, 16)
	for len(out) < 16 {
		state = (state*multiplier + 0xB) & mask
		n := uint32(state >> 16)
		out = append(out, byte(n), byte(n>>8), byte(n>>16), byte(n>>24))
	}
	return out
}
