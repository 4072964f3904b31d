package sim

import (
	"cmp"
	"slices"

	"lockstep/model"
)

// watch waits for a channel that is closed to report the end of a hold to a thread.
type watch struct {
	t    *Thread
	lock string
	// over is set by the thread, or at the end of the world. Then the watch reports nothing any
	// more. Guarded by w.mu.
	over bool
	stop chan struct{} // closed when over is set
}

// Watch records that the thread learns of the end of its hold when lost is closed, unless stop is
// called before. A process that is paused learns of it when the pause ends. Only the thread's
// goroutine may call Watch and stop, between two of its steps.
func (t *Thread) Watch(lock string, lost <-chan struct{}) (stop func()) {
	w := t.p.w
	x := &watch{t: t, lock: lock, stop: make(chan struct{})}
	w.mu.Lock()
	w.watches = append(w.watches, x)
	w.mu.Unlock()
	go func() {
		select {
		case <-lost:
			w.mu.Lock()
			w.closed = append(w.closed, x)
			w.mu.Unlock()
			w.bell.ring()
		case <-x.stop:
		}
	}()
	return func() { w.unwatch(x) }
}

// unwatch ends a watch.
func (w *World) unwatch(x *watch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watches = slices.DeleteFunc(w.watches, func(other *watch) bool { return other == x })
	if !x.over {
		x.over = true
		close(x.stop)
	}
}

// recordTold records which threads have learned of the end of a hold, in an order that is the same in
// each run.
func (w *World) recordTold(closed []*watch) {
	slices.SortStableFunc(closed, func(a, b *watch) int {
		return cmp.Or(cmp.Compare(a.t.p.index, b.t.p.index), cmp.Compare(a.t.number, b.t.number), cmp.Compare(a.lock, b.lock))
	})
	for _, x := range closed {
		x.t.p.afterPauseNow(classStep, func() {
			w.mu.Lock()
			over := x.over
			w.mu.Unlock()
			if over || w.leaving || x.t.p.dead || x.t.p.closed || x.t.killed {
				return
			}
			w.unwatch(x)
			w.touch(objProcess(x.t.p), true)
			x.t.Record(model.Event{Kind: model.KindTold, Lock: x.lock})
		})
	}
}

// endWatches ends all watches.
func (w *World) endWatches() {
	w.mu.Lock()
	open := slices.Clone(w.watches)
	w.mu.Unlock()
	for _, x := range open {
		w.unwatch(x)
	}
}
