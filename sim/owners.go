package sim

import "lockstep/model"

// owners learns which thread the values that a server holds stand for. A lock writes a
// value of its choice, such as a random text, to mark its holder. The value that a
// request of a thread made the server hold first belongs to that thread.
type owners struct {
	threads map[string]string // process/thread by lock and value
	// unknown holds the values whose writer the world could not tell: the process that
	// wrote them. Once a call of the process is granted the lock that has such a value,
	// the value belongs to its thread.
	unknown map[string]*Process
	// writers are the threads that first sent a request with a word. The value that a server
	// holds without a request that led to it belongs to the writer of that word.
	writers map[string]string
	// locks are the locks that values were written for; "" for a value of several locks.
	locks map[string]string
}

func newOwners() *owners {
	return &owners{threads: map[string]string{}, unknown: map[string]*Process{}, writers: map[string]string{}, locks: map[string]string{}}
}

// wrote notes that a thread sent a request of these words.
func (o *owners) wrote(thread string, words []string) {
	if o == nil || thread == "" {
		return
	}
	for _, word := range words {
		if _, ok := o.writers[word]; !ok {
			o.writers[word] = thread
		}
	}
}

func valueKey(lock, value string) string { return lock + "\x00" + value }

// name replaces the values in a state by the threads that they stand for. m is the
// request that led to the state; nil: none did. A value of an unknown thread stays.
func (o *owners) name(lock string, s *model.LockState, m *message) *model.LockState {
	if o == nil || s == nil {
		return s
	}
	named := *s
	named.Owner = o.thread(lock, s.Owner, m)
	named.Queue, named.Deadlines = nil, nil
	for _, value := range s.Queue {
		named.Queue = append(named.Queue, o.thread(lock, value, m))
	}
	for value, deadline := range s.Deadlines {
		if named.Deadlines == nil {
			named.Deadlines = map[string]int64{}
		}
		named.Deadlines[o.thread(lock, value, m)] = deadline
	}
	return &named
}

func (o *owners) thread(lock, value string, m *message) string {
	if value == "" {
		return ""
	}
	key := valueKey(lock, value)
	if t, ok := o.threads[key]; ok {
		return t
	}
	if l, ok := o.locks[value]; ok && l != lock {
		o.locks[value] = ""
	} else {
		o.locks[value] = lock
	}
	if m != nil && m.author.Thread != "" {
		o.threads[key] = m.author.Thread
		return m.author.Thread
	}
	if t := o.writers[value]; m == nil && t != "" {
		o.threads[key] = t
		return t
	}
	if m != nil && o.unknown[key] == nil {
		o.unknown[key] = m.conn.p
	}
	return value
}

// about returns the lock that a request is about, by the values in it; "" if it has none.
func (o *owners) about(words []string) string {
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

// whose returns the thread of a value of a lock that is among words; if there is none, or
// it is unknown, it returns other.
func (o *owners) whose(lock string, words []string, other string) string {
	for _, word := range words {
		if t := o.threads[valueKey(lock, word)]; t != "" {
			return t
		}
	}
	return other
}

// granted is called when a call of t on a lock returned with a grant. A value that the
// server holds for the lock, and whose writer is unknown, belongs to t if a request of
// t's process wrote it. The record then says so from the beginning.
func (o *owners) granted(t *Thread, lock string) {
	if o == nil {
		return
	}
	w := t.p.w
	s := w.held[lock]
	if s == nil || s.Owner == "" {
		return
	}
	value, key := s.Owner, valueKey(lock, s.Owner)
	if o.unknown[key] != t.p || o.threads[key] != "" {
		return
	}
	o.threads[key] = t.name
	delete(o.unknown, key)
	for i := range w.rec.Events {
		if e := &w.rec.Events[i]; e.Kind == model.KindState && e.Lock == lock {
			e.State = o.name(lock, e.State, nil)
		}
	}
	if s.Owner == value {
		s.Owner = t.name
	}
}
