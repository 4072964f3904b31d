package shrink

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// This file edits the text of a scenario as YAML. It knows only which parts of a scenario
// refer to which others. The loader decides whether the result is a scenario.

// gone marks a node that tidy removes. A marked key is removed with its value.
const gone = yaml.Kind(0)

// document parses a text that the loader has accepted.
func document(text string) (*yaml.Node, error) {
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(text), &n); err != nil {
		return nil, err
	}
	return n.Content[0], nil
}

// source returns the text of a tree.
func source(tree *yaml.Node) string {
	text, err := yaml.Marshal(tree)
	if err != nil {
		panic("shrink: a scenario that was read cannot be written: " + err.Error())
	}
	return string(text)
}

func clone(n *yaml.Node) *yaml.Node {
	c := *n
	c.Content = make([]*yaml.Node, len(n.Content))
	for i, child := range n.Content {
		c.Content[i] = clone(child)
	}
	return &c
}

// find returns the index of a key in a mapping, or -1 if the mapping does not have it.
func find(n *yaml.Node, key string) int {
	if n == nil || n.Kind != yaml.MappingNode {
		return -1
	}
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Kind != gone && n.Content[i].Value == key {
			return i
		}
	}
	return -1
}

// get follows keys down a tree and returns the last value. It returns nil if a key is
// missing.
func get(n *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		i := find(n, key)
		if i < 0 {
			return nil
		}
		n = n.Content[i+1]
	}
	return n
}

func scalar(text string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Value: text} }

func sequence(words ...string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode}
	for _, w := range words {
		n.Content = append(n.Content, scalar(w))
	}
	return n
}

func mapping(key string, value *yaml.Node) *yaml.Node {
	return &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{scalar(key), value}}
}

// set sets the value of a key in a mapping. It adds the key if it is missing.
func set(n *yaml.Node, key string, value *yaml.Node) {
	if i := find(n, key); i >= 0 {
		n.Content[i+1] = value
		return
	}
	n.Content = append(n.Content, scalar(key), value)
}

func remove(n *yaml.Node, key string) {
	if i := find(n, key); i >= 0 {
		n.Content = slices.Delete(n.Content, i, i+2)
	}
}

// items returns the elements of a sequence that are not gone.
func items(n *yaml.Node) []*yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(n.Content), func(c *yaml.Node) bool { return c.Kind == gone })
}

// An entry is a key of a mapping with its value.
type entry struct{ key, value *yaml.Node }

// entries returns the entries of a mapping that are not gone.
func entries(n *yaml.Node) []entry {
	var out []entry
	if n != nil && n.Kind == yaml.MappingNode {
		for i := 0; i < len(n.Content); i += 2 {
			if n.Content[i].Kind != gone {
				out = append(out, entry{n.Content[i], n.Content[i+1]})
			}
		}
	}
	return out
}

// stepOf returns the kind of a step and its value. The value of a bare word is nil.
func stepOf(n *yaml.Node) (kind string, value *yaml.Node) {
	if es := entries(n); len(es) > 0 {
		return es[0].key.Value, es[0].value
	}
	return n.Value, nil
}

// placed is a step with the list that contains it.
type placed struct{ list, step *yaml.Node }

// allSteps returns the steps of all threads, each before the steps within it.
func allSteps(root *yaml.Node) []placed {
	var out []placed
	var walk func(list *yaml.Node)
	walk = func(list *yaml.Node) {
		for _, s := range items(list) {
			out = append(out, placed{list, s})
			_, value := stepOf(s)
			walk(get(value, "steps"))
		}
	}
	for _, t := range entries(get(root, "steps")) {
		walk(t.value)
	}
	return out
}

