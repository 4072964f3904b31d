package server

// flaws are errors that a test plants in a cell, to check that it finds them. Other cells have
// none.
type flaws struct {
	withoutLease    bool // the master serves although its lease is over
	sameGeneration  bool // a lock has one generation for ever
	noLockDelay     bool // a lock whose holder failed is free at once
	expiresByItself bool // a follower ends sessions by its own clock, without regard to KeepAlives
}

// expireByItself makes a follower propose to end each session that it has known for the length of a
// lease.
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
