package sim

import (
	"context"
	"net"
	"time"
)

// A Dialer opens a connection to a server, as net.Dialer.DialContext does.
type Dialer func(ctx context.Context, network, addr string) (net.Conn, error)

// NewOutside returns a process that is in no world, so that a lock is opened there as it is
// opened in a world. It runs in real time from start on, and dial gives it its connections.
// Its wall clock is that of the machine with the offset, drift and steps of cfg. Its ids and
// its jitter come from seed, and no two indexes give the same ids. Its threads have no bodies:
// the player of a thread calls Enters, Begins and Ends, and passes the context of OutsideCall to
// each call. No request waits for a turn. The calling goroutine works for no thread.
func NewOutside(cfg ProcessConfig, index int, seed uint64, start time.Time, dial Dialer) *Process {
	w := &World{start: start, noTurns: true, notify: make(chan struct{}, 1), lineage: newLineage()}
	p := &Process{w: w, index: index, cfg: cfg, entropy: seed, dial: dial, notes: map[string][]*note{}}
	p.addThreads()
	return p
}

// OutsideCall returns a context for an operation of a process that is in no world.
func OutsideCall(ctx context.Context, op int) context.Context {
	return context.WithValue(ctx, callKey{}, op)
}

// Enters makes the calling goroutine the one of a thread, by its number, of a process that
// is in no world.
func (p *Process) Enters(thread int) { p.w.lineage.register(p.threads[thread-1]) }

// Begins and Ends bracket an operation of a thread of a process that is in no world.
func (p *Process) Begins(thread, op int, what Operation) {
	p.w.lineage.begins(p.threads[thread-1], op, what)
}

// Ends is the end of Begins.
func (p *Process) Ends(thread int) { p.w.lineage.ends(p.threads[thread-1]) }

// SenderOf returns for whom the calling goroutine writes a request of these words, and the
// operation in which it does, 0 if it is in none. It belongs to a process that is in no world: its
// connections ask.
func (p *Process) SenderOf(words []string) (by Author, op int) {
	by = p.asker(words, p.w.lineage.author(p))
	if by.Op > 0 {
		return by, by.Op
	}
	return by, p.opOf(words, goroutine())
}

// StepWallClock lets the wall clock of a process jump that is in no world.
func (p *Process) StepWallClock(by time.Duration) {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.jump += by
}

// CloseClients shuts the clients of a process down that is in no world, as OnClose was told.
func (p *Process) CloseClients() {
	if p.close != nil {
		p.close()
	}
}
