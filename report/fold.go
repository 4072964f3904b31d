package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"lockstep/internal/counted"
	"lockstep/linearizability/judges"
	"lockstep/model"
	"lockstep/model/trace"
)

// A folding is the exchanges that the view leaves out, and the lines in place of them.
type folding struct {
	drop  map[int]bool  // the messages to leave out
	after map[int]event // the line that follows the last event of a message
}

// row folds the groups of exchanges of a row between its first and its last group, if there are enough
// of them. All groups have the same size and the same exchanges. outcome says as a clause what these did.
func (f folding) row(row []*message, size int, lanes []lane, outcome string) {
	if len(row) < repeatsLeast*size {
		return
	}
	first, middle := row[:size], row[size:len(row)-size]
	var names []string
	for _, m := range first {
		names = append(names, m.Name)
	}
	for _, m := range middle {
		f.drop[m.ID] = true
	}
	often := fmt.Sprintf("%d times more", len(middle)/size)
	if size > 1 {
		often += ", " + counted.Of(len(middle), "command")
	}
	last := slices.MaxFunc(first, func(a, b *message) int { return cmp.Compare(a.endNs(), b.endNs()) })
	f.after[last.ID] = event{AtNs: last.endNs(), Kind: "repeat", Lane: last.Lane, Process: lanes[last.Lane].Process, Locks: last.Locks, Op: last.Op, Times: len(middle) / size,
		Text: fmt.Sprintf("%s %s from %s until %s, %s", strings.Join(slices.Compact(names), ", "), often, at(middle[0].Sent), at(middle[len(middle)-1].endNs()), outcome)}
}

// repeats folds the groups that repeat in a row of exchanges.
func (f folding) repeats(row []*message, lanes []lane, outcome string) {
	for len(row) > 0 {
		size, times := repeated(row)
		f.row(row[:size*times], size, lanes, outcome)
		row = row[size*times:]
	}
}

// repeated returns the size of the group that covers most of a row if the row begins with it, and how
// often the group follows itself. If no group repeats often enough to fold it, repeated returns 1 and 1.
func repeated(row []*message) (size, times int) {
	size, times = 1, 1
	for s := 1; s <= min(groupMost, len(row)/repeatsLeast); s++ {
		n := s
		for n < len(row) && row[n].like(row[n-s]) {
			n++
		}
		if n/s >= repeatsLeast && n/s*s > size*times {
			size, times = s, n/s
		}
	}
	return size, times
}

// like reports whether two messages have the same name and the same answer. Numbers in an answer may
// differ, since a time to live counts down.
func (m *message) like(other *message) bool {
	plain := func(s string) string {
		return strings.Map(func(r rune) rune {
			if unicode.IsDigit(r) {
				return -1
			}
			return r
		}, s)
	}
	return m.Name == other.Name && plain(m.Reply) == plain(other.Reply)
}

// fold replaces exchanges that only repeat earlier ones by one line.
func (b *builder) fold() {
	v, f := b.v, folding{map[int]bool{}, map[int]event{}}
	b.foldUnknown(f)
	b.foldTries(f)
	b.foldRenewals(f)
	last := map[int]int{} // by message, the index of its last event
	for i, e := range v.Events {
		last[e.Msg] = i
	}
	kept := v.Events[:0:0]
	for i, e := range v.Events {
		if e.Msg > 0 && f.drop[e.Msg] {
			continue
		}
		kept = append(kept, e)
		if x, ok := f.after[e.Msg]; ok && i == last[e.Msg] {
			kept = append(kept, x)
		}
	}
	v.Events = kept
	v.Messages = slices.DeleteFunc(v.Messages, func(m message) bool { return f.drop[m.ID] })
	v.Folded = len(f.drop)
}

// answered reports whether no fault met a message, and its answer arrived. A segment may have none.
func (m *message) answered() bool {
	return m.Lane >= 0 && m.Exec >= 0 && (m.Done >= 0 || m.segment) && m.Hit == "" && m.Lost < 0 && !m.Push
}

// endNs returns the instant of the last event of an answered message.
func (m *message) endNs() int64 {
	if m.Done < 0 {
		return m.Exec
	}
	return m.Done
}

// foldUnknown folds a request for a script that the server does not know with the request that follows it in the same
// call and carries the script. The line of the second one says so.
func (b *builder) foldUnknown(f folding) {
	before := map[int]*message{} // by call, the request whose script the server did not know
	twice := map[int]bool{}
	for i := range b.v.Messages {
		m := &b.v.Messages[i]
		sent := b.trace.Command(m.ID)
		if sent == nil || sent.Call == nil {
			continue
		}
		first := before[m.Op]
		delete(before, m.Op)
		switch {
		case m.counted || !m.answered():
		case sent.UnknownScript():
			before[m.Op] = m
		case first != nil && sent.Program != "":
			f.drop[first.ID] = true
			twice[m.ID] = true
		}
	}
	for i := range b.v.Events {
		if e := &b.v.Events[i]; e.Kind == string(model.KindExec) && twice[e.Msg] {
			e.Text = Clip(e.Text+", sent twice", textMost)
		}
	}
}

