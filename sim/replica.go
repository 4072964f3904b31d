package sim

import (
	"fmt"
	"lockstep/model"
	"slices"
	"strconv"
	"strings"
	"time"

	mserver "github.com/alicebob/miniredis/v2/server"
)

// replica is a copy of the server's data, one lag behind it.
type replica struct {
	data  snapshot
	has   int64 // the last write that reached it
	acked int64 // the last one that the server knows to have reached it
	// lastOut and lastIn are the nominal arrivals of the last message from and
	// to the server.
	lastOut, lastIn int64
	// behind: it was the server before a failover, and what the next one holds
	// has not reached it yet.
	behind bool
}

// wait is a WAIT that has no answer yet.
type wait struct {
	m     *message
	count int
	upTo  int64      // the writes that it waits for
	held  []*message // what came after it on its connection
}

// replicate sends what changed since it was called last to the replicas, as one
// write. What changes nothing and publishes nothing is none.
func (s *server) replicate() {
	if len(s.replicas) == 0 {
		return
	}
	now := s.copyData()
	if !s.spoke && s.latest.equal(now) {
		return
	}
	s.w.touchReplication(objWrites, true)
	s.spoke = false
	s.writes++
	s.latest = now
	for i := range s.replicas {
		s.send(i)
	}
}

// send lets the data reach a replica, and the acknowledgement the server. Both
// take a lag, and are void when the server was another meanwhile.
func (s *server) send(i int) {
	w, r, term, write, data := s.w, s.replicas[i], s.term, s.writes, s.latest
	var there, back string // lines; none: at once
	if w.orders != nil && !w.orders.NearReplicas {
		there = fmt.Sprintf("replica %d from server", i+1)
		back = fmt.Sprintf("replica %d to server", i+1)
	}
	w.travel(there, &r.lastOut, w.lag(i, "write"), func() {
		if s.term != term {
			return
		}
		r.has, r.data, r.behind = write, data, false
		w.travel(back, &r.lastIn, w.lag(i, "ack"), func() { s.acknowledged(r, term, write) }, nil)
	}, nil)
}

// lag draws how long a message between the server and replica i is under way.
func (w *World) lag(i int, what string) int64 {
	return w.between(w.cfg.LagMin, w.cfg.LagMax, fmt.Sprintf("lag/%d/%s", i+1, what))
}

func (s *server) acknowledged(r *replica, term int, write int64) {
	s.w.touch(objServer, false)
	switch w := s.w; {
	case s.term != term:
		return
	case w.stallTill > w.now():
		w.sched.add(w.stallTill, classDelivery, func() { s.acknowledged(r, term, write) })
		return
	}
	for i := r.acked + 1; i <= write; i++ {
		s.w.touchReplication(objAck(i), true)
	}
	r.acked = max(r.acked, write)
	for _, wt := range slices.Clone(s.waits) {
		if have := s.acks(wt.upTo); have >= wt.count {
			s.answer(wt, have)
		}
	}
}

// acks is how many replicas have acknowledged all up to a write.
func (s *server) acks(write int64) (n int) {
	for _, r := range s.replicas {
		if r.acked >= write {
			n++
		}
	}
	return n
}

// wait answers WAIT at once, or leaves its connection blocked until replicas
// enough have acknowledged, or its time is over. As in Redis it waits for all
// that was written, by whomever, up to the last command of its own connection,
// and within a transaction for nothing.
func (s *server) wait(peer *mserver.Peer, args []string) {
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
	w, c := s.w, s.executing.conn
	have := s.acks(c.seen)
	if have >= count || peer != c.peer {
		peer.WriteInt(have)
		return
	}
	wt := &wait{m: s.executing, count: count, upTo: c.seen}
	c.waits = wt
	s.waits = append(s.waits, wt)
	if ms > 0 {
		w.sched.add(w.now()+ms*int64(time.Millisecond), classDeadline, func() { s.timeUp(wt) })
	}
}

