package report

import (
	"cmp"
	"math"
	"slices"

	"lockstep/model"
)

// place returns the index of the line at which the list shows a finding. Among the lines
// at the finding's instant, place prefers the return of a call that the finding names,
// then the want that was not met, then a change of the lock, then the last line. If there
// is no line at that instant, place returns the last line before it.
func (v *view) place(f finding) int {
	end, _ := slices.BinarySearchFunc(v.Events, f.AtNs+1, func(e event, t int64) int { return cmp.Compare(e.AtNs, t) })
	best, rank := end-1, 0
	for i := end - 1; i >= 0 && v.Events[i].AtNs == f.AtNs; i-- {
		e, r := &v.Events[i], 0
		switch {
		case e.Kind == string(model.KindReturn) && slices.Contains(f.Ops, e.Op):
			r = 3
		case e.check != nil && e.check == f.check:
			r = 2
		case e.Kind == string(model.KindState):
			r = 1
		}
		if r > rank {
			best, rank = i, r
		}
	}
	return best
}

// placeAll places the findings. A finding that was cut away has no line.
func (v *view) placeAll() {
	for i := range v.Findings {
		f := &v.Findings[i]
		f.Event = v.place(*f)
		for _, g := range v.Cuts {
			if g.FromNs < f.AtNs && f.AtNs < g.ToNs {
				f.Event = -1
			}
		}
	}
}

// cut keeps as many lines around the findings as a browser can show.
func (v *view) cut() {
	of := map[string]int{}
	all := len(v.Findings)
	v.Findings = slices.DeleteFunc(v.Findings, func(f finding) bool {
		of[f.Judge]++
		return of[f.Judge] > findingsMost
	})
	v.More = all - len(v.Findings)
	v.Overlaps = v.Overlaps[:min(len(v.Overlaps), overlapsMost)]
	if len(v.Events) <= eventsMost {
		return
	}
	// The lines before a finding explain most of it.
	around := []int{0}
	for _, f := range v.Findings[:min(len(v.Findings), 8)] {
		if f.Event >= 0 {
			around = append(around, f.Event)
		}
	}
	keep := make([]bool, len(v.Events))
	each := eventsMost / len(around)
	for _, i := range around {
		for j := max(0, i-each*3/4); j < min(len(v.Events), i+each/4); j++ {
			keep[j] = true
		}
	}
	var events []event
	last := int64(math.MinInt64)
	left := 0
	for i, e := range v.Events {
		if !keep[i] {
			left++
			continue
		}
		if left > 0 {
			v.Cuts = append(v.Cuts, gap{FromNs: max(last, v.FromNs), ToNs: e.AtNs, Events: left})
			v.Left += left
			left = 0
		}
		last = e.AtNs
		events = append(events, e)
	}
	if left > 0 {
		v.Cuts = append(v.Cuts, gap{FromNs: last, ToNs: v.EndNs + 1, Events: left})
		v.Left += left
	}
	v.Events = events
	hidden := func(from, to int64) bool {
		return slices.ContainsFunc(v.Cuts, func(g gap) bool { return g.FromNs < from && to < g.ToNs })
	}
	v.Ops = slices.DeleteFunc(v.Ops, func(o bar) bool { return hidden(o.FromNs, o.ToNs) })
	v.Beliefs = slices.DeleteFunc(v.Beliefs, func(x band) bool { return hidden(x.FromNs, x.ToNs) })
	v.Overlaps = slices.DeleteFunc(v.Overlaps, func(x overlap) bool { return hidden(x.FromNs, x.ToNs) })
	v.Truth = slices.DeleteFunc(v.Truth, func(x hold) bool { return hidden(x.AtNs, x.ToNs) })
	v.Uses = slices.DeleteFunc(v.Uses, func(x use) bool { return hidden(x.FromNs, x.ToNs) })
	v.Messages = slices.DeleteFunc(v.Messages, func(m message) bool { return hidden(m.Sent, max(m.Sent, m.Exec, m.Done, m.Lost)) })
	v.Subs = slices.DeleteFunc(v.Subs, func(x audience) bool { return hidden(x.AtNs, x.AtNs) })
	v.Faults = slices.DeleteFunc(v.Faults, func(x fault) bool { return hidden(x.FromNs, x.ToNs) })
	v.placeAll()
}
