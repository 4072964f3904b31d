//go:build linux

package live

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/sim"
)

// side is a process of the scenario: the child process and its ways to the servers.
type side struct {
	s       *session
	index   int
	process scenarios.Process
	gates   []*gate // by node
	names   connNames
	cmd     *exec.Cmd
	in      io.WriteCloser
	enc     *gob.Encoder
	over    chan struct{} // the child has ended
	here    chan struct{} // closed when the child runs
	ready   chan error
	program prepared // of a Foreign

	// The rest is guarded by s.mu.
	dead    bool
	left    bool
	pauses  [][2]int64
	stops   int  // the pauses that are under way
	stands  bool // the last of pauses is under way
	threads []threadState
	ops     map[int]model.Event // the calls under way, by operation
}

type threadState int

const (
	stepping threadState = iota
	calling
	finished
)

// start starts the child.
func (c *side) start(dir string) error {
	log, err := os.Create(filepath.Join(dir, "client-"+c.process.Name+".log"))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	c.cmd = exec.Command(c.s.o.Program[0], c.s.o.Program[1:]...)
	c.cmd.Stderr = log
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return err
	}
	c.enc = gob.NewEncoder(c.in)
	if err := Spawn(c.cmd); err != nil {
		return fmt.Errorf("the client of process %s does not start: %w", c.process.Name, err)
	}
	go func() {
		defer close(c.over)
		dec := gob.NewDecoder(out)
		for {
			var u up
			if dec.Decode(&u) != nil {
				break
			}
			c.hear(u)
		}
		_ = c.cmd.Wait()
	}()
	return nil
}

// begins waits until the child says that it is ready.
func (c *side) begins() error {
	select {
	case err := <-c.ready:
		if err != nil {
			return unusablef("%s cannot be opened in process %s: %w", c.s.lock.Name, c.process.Name, err)
		}
		return nil
	case <-c.over:
		select {
		case err := <-c.ready: // the child said why
			if err != nil {
				return unusablef("%s cannot be opened in process %s: %w", c.s.lock.Name, c.process.Name, err)
			}
		default:
		}
		return fmt.Errorf("the client of process %s ended before it began; see its log", c.process.Name)
	case <-time.After(patience):
		return fmt.Errorf("the client of process %s does not begin", c.process.Name)
	}
}

// signal sends a signal to the child, and to the program of a Foreign.
// The error is os.ErrProcessDone if the child has ended.
func (c *side) signal(sig syscall.Signal) error {
	select {
	case <-c.over: // the process ID may belong to another process
		return os.ErrProcessDone
	default:
	}
	err := kill(-c.cmd.Process.Pid, sig)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}

// tell sends a message to the child. A child that has ended gets none.
func (c *side) tell(d down) { _ = c.enc.Encode(d) }

// hear handles a message of the child.
func (c *side) hear(u up) {
	s := c.s
	switch {
	case u.Prepared != nil:
		c.program = *u.Prepared
		c.ready <- nil
	case u.Here:
		close(c.here)
	case u.Ready:
		c.ready <- nil
	case u.Err != "":
		c.ready <- errors.New(u.Err)
	case u.Event != nil:
		s.mu.Lock()
		defer s.mu.Unlock()
		c.happened(*u.Event)
	case u.Sent != nil:
		s.mu.Lock()
		defer s.mu.Unlock()
		var m *message
		asked := u.Sent.Asked
		if u.Sent.Request != nil {
			m = s.unread(c, u.Sent.Conn, u.Sent.Index)
			m.request = *u.Sent.Request
		} else {
			m = s.message(c, u.Sent.Conn, u.Sent.Index, u.Sent.Words)
			asked = m.request.Own()
		}
		if m.told {
			return
		}
		m.sentNs, m.op, m.told = u.Sent.AtNs, u.Sent.Op, true
		close(m.known)
		if s.owners != nil {
			s.author(m, u.Sent.By, asked)
		}
	case u.Ask != nil:
		go c.answer(*u.Ask)
	case u.Gap != nil:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.gapNs = max(s.gapNs, lengthOutside(u.Gap.FromNs, u.Gap.ToNs, c.pauses))
	case u.Left:
		s.mu.Lock()
		defer s.mu.Unlock()
		c.left = true
	}
}