// tidy removes the marked nodes, and the parts that have no meaning without them.
func tidy(root *yaml.Node) {
	for changed := true; changed; {
		sweep(root)
		changed = false
		bury := func(n *yaml.Node) { n.Kind, changed = gone, true }
		for _, t := range entries(get(root, "steps")) {
			if len(t.value.Content) == 0 {
				bury(t.key)
			}
		}
		for _, p := range allSteps(root) {
			kind, value := stepOf(p.step)
			steps := get(value, "steps")
			if steps != nil && len(steps.Content) == 0 {
				if remove(value, "steps"); kind == "repeat" {
					bury(p.step)
				}
			}
			// A step with only a name is written short. A read with only a name is removed.
			if es := entries(value); len(es) == 1 && es[0].key.Value == "name" {
				switch kind {
				case "lock", "try_lock", "unlock", "force_unlock", "extend":
					*value = *es[0].value
				case "read":
					bury(p.step)
				}
			}
			if d := get(value, "deadlines"); d != nil && len(d.Content) == 0 {
				remove(value, "deadlines")
				changed = true
			}
		}
		for _, f := range items(get(root, "faults")) {
			if cut := get(f, "partition"); cut != nil && cut.Kind == yaml.SequenceNode && len(cut.Content) == 0 {
				bury(f)
			}
		}
		for _, p := range entries(get(root, "processes")) {
			for _, key := range []string{"client", "wall_clock"} {
				if n := get(p.value, key); n != nil && len(n.Content) == 0 {
					remove(p.value, key)
				}
			}
		}
	}
	for _, key := range []string{"faults", "resources"} {
		if n := get(root, key); n != nil && len(n.Content) == 0 {
			remove(root, key)
		}
	}
}

func sweep(n *yaml.Node) {
	step := 1
	if n.Kind == yaml.MappingNode {
		step = 2
	}
	var kept []*yaml.Node
	for i := 0; i < len(n.Content); i += step {
		if n.Content[i].Kind == gone {
			continue
		}
		for _, c := range n.Content[i : i+step] {
			sweep(c)
			kept = append(kept, c)
		}
	}
	n.Content = kept
}

// A cut removes one part of the tree for which it was made. Several cuts of one tree are
// applied from the last to the first.
type cut func()

func bury(n *yaml.Node) cut { return func() { n.Kind = gone } }

// processCuts returns cuts that each remove a process, its threads, and the parts that name
// them.
func processCuts(root *yaml.Node) []cut {
	var cuts []cut
	for _, p := range entries(get(root, "processes")) {
		name := p.key.Value
		cuts = append(cuts, func() {
			p.key.Kind = gone
			for _, t := range entries(get(root, "steps")) {
				if strings.HasPrefix(t.key.Value, name+"/") {
					t.key.Kind = gone
				}
			}
			for _, f := range items(get(root, "faults")) {
				for _, kind := range []string{"crash", "pause", "wall_clock", "partition"} {
					if n := get(f, kind); n != nil && n.Value == name {
						f.Kind = gone
					}
				}
				if n := get(f, "when", "process"); n != nil && n.Value == name {
					f.Kind = gone
				}
				if n := get(f, "until", "executed", "process"); n != nil && n.Value == name {
					forget(f, "executed")
				}
				for _, n := range items(get(f, "partition")) {
					if n.Value == name {
						n.Kind = gone
					}
				}
			}
			mentions(root, func(n *yaml.Node) bool { return n.Value == name || strings.HasPrefix(n.Value, name+"/") })
		})
	}
	return cuts
}

// forget removes a field of what a rule waits for, and the wait if there is nothing else in it.
func forget(fault *yaml.Node, field string) {
	until := get(fault, "until")
	if remove(until, field); len(until.Content) == 0 {
		remove(fault, "until")
	}
}

// mentions removes the parts of steps and rules that name a thread for which without returns true.
// without may also rename the thread.
func mentions(root *yaml.Node, without func(*yaml.Node) bool) {
	for _, f := range items(get(root, "faults")) {
		if n := get(f, "until", "granted"); n != nil && without(n) {
			forget(f, "granted")
		}
	}
	for _, p := range allSteps(root) {
		kind, value := stepOf(p.step)
		switch kind {
		case "interrupt":
			if without(value) {
				p.step.Kind = gone
			}
		case "published":
			if to := get(value, "to"); to != nil && without(to) {
				p.step.Kind = gone
			}
		case "read":
			for _, n := range items(get(value, "queue")) {
				if without(n) {
					n.Kind = gone
				}
			}
			for _, e := range entries(get(value, "deadlines")) {
				if without(e.key) {
					e.key.Kind = gone
				}
			}
		}
	}
}

