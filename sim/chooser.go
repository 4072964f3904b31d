package sim

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
)

// Chooser is the only source of chance in a world. Choose picks a number in [0, n), n at least 1,
// for the next decision of a stream. Streams are named after what they decide (latency/a,
// entropy/b/1 …) and are independent: leaving out one fault does not change the draws for anything
// else.
type Chooser interface {
	Choose(stream string, n uint64) uint64
}

// Decisions are the numbers that a run drew, by stream.
type Decisions map[string][]uint64

// Seeded draws at random from a seed.
type Seeded struct {
	seed    uint64
	streams map[string]*seededStream
}

// seededStream is a stream of a Seeded: the hash of its name, and the number of draws so far.
type seededStream struct{ hash, drawn uint64 }

// NewSeeded makes the seeded random chooser.
func NewSeeded(seed uint64) *Seeded {
	return &Seeded{seed: seed, streams: map[string]*seededStream{}}
}

// Choose implements Chooser: the k-th decision of a stream is a hash of seed,
// stream and k.
func (s *Seeded) Choose(stream string, n uint64) uint64 {
	st := s.streams[stream]
	if st == nil {
		h := fnv.New64a()
		_, _ = h.Write([]byte(stream))
		st = &seededStream{hash: h.Sum64()}
		s.streams[stream] = st
	}
	k := st.drawn
	st.drawn++
	x := mix(st.hash ^ mix(s.seed) ^ mix(k+0x9e3779b97f4a7c15))
	return x % n // a bias below n/2^64
}

// mix is the finalizer of splitmix64.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Recorder keeps the draws of another chooser.
type Recorder struct {
	From  Chooser
	Drawn Decisions
}

// NewRecorder records from.
func NewRecorder(from Chooser) *Recorder { return &Recorder{From: from, Drawn: Decisions{}} }

// Choose implements Chooser.
func (r *Recorder) Choose(stream string, n uint64) uint64 {
	v := r.From.Choose(stream, n)
	if v >= n {
		panic(fmt.Sprintf("sim: the chooser answered %d for %s, which has %d choices", v, stream, n))
	}
	r.Drawn[stream] = append(r.Drawn[stream], v)
	return v
}

// Replayer repeats decisions. If they end, or do not fit, it notes that the run diverged, and
// continues with 0.
type Replayer struct {
	from     Decisions
	next     map[string]int
	diverged string
	// wrap repeats a stream from its beginning instead of answering 0.
	wrap bool
}

// NewReplayer repeats d.
func NewReplayer(d Decisions) *Replayer {
	return &Replayer{from: d, next: map[string]int{}}
}

// NewLenientReplayer repeats d in a world that was changed on purpose: a stream that ends begins
// again.
func NewLenientReplayer(d Decisions) *Replayer {
	r := NewReplayer(d)
	r.wrap = true
	return r
}

// Choose implements Chooser.
func (r *Replayer) Choose(stream string, n uint64) uint64 {
	k := r.next[stream]
	r.next[stream] = k + 1
	d := r.from[stream]
	if r.wrap && len(d) > 0 {
		return d[k%len(d)] % n
	}
	if k >= len(d) || d[k] >= n {
		switch {
		case r.diverged != "":
		case k < len(d):
			r.diverged = fmt.Sprintf("decision %d of %s is %d in the recording, and only 0 to %d are possible", k+1, stream, d[k], n-1)
		default:
			r.diverged = fmt.Sprintf("decision %d of %s is not in the recording", k+1, stream)
		}
		return 0
	}
	return d[k]
}

// Diverged says where the run first asked for a decision that was not recorded; "" if it did not.
func (r *Replayer) Diverged() string { return r.diverged }

// hexID spreads a draw over the 32 hexadecimal digits of a request id.
func hexID(base uint64, words ...uint64) string {
	var b [16]byte
	x := base
	for _, w := range words {
		x = mix(x ^ mix(w))
	}
	binary.BigEndian.PutUint64(b[:8], mix(x))
	binary.BigEndian.PutUint64(b[8:], mix(x+1))
	return fmt.Sprintf("%x", b)
}
