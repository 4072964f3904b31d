package sim

import (
	"cmp"
	"slices"
	"strings"
)

// ask is a goroutine that waits for its turn. One that yields has no caller, author or words.
type ask struct {
	p      *Process
	caller Author
	by     Author // for whom it writes
	words  string
	sends  string // the content of the request, which no record shows
	yields bool
	rank   int // of a goroutine that yields
	turn   chan struct{}
}

// Asks makes the author of the calling goroutine the author of requests of these words, whichever
// goroutine writes them, and whenever. From the first call on, a request of the process for which
// no goroutine asked has no author.
//
// The world does not know the words of a segment. If the process never asks, the author of a
// segment is the author of the goroutine that writes it. From the first call of Asks on, it is the
// author whose turn it is. Words that are values of a lock then determine the hold that the segment
// is about.
//
// Asks waits until the world lets the caller continue. Goroutines that ask at one instant continue
// one by one, in the order of their threads, words and calls, whatever woke them. No simulated time
// passes. Any goroutine but the world's own, without a mutex.
func (p *Process) Asks(words []string) { p.AsksToSend("", words) }

// AsksToSend is Asks for a request whose content says more than its words. Goroutines that ask for the same
// words in the same call continue in the order of the contents. No record shows a content.
func (p *Process) AsksToSend(content string, words []string) {
	by := p.w.lineage.author(p)
	p.askForAll(by, by, content, words)
}

// InCall reports whether what the calling goroutine sends belongs to a call that is under way.
func (p *Process) InCall() bool { return p.w.lineage.author(p).Op > 0 }

// Keeper returns a function that is Asks for requests that keep the hold of the calling thread on a
// lock, whichever goroutine calls the function. They belong to no call. The authors of other requests
// stay what they are.
func (p *Process) Keeper(lock string) func(words []string) {
	var by Author
	if t := p.w.lineage.caller(); t != nil {
		by = Author{Thread: t.name, Lock: lock, Kept: true}
	}
	return func(words []string) { p.ask(by, by, "", words) }
}

// Turn is Asks for requests that belong to no thread: the segments that are written in the
// turn have no author.
func (p *Process) Turn() { p.TurnToSend("") }

// TurnToSend is Turn for a request with a content, as in AsksToSend.
func (p *Process) TurnToSend(content string) {
	p.askForAll(p.w.lineage.author(p), Author{}, content, nil)
}

// Yield lets everything else that can happen at this instant happen first. Goroutines of the process that
// yield at one instant continue one by one, in the order of their ranks. No simulated time passes. The
// authors of requests stay what they are, unlike those after Asks. Any goroutine but the world's own,
// without a mutex.
func (p *Process) Yield(rank int) {
	p.w.await(&ask{p: p, yields: true, rank: rank, turn: make(chan struct{})})
}

// askForAll is ask, after which a request that nobody asked for has no author.
func (p *Process) askForAll(caller, by Author, content string, words []string) {
	p.w.mu.Lock()
	p.askedForAll = true
	p.w.mu.Unlock()
	p.ask(caller, by, content, words)
}

// ask waits for the turn of caller, which then writes a request with a content for by.
func (p *Process) ask(caller, by Author, content string, words []string) {
	w := p.w
	a := &ask{p: p, caller: caller, by: by, words: strings.Join(words, "\x00"), sends: content, turn: make(chan struct{})}
	w.mu.Lock()
	if p.asked == nil {
		p.asked = map[string]Author{}
	}
	p.asked[a.words] = a.by
	w.mu.Unlock()
	w.await(a)
	if p.turns != nil {
		p.takeTurn(by, words)
	}
}

// await waits for the turn of a.
func (w *World) await(a *ask) {
	w.mu.Lock()
	if w.noTurns {
		close(a.turn)
	} else {
		w.asks = append(w.asks, a)
	}
	w.mu.Unlock()
	w.bell.ring()
	<-a.turn
}

// Serves runs f, which starts a client that the calling thread has for one lock. A request
// of the goroutines that f starts belongs to the call on the lock that the thread is in at
// that time. If the thread is in no call, they write for the thread, and their requests
// renew its hold, if it has one. Any goroutine.
func (p *Process) Serves(lock string, f func()) { p.serve(lock, false, f) }

// Keeps is Serves for requests that belong to no call, even if the thread is in a call. An
// example are requests that the server answers much later. Any goroutine.
func (p *Process) Keeps(lock string, f func()) { p.serve(lock, true, f) }

func (p *Process) serve(lock string, keeps bool, f func()) {
	l := p.w.lineage
	t, done := l.caller(), make(chan struct{})
	go func() {
		defer close(done)
		if t != nil {
			l.serve(t, lock, keeps)
		}
		f()
	}()
	<-done
}

// nextAsk ends the current turn, and lets the first of the goroutines that ask continue. It reports
// false if there is none.
func (w *World) nextAsk() bool {
	if !w.asking {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turn = nil
	if w.asking = len(w.asks) > 0; !w.asking {
		return false
	}
	first := slices.MinFunc(w.asks, func(a, b *ask) int {
		return cmp.Or(cmp.Compare(a.p.index, b.p.index), cmp.Compare(a.caller.Thread, b.caller.Thread), cmp.Compare(a.words, b.words),
			cmp.Compare(a.caller.Op, b.caller.Op), cmp.Compare(a.rank, b.rank), cmp.Compare(a.sends, b.sends))
	})
	w.asks = slices.DeleteFunc(w.asks, func(a *ask) bool { return a == first })
	w.turn = first
	close(first.turn)
	w.stirred = true
	return true
}

// endTurn ends the current turn.
func (w *World) endTurn() {
	if !w.asking {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turn = nil
}

// endTurns lets every caller of Asks continue at once, from now on.
func (w *World) endTurns() {
	w.asking = true
	for w.nextAsk() {
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.noTurns = true
}

// asksForAll reports whether a request that nobody asked for has no author.
func (p *Process) asksForAll() bool {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	return p.askedForAll
}

// asker returns the author that asked for a request of these words. If nobody asked for it, it
// returns the author that wrote the request, unless the process asks for all its requests.
func (p *Process) asker(words []string, writer Author) Author {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	by, ok := p.asked[strings.Join(words, "\x00")]
	if !ok && !p.askedForAll {
		return writer
	}
	return by
}
