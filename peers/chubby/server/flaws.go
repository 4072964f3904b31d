package server

// flaws are errors that a test of the cell plants, to see that it finds them. A cell has none.
type flaws struct {
	withoutLease    bool // the master serves although its lease is over
	sameGeneration  bool // a lock has one generation for ever
	noLockDelay     bool // a lock whose holder failed is free at once
	expiresByItself bool // a follower ends sessions by a clock of its own, which no KeepAlive sets
}

// expireByItself proposes, on a follower, to end sessions of which it has known for a lease.
func (r *Replica) expireByItself(nowNs int64) {
	if !r.cell.flaws.expiresByItself || r.master != nil {
		return
	}
	for _, id := range r.db.ids() {
		since, known := r.known[id]
		switch {
		case !known:
			r.known[id] = nowNs
		case nowNs > since+int64(SessionLease):
			r.propose(command{Request: Request{Do: expireSession, Session: id}})
		}
	}
}
