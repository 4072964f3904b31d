package redis

import (
	"slices"
	"strings"

	"lockstep/sim"
)

// miniredis refuses some commands of a transaction that Redis queues, and knows nothing of those that this package
// answers. So the server queues the commands itself. It asks miniredis only whether a key that the connection watches
// has changed.

// transaction has the commands since MULTI.
type transaction struct {
	queue [][]string
	dirty bool // a command was refused, so that EXEC executes nothing
}

// transact answers the commands of transactions, and queues the commands of an open one. It reports whether it
// answered the command, which a client sent.
func (s *Server) transact(c *conn, cmd string, args []string) bool {
	open := c.multi != nil
	switch cmd {
	case "MULTI", "EXEC", "DISCARD":
		switch {
		case len(args) > 0:
			c.refuse("ERR wrong number of arguments for '" + strings.ToLower(cmd) + "' command")
		case cmd == "MULTI" && open:
			c.peer.WriteError("ERR MULTI calls can not be nested")
		case cmd == "MULTI":
			c.multi = &transaction{}
			c.peer.WriteOK()
		case !open:
			c.peer.WriteError("ERR " + cmd + " without MULTI")
		case cmd == "EXEC":
			s.executeQueue(c)
		default:
			c.multi = nil
			s.unwatch(c)
			c.peer.WriteOK()
		}
	case "WATCH":
		if !open {
			c.watches = c.watches || len(args) > 0
			return false
		}
		c.peer.WriteError("ERR WATCH inside MULTI is not allowed")
	case "QUIT", "RESET":
		return false
	default:
		if !open {
			return false
		}
		if l := catalogue[cmd]; l != nil && !takes(l.arity, len(args)+1) {
			c.refuse("ERR wrong number of arguments for '" + strings.ToLower(cmd) + "' command")
			return true
		}
		c.multi.queue = append(c.multi.queue, append([]string{cmd}, args...))
		c.peer.WriteInline("QUEUED")
	}
	return true
}

// refuse answers a command with an error and does not execute it. A transaction that is open executes nothing then.
func (c *conn) refuse(text string) {
	if c.multi != nil {
		c.multi.dirty = true
	}
	c.peer.WriteError(text)
}

// Refuses is sim.Parts.Refuses. Redis executes these commands while it loads its data, while a script keeps it busy,
// and as a replica that has lost its master, and they write nothing.
func (*Server) Refuses(command string) bool {
	return !slices.Contains([]string{"MULTI", "DISCARD", "WATCH", "UNWATCH", "QUIT"}, command)
}

// Refuse is sim.Parts.Refuse.
func (s *Server) Refuse(id sim.ConnID, r *sim.Request, text string) []byte {
	c := s.conns[id]
	switch {
	case r.Name == "EXEC":
		c.multi = nil
		s.unwatch(c)
		text = "EXECABORT Transaction discarded because of: " + text
	case c.multi != nil:
		c.multi.dirty = true
	}
	return s.Refusal(text)
}

// executeQueue answers EXEC.
func (s *Server) executeQueue(c *conn) {
	t := c.multi
	c.multi = nil
	switch unchanged := s.unwatch(c); {
	case t.dirty:
		c.peer.WriteError("EXECABORT Transaction discarded because of previous errors.")
	case !unchanged && c.peer.Resp3:
		c.peer.WriteNull()
	case !unchanged:
		c.peer.WriteLen(-1)
	default:
		c.peer.WriteLen(len(t.queue))
		s.inQueue = true
		for _, words := range t.queue {
			s.m.Server().Dispatch(c.peer, words)
		}
		s.inQueue = false
	}
}

// unwatch ends the watches of a connection, and reports whether no watched key has changed.
func (s *Server) unwatch(c *conn) (unchanged bool) {
	if !c.watches {
		return true
	}
	c.watches = false
	s.quietly(c.peer, "MULTI")
	return s.quietly(c.peer, "EXEC") == "*0\r\n"
}