// threadCuts returns cuts that each remove a thread. The numbers of the threads after it
// decrease by one. The last thread of a process stays and loses its steps.
func threadCuts(root *yaml.Node) []cut {
	var cuts []cut
	for _, p := range entries(get(root, "processes")) {
		name := p.key.Value
		for number := range threadsOf(p.value) {
			cuts = append(cuts, func() { dropThread(root, p.value, name, number+1) })
		}
	}
	return cuts
}

// threadsOf returns the number of threads that a process declares.
func threadsOf(process *yaml.Node) int {
	if n := get(process, "threads"); n != nil {
		i, _ := strconv.Atoi(n.Value)
		return i
	}
	return 1
}

func dropThread(root, process *yaml.Node, name string, number int) {
	n := threadsOf(process)
	// renumber renames a thread after the dropped one. It reports whether the thread is the
	// dropped one.
	renumber := func(key *yaml.Node) bool {
		p, rest, ok := strings.Cut(key.Value, "/")
		i, err := strconv.Atoi(rest)
		if !ok || err != nil || p != name || i < number {
			return false
		}
		if i == number {
			return true
		}
		key.Value = name + "/" + strconv.Itoa(i-1)
		return false
	}
	for _, t := range entries(get(root, "steps")) {
		if renumber(t.key) {
			t.key.Kind = gone
		}
		if t.key.Value == name+"/*" && n == 2 {
			t.key.Value = name + "/1"
		}
	}
	switch mentions(root, renumber); {
	case n > 2:
		set(process, "threads", scalar(strconv.Itoa(n-1)))
	case n == 2:
		remove(process, "threads")
	}
}

// stepCuts returns cuts that each remove a step with the steps within it.
func stepCuts(root *yaml.Node) []cut {
	var cuts []cut
	for _, p := range allSteps(root) {
		cuts = append(cuts, bury(p.step))
	}
	return cuts
}

// claimCuts returns cuts that each remove a step that only checks a state or a count.
func claimCuts(root *yaml.Node) []cut {
	var cuts []cut
	for _, p := range allSteps(root) {
		if kind, _ := stepOf(p.step); kind == "read" || kind == "published" {
			cuts = append(cuts, bury(p.step))
		}
	}
	return cuts
}

// unwrappings returns cuts that each replace a step by the steps within it. A second cut of a
// with_lock also keeps the attempt to lock.
func unwrappings(root *yaml.Node) []cut {
	var cuts []cut
	for _, p := range allSteps(root) {
		kind, value := stepOf(p.step)
		if kind != "with_lock" && kind != "repeat" {
			continue
		}
		within := items(get(value, "steps"))
		put := func(instead ...*yaml.Node) {
			i := slices.Index(p.list.Content, p.step)
			p.list.Content = slices.Replace(p.list.Content, i, i+1, instead...)
		}
		cuts = append(cuts, func() { put(within...) })
		if kind == "with_lock" {
			cuts = append(cuts, func() {
				kind := "lock"
				if get(value, "wait") != nil {
					kind = "try_lock"
				}
				remove(value, "steps")
				remove(value, "unlock")
				put(append([]*yaml.Node{mapping(kind, value)}, within...)...)
			})
		}
	}
	return cuts
}

// faultCuts returns cuts that each remove a fault.
func faultCuts(root *yaml.Node) []cut {
	var cuts []cut
	for _, f := range items(get(root, "faults")) {
		cuts = append(cuts, bury(f))
	}
	return cuts
}

// needCuts returns cuts that each remove a fault, an interrupt or a skewed clock.
func needCuts(root *yaml.Node) []cut {
	cuts := faultCuts(root)
	for _, p := range allSteps(root) {
		if kind, _ := stepOf(p.step); kind == "interrupt" {
			cuts = append(cuts, bury(p.step))
		}
	}
	for _, p := range entries(get(root, "processes")) {
		if i := find(p.value, "wall_clock"); i >= 0 {
			cuts = append(cuts, bury(p.value.Content[i]))
		}
	}
	return cuts
}