// foldTries folds the exchanges of one call that change nothing. A waiter that asks again and again makes
// such exchanges. Those that a finding of traffic counts are folded apart from the others, so that the
// lines add up to the number in the finding.
func (b *builder) foldTries(f folding) {
	v := b.v
	plain := func(m *message) bool { return m.answered() && m.Op > 0 && !b.changed(m) }
	rows := make(map[int][]*message) // by lane
	end := func(l int) {
		f.repeats(rows[l], v.Lanes, "with nothing changed")
		delete(rows, l)
	}
	for i := range v.Messages {
		m := &v.Messages[i]
		if m.Lane < 0 || f.drop[m.ID] {
			continue
		}
		if same := rows[m.Lane]; len(same) > 0 && (!plain(m) || same[0].Op != m.Op || same[0].counted != m.counted) {
			end(m.Lane)
		}
		if plain(m) {
			rows[m.Lane] = append(rows[m.Lane], m)
		}
	}
	for _, l := range slices.Sorted(maps.Keys(rows)) {
		end(l)
	}
}

// foldRenewals folds the renewals of one hold that have the same outcome, and between which nothing
// happens to the hold, to its process, or to all.
func (b *builder) foldRenewals(f folding) {
	rows, outcomes := map[string][]*message{}, map[string]string{} // by lock; "": the hold is gone, and the renewals on a stream are about none
	end := func(lock string) {
		f.row(rows[lock], 1, b.v.Lanes, outcomes[lock])
		delete(rows, lock)
	}
	for _, e := range b.v.Events {
		var m *message
		if i, ok := b.msgs[e.Msg]; ok && e.Kind == string(model.KindExec) {
			m = &b.v.Messages[i]
		}
		renewed, outcome, other := "", "", false
		if m != nil {
			outcome, renewed = b.renewal(m), strings.Join(m.Locks, " ")
			other = b.trace.Command(m.ID).Script == model.RoleRenew && (outcome == "" || renewed == "")
		}
		for _, lock := range slices.Sorted(maps.Keys(rows)) {
			last := rows[lock][len(rows[lock])-1]
			switch about := lock == "" || len(e.Locks) == 0 || slices.Contains(e.Locks, lock); {
			case outcome != "" && renewed == lock:
				if m.Lane != last.Lane || m.Name != last.Name || m.Reply != last.Reply || outcome != outcomes[lock] {
					end(lock)
				}
			case e.Lane < 0, about && e.turn, about && other, about && e.Process == b.v.Lanes[last.Lane].Process && e.disturbs():
				end(lock)
			}
		}
		if outcome != "" {
			rows[renewed], outcomes[renewed] = append(rows[renewed], m), outcome
		}
	}
	for _, lock := range slices.Sorted(maps.Keys(rows)) {
		end(lock)
	}
}

// disturbs reports whether an event may be the reason why renewals before it differ from those after it.
func (e *event) disturbs() bool {
	switch model.Kind(e.Kind) {
	case model.KindInvoke, model.KindReturn, model.KindHit, model.KindLost, model.KindTold, model.KindClose:
		return true
	}
	return false
}

// renewal returns as a clause what a renewal of one hold, or of one that is gone, did that no call sent, and about which no judge
// found anything. It returns "" for any other message, and for a renewal that did something else.
func (b *builder) renewal(m *message) string {
	sent := b.trace.Command(m.ID)
	if sent == nil || sent.Script != model.RoleRenew || sent.Call != nil || sent.Wait != nil || !m.answered() || len(m.Locks) > 1 ||
		slices.ContainsFunc(b.run.Findings, func(f judges.Finding) bool { return m.Sent == f.AtNs || m.Exec <= f.AtNs && f.AtNs <= m.endNs() }) {
		return ""
	}
	switch {
	case len(sent.Changes) == 0:
		return "with nothing changed"
	case len(m.Locks) == 1 && len(sent.Changes) == 1 && sent.Changes[0].Lock == m.Locks[0] && prolongs(sent.Changes[0]):
		return "which prolonged the hold"
	}
	return ""
}

// prolongs reports whether a change only moved the end of a hold to a later instant.
func prolongs(c *trace.Change) bool {
	was, now := c.Before, *c.After
	if now.ExpiresMs <= was.ExpiresMs || !was.Held() {
		return false
	}
	now.ExpiresMs = was.ExpiresMs
	return now.Equal(was)
}
