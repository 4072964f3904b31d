package redis

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	mserver "github.com/alicebob/miniredis/v2/server"

	"lockstep/model"
	"lockstep/sim"
)

// replica is a copy of the server's data that follows the server with a lag.
type replica struct {
	data  snapshot
	has   int64 // the last write that reached it
	acked int64 // the last write that the server knows to have reached it
	// out is the way of messages from the server, and in is the way back.
	out, in *sim.Way
	// behind is set on the replica that was the server before a failover, until the
	// data of the new server reaches it.
	behind bool
	// ahead is how far its wall clock is ahead of simulated time.
	ahead time.Duration
}

func (s *Server) newReplica(i int) *replica {
	r := &replica{}
	s.connect(r, i)
	return r
}

// connect connects replica i with the server by new ways, which carry no message yet.
func (s *Server) connect(r *replica, i int) {
	way := func(line, stream string) *sim.Way {
		return &sim.Way{Line: fmt.Sprintf(line, i+1), Stream: fmt.Sprintf(stream, i+1), Min: s.cfg.LagMin, Max: s.cfg.LagMax}
	}
	r.out, r.in = way("replica %d from server", "lag/%d/write"), way("replica %d to server", "lag/%d/ack")
}

// wait is a WAIT that has no answer yet.
type wait struct {
	conn  *conn
	count int
	upTo  int64 // the last write that it waits for
}

// replicate sends all changes since its last call to the replicas, as one write. It sends
// nothing if no data changed and nothing was published.
func (s *Server) replicate() {
	if len(s.replicas) == 0 {
		return
	}
	now := s.copyData()
	if !s.spoke && s.latest.equal(now) {
		return
	}
	if s.lags {
		s.out.Write(objWrites)
	}
	s.spoke = false
	s.writes++
	s.latest = now
	for i := range s.replicas {
		s.send(i)
	}
}

// send sends the data to replica i, which sends an acknowledgement back. Each message takes one
// lag. A message has no effect if the replicas were connected again meanwhile.
func (s *Server) send(i int) {
	r, term, write, data := s.replicas[i], s.term, s.writes, s.latest
	s.out.Send(r.out, func(_ int64, out *sim.Effects) {
		if s.term != term {
			return
		}
		r.has, r.data, r.behind = write, data, false
		out.Send(r.in, func(nowNs int64, out *sim.Effects) { s.acknowledged(nowNs, r, term, write, out) })
	})
}

// acknowledged notes that r has every write up to write. It answers each WAIT for which
// enough replicas have acknowledged now.
func (s *Server) acknowledged(nowNs int64, r *replica, term int, write int64, out *sim.Effects) {
	s.begin(nowNs, out)
	out.Read(sim.ObjectServer)
	switch {
	case s.term != term:
		return
	case s.stallTill > nowNs:
		out.Plan(s.stallTill, sim.ClassDelivery, func(nowNs int64, out *sim.Effects) { s.acknowledged(nowNs, r, term, write, out) })
		return
	}
	for i := r.acked + 1; s.lags && i <= write; i++ {
		out.Write(objAck(i))
	}
	r.acked = max(r.acked, write)
	for _, wt := range slices.Clone(s.waits) {
		if have := s.acks(wt.upTo); have >= wt.count {
			s.answer(wt, have)
		}
	}
}

// acks returns the number of replicas that have acknowledged every write up to write.
func (s *Server) acks(write int64) (n int) {
	for _, r := range s.replicas {
		if r.acked >= write {
			n++
		}
	}
	return n
}

// startWait answers WAIT at once, or blocks the connection until enough replicas have
// acknowledged or the timeout is over. As in Redis, WAIT waits for the writes of all
// clients up to the last command of its own connection. Within a transaction it waits
// for nothing.
func (s *Server) startWait(peer *mserver.Peer, args []string) {
	if len(args) != 2 {
		peer.WriteError("ERR wrong number of arguments for 'wait' command")
		return
	}
	count, err := strconv.Atoi(args[0])
	if err != nil {
		peer.WriteError("ERR value is not an integer or out of range")
		return
	}
	ms, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil || ms > maxWaitMs {
		peer.WriteError("ERR timeout is not an integer or out of range")
		return
	}
	if ms < 0 {
		peer.WriteError("ERR timeout is negative")
		return
	}
	c := s.executing.conn
	have := s.acks(c.seen)
	if have >= count || peer != c.peer || s.inQueue {
		peer.WriteInt(have)
		return
	}
	wt := &wait{conn: c, count: count, upTo: c.seen}
	c.waits = wt
	s.waits = append(s.waits, wt)
	if ms > 0 {
		s.out.Plan(s.nowNs+ms*int64(time.Millisecond), sim.ClassDeadline, func(nowNs int64, out *sim.Effects) { s.timeUp(nowNs, wt, out) })
	}
}

