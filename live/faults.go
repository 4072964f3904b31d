//go:build linux

package live

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"lockstep/model"
	"lockstep/scenarios"
)

// plan lets each fault of the scenario strike at its time. It returns a function that waits until all
// faults are over.
func (s *session) plan(ctx context.Context) (struck func()) {
	ctx, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, f := range s.faults() {
		if f.Kind == model.FaultRule {
			r := &rule{number: i + 1, fault: f.FaultSpec, over: make(chan struct{})}
			s.rules = append(s.rules, r)
			if f.Until != nil {
				s.faultsDue++
				all.Go(func() {
					s.sleepUntil(ctx, *f.Until)
					s.mu.Lock()
					defer s.mu.Unlock()
					s.faultsDue--
					s.movedNs = s.now()
					r.end(s)
				})
			}
			continue
		}
		s.faultsDue++
		all.Go(func() {
			if s.sleepUntil(ctx, f.At) {
				if err := s.strike(ctx, i+1, f); err != nil {
					s.mu.Lock()
					s.failed = errors.Join(s.failed, fmt.Errorf("%s:%d: the fault cannot strike: %s: %w", f.Pos.File, f.Pos.Line, f.FaultSpec, err))
					s.mu.Unlock()
				}
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.faultsDue--
			s.movedNs = s.now()
		})
	}
	return func() {
		cancel()
		all.Wait()
	}
}

// sleepUntil waits for an instant of the run. It reports false when ctx is over before.
func (s *session) sleepUntil(ctx context.Context, at time.Duration) bool {
	t := time.NewTimer(at - time.Duration(s.now()))
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (s *session) side(process string) *side {
	for _, c := range s.sides {
		if c.process.Name == process {
			return c
		}
	}
	return nil
}

// strike makes a fault happen, and waits for its end.
func (s *session) strike(ctx context.Context, number int, f scenarios.Fault) error {
	e := model.Event{Kind: model.KindFault, Fault: number, Text: f.FaultSpec.String()}
	if len(f.Processes) == 1 {
		e.Process = f.Processes[0]
	}
	begins := func() {
		s.movedNs = s.now()
		s.record(e, nil)
	}
	ends := func() {
		e.Kind = model.KindFaultEnd
		s.movedNs = s.now()
		s.record(e, nil)
	}
	switch f.Kind {
	case model.FaultCrash:
		return s.side(f.Processes[0]).crash(begins)
	case model.FaultPause:
		return s.side(f.Processes[0]).pause(ctx, f, begins, ends)
	case model.FaultKey:
		return s.strikeKeys(number, f)
	case model.FaultServer:
		return s.strikeServer(ctx, number, f, begins, ends)
	case model.FaultPartition:
		s.mu.Lock()
		for _, name := range f.Processes {
			for _, g := range s.side(name).gates {
				if len(f.Servers) == 0 || slices.Contains(f.Servers, g.node.world+1) {
					g.cut = max(g.cut, s.now()+int64(f.For))
				}
			}
		}
		begins()
		s.mu.Unlock()
	case model.FaultWallClock:
		s.side(f.Processes[0]).tell(down{Step: f.Step})
		s.mu.Lock()
		begins()
		s.mu.Unlock()
	}
	if f.For > 0 {
		s.sleepUntil(ctx, f.At+f.For)
		s.mu.Lock()
		defer s.mu.Unlock()
		ends()
	}
	return nil
}

// crash ends the process.
func (c *side) crash(begins func()) error {
	s := c.s
	s.mu.Lock()
	again := c.dead // as in a world, the fault happens and has no effect
	s.mu.Unlock()
	if !again {
		if err := c.signal(syscall.SIGKILL); err != nil {
			return err
		}
		<-c.over // by then the parent has heard all that the child told
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.dead = true
	begins()
	return nil
}

// pause stops the process until the end of the fault.
func (c *side) pause(ctx context.Context, f scenarios.Fault, begins, ends func()) error {
	s := c.s
	if err := c.stop(); err != nil {
		if errors.Is(err, os.ErrProcessDone) {
			return nil // it has crashed
		}
		return err
	}
	s.mu.Lock()
	begins()
	c.stood(s.now(), f.For)
	s.mu.Unlock()
	s.sleepUntil(ctx, f.At+f.For)
	s.mu.Lock()
	defer s.mu.Unlock()
	ends()
	c.goOn(s.now())
	return nil
}

// strikeKeys makes a fault of keys happen.
func (s *session) strikeKeys(number int, f scenarios.Fault) (err error) {
	for i, n := range s.struck(f) {
		s.alone(n, func() {
			s.look(nil, look{node: n.index, fromNs: s.now()})
			l := look{node: n.index, fromNs: s.now()}
			if i == 0 { // the fault is one event
				l.fault, l.text = number, f.FaultSpec.String()
			}
			s.movedNs = l.fromNs
			if n.observed != nil {
				err = errors.Join(err, n.observed.Strike(f.FaultSpec))
			} else if s.failed == nil {
				gone, e := n.redis.strikeKeys(f.Key, f.KeyDo, s.looks[len(s.looks)-1].keys)
				err = errors.Join(err, e)
				if f.KeyDo == "expire" {
					l.removed = gone
				}
			}
			s.look(nil, l)
		})
	}
	return err
}

// strikeServer makes a fault of the server happen.
func (s *session) strikeServer(ctx context.Context, number int, f scenarios.Fault, begins, ends func()) (err error) {
	switch f.Server {
	case model.ServerStall:
		nodes := s.struck(f)
		for _, n := range nodes {
			if err := s.stall(ctx, n); err != nil {
				return err
			}
		}
		s.mu.Lock()
		begins()
		from := s.now()
		for _, n := range nodes {
			n.stalled++
			n.stalls = append(n.stalls, [2]int64{from, from + int64(f.For)})
		}
		s.mu.Unlock()
		s.sleepUntil(ctx, f.At+f.For)
		s.mu.Lock()
		var over []*node // another fault may stall a node, too
		for _, n := range nodes {
			if n.stalled--; n.stalled == 0 {
				over = append(over, n)
			}
			for i := range n.stalls {
				if n.stalls[i][0] == from {
					n.stalls[i][1] = s.now()
				}
			}
		}
		ends()
		s.mu.Unlock()
		for _, n := range over {
			if e := kill(n.Pid(), syscall.SIGCONT); !errors.Is(e, syscall.ESRCH) { // there is no process while the server starts again
				err = errors.Join(err, e)
			}
		}
		return err
	case model.ServerFlushScripts:
		for i, n := range s.struck(f) {
			s.alone(n, func() {
				l := look{node: n.index, fromNs: s.now()}
				if i == 0 {
					l.fault, l.text = number, f.FaultSpec.String()
				}
				err = errors.Join(err, n.redis.rdb.ScriptFlush(ctx).Err())
				s.look(nil, l)
			})
		}
		return err
	}
	switch {
	case f.Server == model.ServerMoveSlot:
		return s.moveSlot(ctx, number, f, ends)
	case s.group != nil:
		return s.failoverOfGroup(ctx, number)
	}
	for i, n := range s.struck(f) {
		again := func() (string, error) { return f.FaultSpec.String(), n.Restart(f.KeepData) }
		if f.Server == model.ServerFailover {
			again = n.redis.failover
		}
		first := 0
		if i == 0 { // the fault is one event
			first = number
		}
		if err := s.restart(n, first, again); err != nil {
			return err
		}
	}
	return nil
}

// stall stops the process of a node. If the server is starting again, stall waits for its process.
func (s *session) stall(ctx context.Context, n *node) error {
	end := s.now() + int64(patience)
	for {
		err := kill(n.Pid(), syscall.SIGSTOP)
		if err == nil {
			stopped(n.Pid())
			return nil
		}
		if !errors.Is(err, syscall.ESRCH) || s.now() > end || ctx.Err() != nil {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// startsMost is the longest time in which a server starts again on a machine that is not busy.
const startsMost = 3 * time.Second

// restart calls again, which ends a server, starts it again and says what happened. Requests wait
// until the server serves, on new connections. restart records the fault with the number; 0: it
// records none.
func (s *session) restart(n *node, number int, again func() (text string, err error)) error {
	n.turn <- struct{}{}
	defer func() { <-n.turn }()
	l := look{node: n.index, fromNs: s.now()}
	text, err := again()
	if err != nil {
		return err
	}
	if number > 0 {
		l.fault, l.text = number, text
	}
	s.mu.Lock()
	n.stalls = append(n.stalls, [2]int64{l.fromNs, s.now()})
	s.movedNs = s.now()
	s.look(nil, l)
	if took := s.now() - l.fromNs; took > int64(startsMost) {
		s.gapNs = max(s.gapNs, took)
	}
	s.mu.Unlock()
	if n.observed != nil {
		return nil // the end of the server closed the connections to it
	}
	for _, c := range s.sides {
		c.gates[n.index].proxy.Reset()
	}
	return nil
}

// faults returns the faults of the scenario with the servers that they strike.
func (s *session) faults() (all []scenarios.Fault) {
	for _, f := range s.sc.Faults {
		f.Nodes = nil
		for _, number := range f.Servers {
			f.Nodes = append(f.Nodes, s.nodes[number-1].name)
		}
		all = append(all, f)
	}
	return all
}

// stop stops the process, and waits until it stands still.
func (c *side) stop() error {
	c.s.mu.Lock()
	c.stops++
	err := c.signal(syscall.SIGSTOP)
	if err != nil {
		c.stops--
	}
	c.s.mu.Unlock()
	if err != nil {
		return err
	}
	stopped(c.cmd.Process.Pid)
	if c.program.Pid > 0 {
		stopped(c.program.Pid)
	}
	return nil
}

// stood notes that the process stands still from an instant on, for a pause of this length. Pauses that
// overlap count as one. Guarded by s.mu.
func (c *side) stood(from int64, length time.Duration) {
	until := from + int64(length)
	if c.stands {
		last := &c.pauses[len(c.pauses)-1]
		last[1] = max(last[1], until)
		return
	}
	c.stands = true
	c.pauses = append(c.pauses, [2]int64{from, until})
}

// goOn lets the process continue at the end of the last of its pauses. Guarded by s.mu.
func (c *side) goOn(at int64) {
	if c.stops--; c.stops > 0 {
		return
	}
	c.stands = false
	c.pauses[len(c.pauses)-1][1] = at
	_ = c.signal(syscall.SIGCONT)
}

// stopped waits until the kernel says that a process stands still.
func stopped(pid int) {
	for range 1000 {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return
		}
		if _, rest, ok := strings.Cut(string(text), ") "); ok && rest != "" && (rest[0] == 'T' || rest[0] == 'Z') {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
