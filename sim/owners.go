package sim

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"lockstep/model"
)

// Owners learns which thread each value that a server holds stands for. A lock writes a value of
// its choice, such as a random text, to mark its holder. The value that a request of a thread made
// the server hold first belongs to that thread, until a request of another thread takes the lock with
// the same value. A nil *Owners learns nothing, and is for states that name threads.
type Owners struct {
	threads map[string]string // process/thread by lock and value
	// unknown has the values whose writer is unknown, with the process that wrote them and the thread that may have.
	// Once a call of the process is granted the lock that has such a value, the value belongs to its thread.
	unknown map[string]Writer
	// guessed has the values whose threads were guessed.
	guessed map[string]bool
	// carried has the values that stood in the request of the thread to which they belong.
	carried map[string]bool
	// writers has, by word, the thread that first sent a request with the word. If no request led a
	// server to hold a value, the value belongs to the writer of that word.
	writers map[string]string
	// segments has what calls sent on streams, in order, and searched the number of these in which a value was not found.
	segments []segment
	searched map[string]int
	// locks has the lock for which each value was written; "" for a value of several locks.
	locks map[string]string
	// takes has, by thread and lock, the words of the request with which the thread took the lock last, or of its
	// first request for the lock if it has not had the lock.
	takes map[string]map[string][]string
	// renewals has, by form, the locks whose holds requests of unknown threads prolonged.
	renewals map[string]string
	// outside has the words that a request outside of all calls, such as a renewal, was the first to carry.
	outside map[string]bool
	// rewrites has, for each value that a holder wrote over the value of its hold, the number of threads that did one after the other.
	rewrites map[string]int
}

// segment is a part of a stream that a thread sent in a call. Its words are unknown, but a value of the thread's choice stands
// in it as it is.
type segment struct{ thread, text string }

// has reports whether a value stands in a segment between bytes that are neither letters nor digits.
func (s segment) has(value string) bool {
	for at := 0; ; at++ {
		i := strings.Index(s.text[at:], value)
		if i < 0 {
			return false
		}
		at += i
		if end := at + len(value); (at == 0 || !isAlnum(s.text[at-1])) && (end == len(s.text) || !isAlnum(s.text[end])) {
			return true
		}
	}
}