// maxWaitMs is the longest timeout that nanoseconds can count safely. The limit of Redis
// is not far above.
const maxWaitMs = int64(time.Duration(1)<<62) / int64(time.Millisecond)

// timeUp answers a WAIT whose timeout is over.
func (s *Server) timeUp(nowNs int64, wt *wait, out *sim.Effects) {
	s.begin(nowNs, out)
	switch {
	case wt.conn.waits != wt:
		return // the WAIT was answered, or its connection ended
	case s.stallTill > nowNs:
		out.Plan(s.stallTill, sim.ClassDeadline, func(nowNs int64, out *sim.Effects) { s.timeUp(nowNs, wt, out) })
		return
	}
	s.answer(wt, s.acks(wt.upTo))
}

// answer answers a WAIT.
func (s *Server) answer(wt *wait, have int) {
	s.forget(wt)
	reply := fmt.Appendf(nil, ":%d\r\n", have)
	s.out.Answer(wt.conn.id, ReplyOf(reply))
}

// forget ends a WAIT.
func (s *Server) forget(wt *wait) {
	wt.conn.waits = nil
	s.waits = slices.DeleteFunc(s.waits, func(o *wait) bool { return o == wt })
}

// hangUp ends the WAIT of a connection that has ended.
func (s *Server) hangUp(c *conn) {
	wt := c.waits
	if wt == nil {
		return
	}
	if s.lags {
		s.out.Write(objAck(wt.upTo))
	}
	s.forget(wt)
}

// candidate returns the index of the replica that a failover promotes. This is the replica
// with the most writes, and the first of several equals. A replica that was the server
// before and has not caught up comes last.
func (s *Server) candidate() int {
	best := 0
	for i, r := range s.replicas {
		b := s.replicas[best]
		if b.behind && !r.behind || b.behind == r.behind && r.has > b.has {
			best = i
		}
	}
	return best
}

// promote makes replica i the server. Writes that have not reached the replica are lost.
// The script cache is lost as well. The old server becomes a replica in its place.
func (s *Server) promote(i int) {
	s.setClock()
	r := s.replicas[i]
	s.replicas[i] = &replica{data: s.latest, has: s.writes, behind: true, ahead: s.ahead}
	s.setAhead(r.ahead)
	s.writes = r.has
	s.restore(r.data)
	s.flushScripts()
	s.resync()
}

// resync connects the replicas again. Messages under way are lost. The whole data reaches each
// replica after its lag.
func (s *Server) resync() {
	if len(s.replicas) == 0 {
		return
	}
	s.setClock()
	s.latest = s.copyData()
	s.term++
	for i, r := range s.replicas {
		r.acked = 0
		s.connect(r, i)
		s.send(i)
	}
}

// Describe is sim.Parts.Describe. It names the replica that a failover promotes.
func (s *Server) Describe(f model.FaultSpec) string {
	if f.Server != model.ServerFailover || len(s.replicas) == 0 {
		return f.String()
	}
	i := s.candidate()
	text := fmt.Sprintf("failover to replica %d, which ", i+1)
	switch r := s.replicas[i]; {
	case r.behind:
		return text + "was the server before and had not caught up"
	case r.has == s.writes:
		return text + "has every write"
	default:
		return text + fmt.Sprintf("lacks the last %d writes", s.writes-r.has)
	}
}

// info answers INFO. Only the section about replicas is simulated.
func (s *Server) info(peer *mserver.Peer, sections []string) {
	told := len(sections) == 0
	for _, section := range sections {
		told = told || slices.Contains([]string{"replication", "default", "all", "everything"}, strings.ToLower(section))
	}
	if !told {
		peer.WriteBulk(s.serverSection(sections))
		return
	}
	offset := func(writes int64) int64 {
		if s.orders {
			return 0 // the reply depends on no write, so INFO touches nothing
		}
		return writes
	}
	var b strings.Builder
	if text := s.serverSection(sections); text != "" {
		b.WriteString(text + "\r\n")
	}
	fmt.Fprintf(&b, "# Replication\r\nrole:master\r\nconnected_slaves:%d\r\n", len(s.replicas))
	for i, r := range s.replicas {
		fmt.Fprintf(&b, "slave%d:ip=192.0.2.%d,port=6379,state=online,offset=%d,lag=0\r\n", i, i+2, offset(r.acked))
	}
	fmt.Fprintf(&b, "master_failover_state:no-failover\r\nmaster_repl_offset:%d\r\n", offset(s.writes))
	peer.WriteBulk(b.String())
}

// serverSection returns the section Server, if it is asked for.
func (s *Server) serverSection(sections []string) string {
	if len(sections) == 0 || slices.ContainsFunc(sections, func(section string) bool {
		return slices.Contains([]string{"server", "default", "all", "everything"}, strings.ToLower(section))
	}) {
		return s.cfg.Release.section()
	}
	return ""
}
