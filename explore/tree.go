package explore

import (
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// This file takes a scenario's text apart as YAML, knowing of the format only
// what refers to what: the loader says whether what is left is a scenario.

// gone marks a node that tidy is to take out. A marked key takes its value along.
const gone = yaml.Kind(0)

// document reads a text that the loader has passed.
func document(text string) (*yaml.Node, error) {
	var n yaml.Node
	if err := yaml.Unmarshal([]byte(text), &n); err != nil {
		return nil, err
	}
	return n.Content[0], nil
}

// source is a tree as the loader reads it.
func source(tree *yaml.Node) string {
	text, err := yaml.Marshal(tree)
	if err != nil {
		panic("explore: a scenario that was read cannot be written: " + err.Error())
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

// find gives the place of a key in a mapping, -1 when it has none.
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

// get follows keys down; nil when one is not there.
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

// set gives a mapping a value, in the place of the one it has.
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

// items are the elements of a sequence that are left.
func items(n *yaml.Node) []*yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(n.Content), func(c *yaml.Node) bool { return c.Kind == gone })
}

// entry is a key of a mapping with its value.
type entry struct{ key, value *yaml.Node }

// entries are the pairs of a mapping that are left.
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

// stepOf is the kind of a step and its fields; no fields for a bare word.
func stepOf(n *yaml.Node) (kind string, value *yaml.Node) {
	if es := entries(n); len(es) > 0 {
		return es[0].key.Value, es[0].value
	}
	return n.Value, nil
}

// placed is a step with the list that it stands in.
type placed struct{ list, step *yaml.Node }

// allSteps are the steps of all threads, a step before those within it.
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

// tidy takes out what is marked, and what has no meaning without it.
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
			// What has only its name is written so.
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

// cut is one thing that can be taken out of the tree that it was made for.
// Several of one list are made from the last to the first.
type cut func()

func bury(n *yaml.Node) cut { return func() { n.Kind = gone } }

// processCuts take out a process, its threads, and what names them.
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
				for _, n := range items(get(f, "partition")) {
					if n.Value == name {
						n.Kind = gone
					}
				}
			}
			mentions(root, func(n *yaml.Node) bool { return strings.HasPrefix(n.Value, name+"/") })
		})
	}
	return cuts
}

// mentions takes out where steps speak of threads that are not there any more.
// The function may rename a thread too.
func mentions(root *yaml.Node, without func(*yaml.Node) bool) {
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

// threadCuts take out a thread; those above it move down by one. A process
// keeps one, which then has no steps.
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

// threadsOf is the number of threads that a process declares.
func threadsOf(process *yaml.Node) int {
	if n := get(process, "threads"); n != nil {
		i, _ := strconv.Atoi(n.Value)
		return i
	}
	return 1
}

func dropThread(root, process *yaml.Node, name string, number int) {
	n := threadsOf(process)
	// renumber moves a thread's name down; it says whether the thread is gone.
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

// stepCuts take out a step with those within it.
func stepCuts(root *yaml.Node) []cut {
	var cuts []cut
	for _, p := range allSteps(root) {
		cuts = append(cuts, bury(p.step))
	}
	return cuts
}

// claimCuts take out the steps that only look.
func claimCuts(root *yaml.Node) []cut {
	var cuts []cut
	for _, p := range allSteps(root) {
		if kind, _ := stepOf(p.step); kind == "read" || kind == "published" {
			cuts = append(cuts, bury(p.step))
		}
	}
	return cuts
}

// unwrappings put in a step's place what stands within it; of with_lock also
// with its lock kept.
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

// faultCuts take out a fault.
func faultCuts(root *yaml.Node) []cut {
	var cuts []cut
	for _, f := range items(get(root, "faults")) {
		cuts = append(cuts, bury(f))
	}
	return cuts
}

// optionCuts take out a field of a step, fault, process or resource, a process
// of a partition, or a field of the file.
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
			but = "" // which goes without saying
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
		// What makes a rule meet less stays, but that one message is one whenever
		// it is sent.
		if get(f, "when", "nth") != nil {
			fields(f, "when")
		} else {
			fields(f, "when", "from", "until")
		}
		fields(get(f, "when"), "nth", "every")
		for _, n := range items(get(f, "partition")) {
			cuts = append(cuts, bury(n))
		}
	}
	return cuts
}

// wishCuts take out what the author wants of steps, and of resources' ends.
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

// narrowings let a rule meet one message where it met several.
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
		for _, n := range nth {
			cuts = append(cuts, func() {
				remove(when, "every")
				set(when, "nth", scalar(n))
			})
		}
	}
	return cuts
}

// amounts are the times and numbers that may be changed: not what the author
// wants or reads, and not the resources.
func amounts(root *yaml.Node) []*yaml.Node {
	names := []string{
		"at", "sleep", "lease", "wait", "for", "from", "until", "step", "times", "take", "nth", "every", "threads", "lose_last", "replicas",
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