// lengthOutside returns the length of a time without the parts that it shares with other times.
func lengthOutside(from, to int64, others [][2]int64) int64 {
	length := to - from
	for _, x := range others {
		length -= max(0, min(to, x[1])-max(from, x[0]))
	}
	return length
}

// happened notes an event that the child reports. Guarded by s.mu.
func (c *side) happened(e model.Event) {
	if e.Thread > 0 {
		state := &c.threads[e.Thread-1]
		switch e.Kind {
		case model.KindInvoke:
			*state = calling
			c.ops[e.Op] = e
			c.claim(e)
		case model.KindReturn:
			*state = stepping
			delete(c.ops, e.Op)
			if held := c.s.valued[e.Lock]; e.Outcome == model.Granted && held != nil {
				c.s.owners.Granted(sim.Writer{Process: e.Process, Thread: e.ThreadName()}, e.Lock, held.Owner)
			}
		case model.KindDone:
			*state = finished
		case model.KindDefect:
			*state = finished
		}
		c.s.movedNs = max(c.s.movedNs, e.AtNs)
	}
	c.s.events = append(c.s.events, event{Event: e})
}

// opOf returns the operation for which a Foreign sends a command; 0: the command does not show it.
// Guarded by s.mu.
func (c *side) opOf(cmd sim.Command) int {
	for op, e := range c.ops {
		if sentFor(cmd, e) {
			return op
		}
	}
	return 0
}

// sentFor reports whether a command may belong to the operation that an event begins.
func sentFor(cmd sim.Command, e model.Event) bool {
	return cmd.Script == model.RoleForceUnlock && e.Action == model.ActForceUnlock ||
		cmd.Script != "" && cmd.Script != model.RoleRenew && slices.Contains(cmd.Owners, e.ThreadName())
}

// claim gives an operation the requests that a Foreign sent for it and that the parent saw before it
// heard of the operation. A request and the event take different ways, so on a busy machine the request
// may come first. Guarded by s.mu.
func (c *side) claim(e model.Event) {
	if c.s.foreign == nil {
		return
	}
	for _, m := range slices.Backward(c.s.messages) {
		if m.sentNs < e.AtNs {
			return
		}
		if m.side == c && sentFor(m.cmd, e) {
			m.op = e.Op
		}
	}
}

// answer answers a question of the child.
func (c *side) answer(a ask) {
	s := c.s
	out := answer{ID: a.ID}
	switch a.What {
	case askState:
		s.lookAtAll()
		s.mu.Lock()
		out.State = s.present(a.Lock)
		s.mu.Unlock()
	case askReply:
		s.mu.Lock()
		out.Reply, out.Found = s.opReply(c, a)
		s.mu.Unlock()
	case askPublished:
		s.mu.Lock()
		out.Number = s.published[a.Channel]
		s.mu.Unlock()
	case askVisit:
		s.travel(0, nil)
		s.mu.Lock()
		out.Event = s.resources.Visit(a.Visit)
		e := out.Event
		e.Process, e.Thread = c.process.Name, a.Thread
		s.record(e, nil)
		s.mu.Unlock()
		s.travel(0, nil)
	case askInterrupt:
		c.interrupt(a)
	}
	c.tell(down{Answer: &out})
}

// opReply is sim.World.OpReply for an operation of the child. Guarded by mu.
func (s *session) opReply(c *side, a ask) (reply string, ok bool) {
	for _, m := range s.messages {
		if m.side == c && m.op == a.Op && m.look >= 0 && m.cmd.Script == a.Role && m.reply.Answer != model.NotRun {
			reply, ok = m.reply.Shown, true
			if !a.Last {
				return reply, ok
			}
		}
	}
	return reply, ok
}

// interrupt passes an interrupt on to the process of its thread.
func (c *side) interrupt(a ask) {
	s := c.s
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, to := range s.sides {
		for i := range to.threads {
			if model.ThreadName(to.process.Name, i+1) != a.Target {
				continue
			}
			met := to.threads[i] == calling && !to.dead
			s.record(model.Event{Kind: model.KindUse, Process: c.process.Name, Thread: a.Thread, Phase: "interrupt", Text: a.Target, Met: met}, nil)
			if met {
				go to.tell(down{Interrupt: i + 1})
			}
		}
	}
}