func isAlnum(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// leastValue is the least length of a value that is looked for in segments. A shorter one may be part of anything.
const leastValue = 8

// NewOwners returns an Owners that has learned nothing yet.
func NewOwners() *Owners {
	return &Owners{threads: map[string]string{}, unknown: map[string]Writer{}, guessed: map[string]bool{}, carried: map[string]bool{}, writers: map[string]string{}, searched: map[string]int{}, locks: map[string]string{},
		takes: map[string]map[string][]string{}, renewals: map[string]string{}, outside: map[string]bool{}, rewrites: map[string]int{}}
}

// A Writer is the sender of a request. Thread is "" if only the process is known, and Words is nil if
// the words of the request are not known. Guessed is that of an Author.
// Acquires says that an acquire sent it on a stream, whose words nobody can read. Perhaps is the thread of a Shared one. Reply has
// the words that the server answered; nil for a program, which may answer with the value of another thread.
type Writer struct {
	Process, Thread string
	Words           []string
	Guessed         bool
	Acquires        bool
	Perhaps         string
	Reply           []string
}

// Sends notes that an author sends a request of these words, and returns the author with the lock that the
// request is about. Outside of calls, a request belongs to the thread whose value it carries. A stream tells no names of
// commands, and its words are those for which its turn was asked.
// holder returns the thread that holds a lock; "": nobody does.
func (o *Owners) Sends(by Author, words []string, stream bool, holder func(lock string) string) Author {
	switch {
	case by.Kept:
		if by.Thread != holder(by.Lock) {
			by.Lock = ""
		}
	case by.Thread != "" && by.Lock == "":
		switch by.Lock = o.About(words); {
		case stream:
		case by.Lock == "":
			by.Lock = o.Beside(by.Thread, words)
		case o.onlyRewrites(by.Lock, words):
			by.Lock = cmp.Or(o.Beside(by.Thread, words), o.named(by.Thread, words), by.Lock)
		}
	}
	if by.Op == 0 && by.Lock != "" {
		by.Thread = o.Whose(by.Lock, words, by.Thread, holder)
	}
	if by.Action != model.ActUnlock && !by.Guessed { // what an unlock writes first is for another thread
		o.wrote(by, words)
	}
	return by
}

// SendsSegment notes a part of a stream that an author sends, as Sends returned the author. What an unlock writes first is for
// another thread.
func (o *Owners) SendsSegment(by Author, text string) {
	if o != nil && by.Thread != "" && by.Op > 0 && !by.Guessed && by.Action != model.ActUnlock {
		o.segments = append(o.segments, segment{by.Thread, text})
	}
}

// writer returns the thread that first sent a value, as a word or in a segment; "": it is unknown.
func (o *Owners) writer(value string) string {
	if t, ok := o.writers[value]; ok || len(value) < leastValue {
		return t
	}
	for _, s := range o.segments[o.searched[value]:] {
		if s.has(value) {
			return s.thread
		}
	}
	o.searched[value] = len(o.segments)
	return ""
}

// sent reports whether a thread sent a value in a segment.
func (o *Owners) sent(thread, value string) bool {
	return slices.ContainsFunc(o.segments, func(s segment) bool { return s.thread == thread && s.has(value) })
}

// wrote notes that a thread sent a request of these words. In a call on another lock than that of a value, the
// value is one of several locks from then on.
func (o *Owners) wrote(by Author, words []string) {
	if o == nil || by.Thread == "" {
		return
	}
	for _, word := range words {
		if _, ok := o.writers[word]; !ok {
			o.writers[word], o.outside[word] = by.Thread, by.Op == 0
		}
		if _, ok := o.locks[word]; ok && by.Op > 0 && by.Lock != "" {
			o.note(by.Lock, word)
		}
	}
	if by.Op > 0 && by.Lock != "" && o.takes[by.Thread][by.Lock] == nil {
		o.took(by.Thread, by.Lock, words)
	}
}

// Follows is called when a request has led from one state of a lock to the next, before Name. It reports whether it learned that a
// value of unknown writers is one that holders write over their values.
func (o *Owners) Follows(lock string, before, s *model.LockState, by *Writer) bool {
	switch {
	case o == nil || by == nil || !s.Held():
	case before.Held() && by.Acquires:
		o.uncovered(lock, s.Owner, by)
	case before.Held():
		return o.rewrote(lock, cmp.Or(before.Value, before.Owner), s.Owner, by)
	default:
		o.Took(lock, s, by)
	}
	return false
}

// rewrote lets a hold go on whose holder, or an unknown thread of its process, has written another value over that of the hold,
// such as "renewed". Several holders may write the same word. A value that was another thread's before is that thread's, to which
// the lock may have been handed over.
func (o *Owners) rewrote(lock, was, value string, by *Writer) (learned bool) {
	key, holder := valueKey(lock, value), o.threads[valueKey(lock, was)]
	unknown := (by.Thread == "" || by.Guessed) && by.Process == model.ProcessOf(holder)
	if was == value || holder == "" || by.Thread != holder && !(unknown && o.rewrites[key] > 0) {
		return false
	}
	if owner := o.threads[key]; owner == "" {
		if w := o.writer(value); w != "" && w != holder && !o.outside[value] {
			return false
		}
		if u := o.unknown[key]; u.Process != "" && u.Process != model.ProcessOf(holder) {
			return false // a ticket of another process, which is the first one now
		}
	} else if owner == holder || o.rewrites[key] == 0 {
		return false
	}
	o.note(lock, value)
	_, learned = o.unknown[key]
	delete(o.unknown, key)
	o.threads[key], o.guessed[key] = holder, by.Guessed
	o.rewrites[key]++
	return learned
}

// uncovered notes a value to which an acquire on a stream has brought a held lock. The acquire may have deleted its own ticket, or that of
// a dead waiter, so that another ticket is the first one. So a value that was not seen before is that of the thread whose grant follows.
func (o *Owners) uncovered(lock, value string, by *Writer) {
	key := valueKey(lock, value)
	if o.threads[key] == "" && o.writer(value) == "" {
		o.note(lock, value)
		o.unknown[key] = Writer{Perhaps: by.Thread}
	}
}

// took notes the words with which a thread takes a lock.
func (o *Owners) took(thread, lock string, words []string) {
	if o.takes[thread] == nil {
		o.takes[thread] = map[string][]string{}
	}
	o.takes[thread][lock] = words
}

func valueKey(lock, value string) string { return lock + "\x00" + value }

// Name replaces the values in a state by the threads that they stand for, and keeps that of the holder in
// Value. by is the sender of the request that led to the state; nil: there was none. A value of an
// unknown thread stays.
func (o *Owners) Name(lock string, s *model.LockState, by *Writer) *model.LockState {
	if o == nil || s == nil {
		return s
	}
	named := *s
	named.Owner, named.Value = o.thread(lock, s.Owner, by), cmp.Or(s.Value, s.Owner)
	named.Queue, named.Deadlines = nil, nil
	for _, value := range s.Queue {
		named.Queue = append(named.Queue, o.thread(lock, value, by))
	}
	for value, deadline := range s.Deadlines {
		if named.Deadlines == nil {
			named.Deadlines = map[string]int64{}
		}
		named.Deadlines[o.thread(lock, value, by)] = deadline
	}
	return &named
}

func (o *Owners) thread(lock, value string, by *Writer) string {
	if value == "" {
		return ""
	}
	key := valueKey(lock, value)
	if t, ok := o.threads[key]; ok {
		return t
	}
	o.note(lock, value)
	if t := o.writer(value); t != "" {
		o.threads[key] = t
		return t
	}
	if _, ok := o.unknown[key]; ok || by == nil {
		return value
	}
	if by.Thread != "" {
		o.threads[key], o.guessed[key] = by.Thread, by.Guessed
		o.carried[key] = slices.Contains(by.Words, value)
		return by.Thread
	}
	o.unknown[key] = *by
	return value
}

// Took is called when a request has made a free lock held, before Name. Some locks mark every hold with
// the same word, such as 1, or hand a word from list to list. If the value of the holder is a word of the request or of
// its reply, or of no request at all, it belongs to the writer from then on.
func (o *Owners) Took(lock string, s *model.LockState, by *Writer) {
	if o == nil || !s.Held() || by == nil {
		return
	}
	key := valueKey(lock, s.Owner)
	unsent := o.threads[key] != "" && o.writers[s.Owner] == "" && !o.carried[key]
	if w := o.writer(s.Owner); unsent && w != "" && w != by.Thread && !o.sent(by.Thread, s.Owner) {
		return // a ticket of another thread, which is the first one now
	}
	if !unsent && !slices.Contains(by.Words, s.Owner) && !slices.Contains(by.Reply, s.Owner) {
		return
	}
	if by.Thread == "" {
		if o.guessed[key] && model.ProcessOf(o.threads[key]) == by.Process {
			delete(o.threads, key)
			o.unknown[key] = *by
		}
		return
	}
	o.note(lock, s.Owner)
	o.threads[key], o.guessed[key] = by.Thread, by.Guessed
	delete(o.unknown, key)
	o.took(by.Thread, lock, by.Words)
}

// note remembers the lock for which a value was written.
func (o *Owners) note(lock, value string) {
	if l, ok := o.locks[value]; ok && l != lock {
		o.locks[value] = ""
	} else {
		o.locks[value] = lock
	}
}

// About returns the lock that a request is about, by the values in it; "" if it has none.
func (o *Owners) About(words []string) string {
	if o == nil {
		return ""
	}
	for _, word := range words {
		if lock := o.locks[word]; lock != "" {
			return lock
		}
	}
	return ""
}

// onlyRewrites reports whether all values of a lock among words are ones that holders wrote over their values. The thread may write such
// a word for another lock, too.
func (o *Owners) onlyRewrites(lock string, words []string) bool {
	return !slices.ContainsFunc(words, func(word string) bool { return o.locks[word] == lock && o.rewrites[valueKey(lock, word)] == 0 })
}

// named returns the only lock that a thread took and whose name is among the words of a request; "": there is none, or several.
func (o *Owners) named(thread string, words []string) (only string) {
	for lock := range o.takes[thread] {
		if !slices.ContainsFunc(words, func(word string) bool { return slices.Contains(strings.Fields(word), lock) }) {
			continue
		}
		if only != "" {
			return ""
		}
		only = lock
	}
	return only
}

// Beside returns the lock that a request of a thread is about if it has no value, as a renewal by PEXPIRE: the lock
// that the thread took with a request that has most of its words, and at least half of them, but for the name of the
// command. It returns "" if there is none, or if there are several.
func (o *Owners) Beside(thread string, words []string) string {
	if o == nil || len(words) == 0 {
		return ""
	}
	best, most := "", 0
	for lock, took := range o.takes[thread] {
		n := 0
		for _, word := range words[1:] {
			if slices.Contains(took[1:], word) {
				n++
			}
		}
		switch {
		case 2*n < len(words)-1:
		case n > most:
			best, most = lock, n
		case n == most:
			best = ""
		}
	}
	return best
}

// Prolonged is called when a request of an unknown thread has prolonged a hold of a lock.
func (o *Owners) Prolonged(lock string, words []string) {
	if o == nil || len(words) == 0 {
		return
	}
	form := o.form(words)
	if l, ok := o.renewals[form]; ok && l != lock {
		lock = "" // of several locks
	}
	o.renewals[form] = lock
}

// Renews returns the lock whose hold an earlier request of the same words prolonged, but for the values in
// them; "" if there was none.
func (o *Owners) Renews(words []string) string {
	if o == nil || len(o.renewals) == 0 {
		return ""
	}
	return o.renewals[o.form(words)]
}

// form returns the words of a request without the values of locks.
func (o *Owners) form(words []string) string {
	var b strings.Builder
	for _, word := range words {
		if _, ok := o.locks[word]; !ok {
			b.WriteString(word)
		}
		b.WriteByte(0)
	}
	return b.String()
}

// Whose returns the thread of a value of a lock that is among words. If there is no such value, or
// its thread is unknown, it returns other. A word that holders write over their values says nothing once several threads have
// written it, or if another thread, the holder, may be about to.
func (o *Owners) Whose(lock string, words []string, other string, holder func(lock string) string) string {
	for _, word := range words {
		key := valueKey(lock, word)
		if t, n := o.threads[key], o.rewrites[key]; t != "" && (n == 0 || n == 1 && t == holder(lock)) {
			return t
		}
	}
	return other
}

// Granted is called when a call of a thread was granted a lock of which the server held those values since the call
// began. If nobody knows whose one of them is, and a request of the thread's process wrote it, it belongs to the
// thread. Of several, it is the only one that the thread may have written. Granted reports whether it learned that.
func (o *Owners) Granted(by Writer, lock string, values ...string) bool {
	if o == nil {
		return false
	}
	var unknown, own []string
	for _, value := range values {
		w, ok := o.unknown[valueKey(lock, value)]
		if !ok || w.Process != "" && w.Process != by.Process || slices.Contains(unknown, value) {
			continue
		}
		if unknown = append(unknown, value); w.Perhaps == by.Thread {
			own = append(own, value)
		}
	}
	if len(own) > 0 {
		unknown = own
	}
	if len(unknown) != 1 {
		return false
	}
	key := valueKey(lock, unknown[0])
	o.threads[key], o.guessed[key] = by.Thread, true // by the grant, and not by a request
	delete(o.unknown, key)
	return true
}

// granted is called when a call of t on a lock that began with the event of that index returned with a grant. If that
// shows whose value it is, the record names the thread from the beginning. A program of the call that made the free
// lock held, and answered with the value, gave the hold to the call, whoever had the value before. A call that sent
// nothing got the hold from a goroutine that another call of its process began, and one that found a hold that
// another call of its process had left got that one. If no other thread of the process is in a call on the lock, the
// present hold is that of the call, whatever its earlier requests wrote.
func (w *World) granted(t *Thread, op int, lock string, invoked int) {
	var values []string
	if held := w.held[lock]; held.Held() && w.owners != nil {
		if held.Owner == t.name {
			return
		}
		m := w.began[lock]
		if m != nil && m.op == op && m.author.Thread == t.name && !m.author.Guessed && slices.Contains(shown(m.reply), held.Value) {
			w.give(t, lock)
			return
		}
		sent, own := false, false
		for _, e := range w.rec.Events[invoked:] {
			sent = sent || e.Kind == model.KindSend && e.Op == op
			own = own || e.Kind == model.KindState && e.Lock == lock && e.State.Owner == t.name
		}
		if !own && model.ProcessOf(held.Owner) == t.p.cfg.Name && (!sent && m != nil && m.author.in != nil && held.Owner == m.author.Thread && !w.told(lock) || sent && w.isUntold(t.p, lock, op)) {
			w.give(t, lock)
			return
		}
		values = append(values, held.Owner)
		beside := func(x *Thread) bool { return x != t && x.call != nil && x.call.what.Lock == lock }
		if !slices.ContainsFunc(t.p.threads, beside) && w.owners.Granted(Writer{Process: t.p.cfg.Name, Thread: t.name}, lock, held.Owner) {
			w.rename(lock)
			return
		}
	}
	for _, e := range w.rec.Events[invoked:] {
		if e.Kind == model.KindState && e.Lock == lock && e.State.Owner != "" {
			values = append(values, e.State.Owner)
		}
	}
	if w.owners.Granted(Writer{Process: t.p.cfg.Name, Thread: t.name}, lock, values...) {
		w.rename(lock)
	}
}

// isUntold reports whether the owner of the present hold of a lock, a thread of p, was never told of it, and waits for no answer. If a
// request wrote its value, the call of that number may have found it only with a request that has the value, too.
func (w *World) isUntold(p *Process, lock string, op int) bool {
	held, waits := w.held[lock], map[int]bool{}
	knows := w.owners.writers[held.Value] == ""
	for _, e := range w.rec.Events {
		switch {
		case e.Kind == model.KindSend && e.Op == op:
			knows = knows || slices.Contains(e.Args, held.Value)
		case e.Kind == model.KindSend:
			waits[e.Op] = true
		}
	}
	return knows && !w.told(lock) && !slices.ContainsFunc(p.threads, func(t *Thread) bool { return t.name == held.Owner && t.call != nil && waits[t.call.op] })
}

// told reports whether a call of the owner of the present hold of a lock was granted it.
func (w *World) told(lock string) (told bool) {
	held := w.held[lock]
	for _, e := range w.rec.Events {
		switch {
		case e.Kind == model.KindState && e.Lock == lock && e.State.Value != held.Value:
			told = false
		case e.Kind == model.KindReturn && e.ThreadName() == held.Owner:
			told = told || e.Lock == lock && e.Outcome == model.Granted
		}
	}
	return told
}

// give gives the present hold of a lock to a thread, from its beginning on.
func (w *World) give(t *Thread, lock string) {
	held := *w.held[lock]
	w.owners.threads[valueKey(lock, held.Value)] = t.name
	for i := len(w.rec.Events) - 1; i >= 0; i-- {
		e := &w.rec.Events[i]
		if e.Kind != model.KindState || e.Lock != lock {
			continue
		}
		if e.State.Value != held.Value {
			break
		}
		own := *e.State
		own.Owner = t.name
		e.State = &own
	}
	held.Owner, w.held[lock] = t.name, &held
}

// goesOn lets each hold of a lock go on over which its holder wrote a value that named nobody then.
func (w *World) goesOn(lock, value string) {
	last := (*model.LockState)(nil)
	for i := range w.rec.Events {
		e := &w.rec.Events[i]
		if e.Kind != model.KindState || e.Lock != lock {
			continue
		}
		if last.Held() && e.State.Owner == value {
			own := *e.State
			own.Owner, e.State = last.Owner, &own
		}
		last = e.State
	}
}

// rename names the threads in the states of a lock so far, after it was learned whose a value is.
func (w *World) rename(lock string) {
	for i := range w.rec.Events {
		if e := &w.rec.Events[i]; e.Kind == model.KindState && e.Lock == lock {
			e.State = w.owners.Name(lock, e.State, nil)
		}
	}
	w.held[lock] = w.owners.Name(lock, w.held[lock], nil)
}

// settle is called at the end of a run, when it is known which goroutines wrote a single request, though perhaps
// several times, in the call in which they began. It belongs to the call. The values that it wrote belong to the
// thread, whoever was granted the lock first after that. A goroutine that writes several requests, or one with the value
// of another thread, may write for several calls, and so may each in a process that has a goroutine which did.
func (w *World) settle() {
	asked, served := map[*helper][]string{}, w.served()
	for _, send := range w.helped {
		args, in := w.rec.Events[send.event].Args, send.by.in
		if before, ok := asked[in]; ok && !slices.Equal(before, args) || len(args) == 0 || served[w.rec.Events[send.event].Process] || w.sentBefore(send) {
			in.common = true
		}
		asked[in] = args
	}
	sent, first := map[int]helped{}, map[string]string{}
	for _, send := range w.helped {
		if !send.by.Shared || send.by.in.common {
			continue
		}
		e := &w.rec.Events[send.event]
		e.Guessed = false
		if send.by.Action == model.ActUnlock { // it may write the value of the next holder
			continue
		}
		sent[e.Msg] = send
		for _, word := range send.words {
			if _, ok := first[word]; !ok {
				first[word] = send.by.Thread
			}
		}
	}
	if w.owners == nil || len(first) == 0 {
		return
	}
	last := map[string]*model.LockState{}
	for i := range w.rec.Events {
		e := &w.rec.Events[i]
		if e.Kind != model.KindState {
			continue
		}
		value, was := e.State.Value, last[e.Lock]
		last[e.Lock] = e.State
		named := *e.State
		send, ok := sent[e.Msg]
		switch {
		case !e.State.Held() || w.owners.writers[value] != "":
		case was.Held() && was.Value == value:
			named.Owner = was.Owner
		case ok && slices.Contains(send.words, value):
			named.Owner = send.by.Thread
		case first[value] != "":
			named.Owner = first[value]
		}
		named.Queue, named.Deadlines = slices.Clone(e.State.Queue), maps.Clone(e.State.Deadlines)
		for i, value := range named.Queue {
			named.Queue[i] = cmp.Or(first[value], value)
		}
		for value, deadline := range e.State.Deadlines {
			delete(named.Deadlines, value)
			named.Deadlines[cmp.Or(first[value], value)] = deadline
		}
		e.State, last[e.Lock] = &named, &named
	}
}

// served returns the processes in which a goroutine of one call took the lock for another: a call was granted the lock
// while the servers held a value that such a goroutine had sent, and none that a request of the granted call had. Of
// several servers the granted call may have had some, which no state shows, unless it sent nothing.
func (w *World) served() map[string]bool {
	out := map[string]bool{}
	if len(w.helped) == 0 {
		return out
	}
	invoked, last := map[int]int{}, map[string]int{} // the index of the call's begin, and of the state then, or -1
	was := map[int]int{}
	for i, e := range w.rec.Events {
		switch {
		case e.Kind == model.KindState:
			last[e.Lock] = i
		case e.Kind == model.KindInvoke:
			invoked[e.Op], was[e.Op] = i, -1
			if at, ok := last[e.Lock]; ok {
				was[e.Op] = at
			}
		case e.Kind == model.KindReturn && e.Action.Acquires() && e.Outcome == model.Granted && !out[e.Process]:
			held := map[string]bool{}
			for _, state := range w.rec.Events[invoked[e.Op]:i] {
				if state.Kind == model.KindState && state.Lock == e.Lock && state.State.Held() {
					held[state.State.Value] = true
				}
			}
			if at := was[e.Op]; at >= 0 && w.rec.Events[at].State.Held() {
				held[w.rec.Events[at].State.Value] = true
			}
			sent := func(send model.Event) bool {
				return len(w.nodes) > 1 && send.Op == e.Op || slices.ContainsFunc(send.Args, func(word string) bool { return held[word] })
			}
			out[e.Process] = !slices.ContainsFunc(w.rec.Events[invoked[e.Op]:i], func(send model.Event) bool {
				return send.Kind == model.KindSend && send.Op == e.Op && sent(send)
			}) && slices.ContainsFunc(w.helped, func(h helped) bool {
				send := w.rec.Events[h.event]
				return h.event < i && send.Process == e.Process && send.Op != e.Op && h.by.Action.Acquires() && sent(send)
			})
		}
	}
	return out
}

// sentBefore reports whether a request has a value with which another thread took the lock of the call, and which an
// earlier request had that was not of this call.
func (w *World) sentBefore(send helped) bool {
	return w.owners != nil && slices.ContainsFunc(send.words, func(word string) bool {
		t, ok := w.owners.threads[valueKey(send.by.Lock, word)]
		return ok && t != send.by.Thread && slices.ContainsFunc(w.rec.Events[:send.event], func(e model.Event) bool {
			return e.Kind == model.KindSend && e.Op != send.by.Op && slices.Contains(e.Args, word)
		})
	})
}

// writer returns the sender of a request; nil for no request.
func (m *message) writer() *Writer {
	if m == nil {
		return nil
	}
	return m.author.Writer(m.conn.p.cfg.Name, m.request, m.reply)
}

// Writer returns the author as the sender of a request of a process, and of its reply. An unlock may hand the lock
// over to another thread of its process, or on a stream of any process, and a Shared author may write for each. So a value that
// they write first belongs to no thread until a call is granted the lock.
func (a Author) Writer(process string, r Request, reply string) *Writer {
	w := &Writer{Process: process, Words: r.Own()}
	if r.Counts == 0 {
		w.Reply = shown(reply)
	}
	switch {
	case a.Action == model.ActUnlock:
		if r.Name == model.SegmentCommand {
			w.Process = "" // nobody could read who wrote the value before
		}
	case a.Shared:
		w.Perhaps = a.Thread
	default:
		w.Thread, w.Guessed = a.Thread, a.Guessed
		w.Acquires = r.Name == model.SegmentCommand && a.Action.Acquires()
	}
	return w
}

// shown returns the words of a reply as the record shows it.
func shown(reply string) []string {
	return strings.FieldsFunc(reply, func(c rune) bool { return strings.ContainsRune("[] ", c) })
}
