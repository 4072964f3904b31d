package sim

import (
	"testing/synctest"
	"time"

	"lockstep/model"
)

// heal begins the calm phase: rules end, and release the messages that they held.
func (w *World) heal() {
	w.calm = true
	w.moved = w.now()
	w.record(&model.Event{Kind: model.KindCalm})
	for _, r := range w.rules {
		r.end(w)
	}
}

// leave ends the run for the threads: open calls are recorded as waiting and
// interrupted, clients close without unlocking.
func (w *World) leave() {
	w.leaving = true
	w.orders.settle()
	if !w.calm {
		w.heal()
	}
	w.record(&model.Event{Kind: model.KindLeave})
	var open []*call
	for _, p := range w.processes {
		for _, t := range p.threads {
			if t.call != nil && p.dead {
				w.orphans = append(w.orphans, t.call)
			}
			if t.call != nil && !p.dead {
				w.record(&model.Event{Kind: model.KindReturn, Process: p.cfg.Name, Thread: t.number, Op: t.call.op,
					Action: t.call.what.Action, Lock: t.call.what.Lock, Outcome: model.Waiting})
				open = append(open, t.call)
			}
			t.call = nil
		}
		if !p.dead {
			p.closeClient()
		}
	}
	synctest.Wait() // a call that ends with its client leaves another record than a call that is cancelled
	for _, c := range open {
		c.cancel(ErrInterrupted)
	}
	w.endAt = w.now() + int64(w.cfg.Drain)
}

// end records the leftovers, cuts all connections, and waits for sleeping goroutines to end.
func (w *World) end() {
	for _, n := range w.nodes {
		n.call(func(_ int64, out *Effects) { n.parts.Leftovers(out) })
	}
	w.over = true
	w.endTurns()
	w.endWatches()
	for _, p := range w.processes {
		p.crashed, p.dead = p.dead, true
		if p.close != nil && !p.closed {
			go p.runClose()
		}
		for _, t := range p.threads {
			t.kill()
		}
	}
	w.stirred = true
	w.gather()
	for _, c := range w.orphans {
		c.cancel(ErrInterrupted) // nothing of a dead process may continue
	}
	w.cutAll()
	for _, n := range w.nodes {
		if n.stream != nil {
			n.parts.Stop() // its timers would go on
		}
	}
	for range 4 { // sleepers may start others
		time.Sleep(time.Minute)
		w.readClock()
		synctest.Wait()
		w.alive.park()
		w.cutAll()
	}
	for _, n := range w.nodes {
		if n.stream == nil {
			n.parts.Stop()
		}
	}
	synctest.Wait()
	w.endedNs = w.now()
}

// cutAll cuts the connections that clients have dialled since its last call.
func (w *World) cutAll() {
	for _, p := range w.processes {
		w.mu.Lock()
		dialled := p.conns[p.cut:]
		p.cut = len(p.conns)
		w.mu.Unlock()
		for _, c := range dialled {
			c.client.cut(errCut)
			w.disconnect(c)
		}
	}
}