// maxWaitMs keeps a timeout within what nanoseconds can count; Redis's own
// limit is not far above.
const maxWaitMs = int64(time.Duration(1)<<62) / int64(time.Millisecond)

func (s *server) timeUp(wt *wait) {
	switch w := s.w; {
	case wt.m.conn.waits != wt:
		return // answered, or its connection ended
	case w.stallTill > w.now():
		w.sched.add(w.stallTill, classDeadline, func() { s.timeUp(wt) })
		return
	}
	s.answer(wt, s.acks(wt.upTo))
}

func (s *server) answer(wt *wait, have int) {
	s.forget(wt)
	s.setClock() // what is observed now must not be read by the clock of the last command
	s.w.executed(wt.m, fmt.Appendf(nil, ":%d\r\n", have))
	for _, m := range wt.held {
		s.w.putOff(m)
	}
}

func (s *server) forget(wt *wait) {
	wt.m.conn.waits = nil
	s.waits = slices.DeleteFunc(s.waits, func(o *wait) bool { return o == wt })
}

// hangUp drops what a connection waits for, and what waits behind it.
func (s *server) hangUp(c *conn) {
	wt := c.waits
	if wt == nil {
		return
	}
	s.w.touchReplication(objAck(wt.upTo), true)
	s.forget(wt)
	why := model.LostClosed
	if c.severed {
		why = model.LostReset
	}
	for _, m := range append([]*message{wt.m}, wt.held...) {
		s.w.lost(m, "request", why)
	}
}

// candidate is the replica that a failover promotes: the one with most of the
// data, the first of equals. One that was the server itself and has not caught
// up comes last.
func (s *server) candidate() int {
	best := 0
	for i, r := range s.replicas {
		b := s.replicas[best]
		if b.behind && !r.behind || b.behind == r.behind && r.has > b.has {
			best = i
		}
	}
	return best
}

// promote makes the server of a replica. Writes that had not reached it are
// gone, and scripts with the old server, which comes back in its place.
func (s *server) promote(i int) {
	s.setClock()
	r := s.replicas[i]
	s.replicas[i] = &replica{data: s.latest, has: s.writes, behind: true}
	s.writes = r.has
	s.restore(r.data)
	s.flushScripts()
	s.resync()
}

// resync connects the replicas anew: what was under way is gone, and the whole
// of the data reaches each after its lag.
func (s *server) resync() {
	if len(s.replicas) == 0 {
		return
	}
	s.setClock()
	s.latest = s.copyData()
	s.term++
	for i, r := range s.replicas {
		r.acked, r.lastOut, r.lastIn = 0, 0, 0
		s.send(i)
	}
}

// describe is Fault.Describe with what only the running world knows.
func (w *World) describe(f model.FaultSpec) string {
	s := w.server
	if f.Kind != model.FaultServer || f.Server != "failover" || len(s.replicas) == 0 {
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

// info answers INFO, of which the world has what tells of replicas.
func (s *server) info(peer *mserver.Peer, sections []string) {
	told := len(sections) == 0
	for _, section := range sections {
		told = told || slices.Contains([]string{"replication", "default", "all", "everything"}, strings.ToLower(section))
	}
	if !told {
		peer.WriteBulk("")
		return
	}
	offset := func(writes int64) int64 {
		if s.w.orders != nil {
			return 0 // so that it depends on nobody
		}
		return writes
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# Replication\r\nrole:master\r\nconnected_slaves:%d\r\n", len(s.replicas))
	for i, r := range s.replicas {
		fmt.Fprintf(&b, "slave%d:ip=192.0.2.%d,port=6379,state=online,offset=%d,lag=0\r\n", i, i+2, offset(r.acked))
	}
	fmt.Fprintf(&b, "master_failover_state:no-failover\r\nmaster_repl_offset:%d\r\n", offset(s.writes))
	peer.WriteBulk(b.String())
}
