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
// its jitter come from seed, and no two indexes give the same ids. It has no threads: the
// maker of a call passes the context of OutsideCall. No request waits for a turn.
func NewOutside(cfg ProcessConfig, index int, seed uint64, start time.Time, dial Dialer) *Process {
	w := &World{start: start, noTurns: true, notify: make(chan struct{}, 1)}
	return &Process{w: w, index: index, cfg: cfg, entropy: seed, dial: dial, notes: map[string][]*note{}}
}

// OutsideCall returns a context for an operation of a process that is in no world.
func OutsideCall(ctx context.Context, op int) context.Context {
	return context.WithValue(ctx, callKey{}, op)
}

// OpOf returns the operation for which the calling goroutine writes a request of these
// words, 0 if there is none. It belongs to a process that is in no world: its connections
// ask.
func (p *Process) OpOf(words []string) int { return p.opOf(words, goroutine()) }

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
