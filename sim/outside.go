package sim

import (
	"context"
	"net"
	"time"
)

// A Dialer opens a connection to a server, as net.Dialer.DialContext does.
type Dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// NewOutside returns a process that is in no world, in which a lock is opened as in a world. It
// runs in real time from start on, and gets its connections from dial. Its wall clock is that of
// the machine with the offset, drift and steps of cfg. Its ids and its jitter come from seed, and
// no two indexes give the same ids. Its threads have no bodies: the player of a thread calls
// Enters, Begins and Ends, and passes the context of OutsideCall to each call. No request waits for
// a turn. The calling goroutine works for no thread.
func NewOutside(cfg ProcessConfig, index int, seed uint64, start time.Time, dial Dialer) *Process {
	w := &World{start: start, noTurns: true, lineage: newLineage()}
	p := &Process{w: w, index: index, cfg: cfg, entropy: seed, dial: dial, notes: map[string]*note{}}
	p.addThreads()
	return p
}

// OutsideCall returns a context for an operation of a process that is in no world.
func OutsideCall(ctx context.Context, op int) context.Context {
	return context.WithValue(ctx, callKey{}, op)
}

// Enters makes the calling goroutine that of a thread, given by its number, of a process that is in
// no world.
func (p *Process) Enters(thread int) { p.w.lineage.register(p.threads[thread-1]) }

// Begins and Ends bracket an operation of a thread of a process that is in no world.
func (p *Process) Begins(thread, op int, what Operation) {
	p.w.lineage.begins(p.threads[thread-1], op, what)
}

// Ends ends the operation that Begins began.
func (p *Process) Ends(thread int) { p.w.lineage.ends(p.threads[thread-1]) }

// SenderOf returns the author for whom the calling goroutine writes a request of these words, and
// the operation to which it belongs, 0 for none. The connections of a process that is in no world
// call it.
func (p *Process) SenderOf(words []string) (by Author, op int) {
	by = p.asker(words, p.w.lineage.author(p))
	if by.Op > 0 {
		return by, by.Op
	}
	return by, p.opOf(words, goroutine())
}

// The limits of a turn in real time. A goroutine that has its turn begins to write within
// askedMost, and has written everything within turnMost of its first write.
const (
	askedMost = 10 * time.Millisecond
	turnMost  = 2 * time.Millisecond
)

// talk is the turn of a caller that asked for it, in real time. The caller of TakesTurns waits for
// it.
type talk struct {
	by     Author
	words  []string
	wrote  chan struct{} // closed by the first write
	closed bool
}

// TakesTurns makes the callers of Asks, Keeper and Turn wait for their turns. It is for a process
// that is in no world and whose servers speak a stream: see SpeakerOf. A turn ends soon after a
// write.
func (p *Process) TakesTurns() { p.turns = make(chan struct{}, 1) }

// takeTurn gives the caller its turn once the earlier turns are over.
func (p *Process) takeTurn(by Author, words []string) {
	p.turns <- struct{}{}
	x := &talk{by: by, words: words, wrote: make(chan struct{})}
	p.w.mu.Lock()
	p.talks = x
	p.w.mu.Unlock()
	go func() {
		select {
		case <-x.wrote:
			time.Sleep(turnMost)
		case <-time.After(askedMost):
		}
		p.w.mu.Lock()
		p.talks = nil
		p.w.mu.Unlock()
		<-p.turns
	}()
}

// SpeakerOf is SenderOf for bytes on a stream. If the process uses turns, the bytes belong to the
// goroutine that has the turn, and asked has the words that it asked for. Otherwise they belong to
// the calling goroutine.
func (p *Process) SpeakerOf() (by Author, asked []string) {
	by = p.w.lineage.author(p)
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	switch x := p.talks; {
	case x != nil:
		if !x.closed {
			x.closed = true
			close(x.wrote)
		}
		return x.by, x.words
	case !p.askedForAll:
		return by, nil
	}
	return Author{}, nil
}

// StepWallClock lets the wall clock of a process that is in no world jump.
func (p *Process) StepWallClock(by time.Duration) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.jump += by
}

// CloseClients shuts the clients of a process that is in no world down, by the function that
// OnClose set.
func (p *Process) CloseClients() {
	if p.close != nil {
		p.close()
	}
}