// optionCuts returns cuts that each remove a field of a step, fault, process or resource, a
// process of a partition, or a field of the file.
func optionCuts(root *yaml.Node) []cut {
	var cuts []cut
	fields := func(n *yaml.Node, but ...string) {
		for _, e := range entries(n) {
			if !slices.Contains(but, e.key.Value) {
				cuts = append(cuts, bury(e.key))
			}
		}
	}
	for _, key := range []string{"server", "watchdog", "resources"} {
		if i := find(root, key); i >= 0 {
			cuts = append(cuts, bury(root.Content[i]))
		}
	}
	fields(get(root, "server"), "replicas")
	fields(get(root, "resources"))
	for _, r := range entries(get(root, "resources")) {
		fields(r.value)
	}
	for _, p := range entries(get(root, "processes")) {
		but := "threads"
		if threadsOf(p.value) == 1 {
			but = "" // one thread is the default
		}
		fields(p.value, but)
		fields(get(p.value, "client"))
		fields(get(p.value, "wall_clock"))
	}
	for _, p := range allSteps(root) {
		_, value := stepOf(p.step)
		fields(value, "name", "steps")
		fields(get(value, "deadlines"))
	}
	for _, f := range items(get(root, "faults")) {
		// The fields that limit the messages of a rule stay. With nth the rule meets only one
		// message, so from and until may go.
		if get(f, "when", "nth") != nil {
			fields(f, "when")
		} else {
			fields(f, "when", "from", "until")
		}
		fields(get(f, "when"), "nth", "every", "after")
		fields(get(f, "until"))
		for _, n := range items(get(f, "partition")) {
			cuts = append(cuts, bury(n))
		}
	}
	return cuts
}

// wishCuts returns cuts that each remove an expectation of a step or of a resource.
func wishCuts(root *yaml.Node) []cut {
	var cuts []cut
	fields := func(n *yaml.Node, names ...string) {
		for _, e := range entries(n) {
			if slices.Contains(names, e.key.Value) {
				cuts = append(cuts, bury(e.key))
			}
		}
	}
	for _, p := range allSteps(root) {
		_, value := stepOf(p.step)
		fields(value, "want", "reply")
	}
	for _, r := range entries(get(root, "resources")) {
		fields(r.value, "never_below", "end")
	}
	return cuts
}

// narrowings returns cuts that each let a rule meet one message instead of several.
func narrowings(root *yaml.Node) []cut {
	var cuts []cut
	for _, f := range items(get(root, "faults")) {
		when := get(f, "when")
		if when == nil || get(when, "nth") != nil {
			continue
		}
		nth := []string{"1", "2", "3"}
		if every := get(when, "every"); every != nil {
			nth = []string{every.Value}
		}
		if after := get(when, "after"); after != nil {
			first, _ := strconv.Atoi(after.Value)
			nth = []string{strconv.Itoa(first + 1)}
		}
		for _, n := range nth {
			cuts = append(cuts, func() {
				remove(when, "every")
				remove(when, "after")
				set(when, "nth", scalar(n))
			})
		}
	}
	return cuts
}

// amounts returns the times and numbers that may be changed. It leaves out the resources,
// and the values that the author expects of a step.
func amounts(root *yaml.Node) []*yaml.Node {
	names := []string{
		"at", "sleep", "lease", "wait", "for", "from", "until", "step", "times", "take", "nth", "every", "after", "threads", "lose_last", "replicas",
		"watchdog", "offset", "drift_ppm", "response_timeout", "retry_attempts", "pool_size", "fair_wait",
	}
	var out []*yaml.Node
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		if n == nil {
			return
		}
		for _, e := range entries(n) {
			switch {
			case e.key.Value == "read" || e.key.Value == "published":
			case e.value.Kind == yaml.ScalarNode && slices.Contains(names, e.key.Value):
				out = append(out, e.value)
			default:
				walk(e.value)
			}
		}
		for _, c := range items(n) {
			walk(c)
		}
	}
	for _, key := range []string{"watchdog", "server", "processes", "steps", "faults"} {
		if i := find(root, key); i >= 0 {
			walk(&yaml.Node{Kind: yaml.MappingNode, Content: root.Content[i : i+2]})
		}
	}
	return out
}
