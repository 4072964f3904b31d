package coverage_test

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"lockstep/explore/coverage"
	"lockstep/model"
	"lockstep/model/trace"
	"lockstep/scenarios/play"
	"lockstep/scenarios/scenariotest"
	_ "lockstep/scenarios/subject/builtin"
	"lockstep/sim"
)

func TestCodesStandForCells(t *testing.T) {
	seen := map[int]bool{}
	try := func(state coverage.State, op model.Action, m coverage.Moment) {
		for _, k := range append([]coverage.Kind{coverage.None}, coverage.Kinds...) {
			c := coverage.Cell{State: state, Op: op, Moment: m, Fault: k}
			if got, ok := coverage.CellOf(c.Code()); !ok || got != c || seen[c.Code()] {
				t.Fatalf("the code %d of %v gives %v", c.Code(), c, got)
			}
			seen[c.Code()] = true
		}
	}
	for _, op := range coverage.Operations {
		for _, state := range coverage.States {
			for _, m := range coverage.Moments {
				try(state, op, m)
			}
		}
	}
	for _, op := range append(slices.Clone(coverage.Operations), coverage.Renewal) {
		for _, state := range coverage.Between {
			for _, m := range coverage.Gaps {
				try(state, op, m)
			}
		}
	}
	if c := (coverage.Cell{State: coverage.Free, Op: model.ActLock, Moment: coverage.AfterFirst}); c.Code() >= 0 {
		t.Errorf("the code of %v, which does not exist, is %d", c, c.Code())
	}
	for _, code := range []int{-1, len(seen)} {
		if c, ok := coverage.CellOf(code); ok {
			t.Errorf("code %d is %v", code, c)
		}
	}
}

// two plays two threads on one lock: a/1 holds it for 15 s, and b/1 waits for it from 1 s on.
func two(t *testing.T, faults string) (openings []coverage.Opening, cells []string) {
	t.Helper()
	return played(t, "redisson@4.7.0", `
  a/1: [{lock: x}, {sleep: 15s}, {unlock: x}]
  b/1: [{at: 1s}, {lock: {name: x, lease: 2s}}, {sleep: 3s}, {unlock: x}]`, faults)
}

// cellsOf returns the cells of a run.
func cellsOf(t *testing.T, lock, steps, faults string) []string {
	t.Helper()
	_, cells := played(t, lock, steps, faults)
	return cells
}

// played plays a run of the processes a, b and c, and returns its openings and its cells in words.
func played(t *testing.T, lock, steps, faults string) (openings []coverage.Opening, cells []string) {
	t.Helper()
	h := sim.NewHost(t)
	sc := scenariotest.Parse(t, `
lockstep: 1
name: threads
about: Some threads.
locks: [`+lock+`]
network: {latency: 1ms}
processes: {a: {}, b: {}, c: {}}
steps:`+steps+`
faults: [`+faults+`]
`)
	run := trace.New(play.Play(h, sc, scenariotest.Lock(t, lock), sim.NewSeeded(1)).Record)
	openings = coverage.Openings(run)
	for _, code := range coverage.Cells(run, openings) {
		c, ok := coverage.CellOf(code)
		if !ok {
			t.Fatalf("no cell has the code %d", code)
		}
		cells = append(cells, c.String())
	}
	return openings, cells
}

func TestSituationsOfARun(t *testing.T) {
	openings, cells := two(t, "")
	for _, want := range []string{
		"lock, between request and effect, free",
		"lock, between effect and reply, held by the thread",
		"lock, in the critical section, held by the thread",
		"lock, at the renewal, held by the thread and waited for",
		"lock, before the request, held by another",
		"lock, between request and effect, held by another",
		"lock, while waiting, held by another",
		"lock, at the wake-up, free",
		"lock, after the lease, free",
		"unlock, between request and effect, free",
	} {
		if !slices.Contains(cells, want) {
			t.Errorf("%q is missing in\n%s", want, strings.Join(cells, "\n"))
		}
	}
	for _, o := range openings {
		if o.FromNs >= o.ToNs {
			t.Errorf("%+v has no length", o)
		}
		if coverage.Cannot(coverage.Drop, o.Moment) != "" && o.Nth > 0 {
			t.Errorf("%+v: the %d-th message", o, o.Nth)
		}
	}
	i := slices.IndexFunc(openings, func(o coverage.Opening) bool {
		return o.Moment == coverage.AtRenewal && o.Thread == "a/1" && o.Role == model.RoleRenew
	})
	if i < 0 || openings[i].FromNs < 10e9 || openings[i].FromNs > 10.2e9 || openings[i].LeftNs < 19e9 || openings[i].LeftNs > 20.1e9 {
		t.Errorf("the renewal of a/1 is not at 10 s, with 20 s left of the lease: %+v", openings)
	}
}

func TestCellsThatFaultsMeet(t *testing.T) {
	for _, c := range []struct{ fault, want string }{
		{"{at: 5s, crash: a}", "crash met lock, in the critical section, held by the thread and waited for"},
		{"{at: 5s, crash: b}", "crash met lock, while waiting, held by another"},
		{"{at: 15001ms, pause: b, for: 1s}", "pause met lock, while waiting, held by another"},
		{"{at: 5s, server: restart, keep_data: true}", "restart met lock, while waiting, held by another"},
		{"{at: 5s, key: x, do: delete}", "delete met lock, in the critical section, held by the thread and waited for"},
		{"{when: {process: a, script: acquire, nth: 1}, do: drop}", "drop met lock, between request and effect, free"},
		{"{when: {process: a, script: acquire, direction: reply}, do: delay, for: 1s}", "delay met lock, between effect and reply, held by the thread"},
		{"{when: {process: a, script: renew, nth: 1}, do: error, with: ERR injected}", "error met lock, at the renewal, held by the thread and waited for"},
		{`{when: {process: b, channel: "*", direction: reply, nth: 2}, do: drop}`, "drop met lock, at the wake-up, free"},
	} {
		if _, cells := two(t, c.fault); !slices.Contains(cells, c.want) {
			t.Errorf("%s: %q is missing in\n%s", c.fault, c.want, strings.Join(cells, "\n"))
		}
	}
	if _, cells := two(t, ""); slices.ContainsFunc(cells, func(c string) bool { return strings.Contains(c, " met ") }) {
		t.Errorf("a run without faults has met one: %s", strings.Join(cells, "\n"))
	}
}

// Three threads want a fair lock. The one in the middle dies, or gives up and its message is lost.
func TestWaitersOfAQueue(t *testing.T) {
	const ahead = "lock, while waiting, held by another with a waiter ahead"
	dead := []string{
		"lock, while waiting, held by another with a dead waiter ahead", // c, behind b
		"lock, in the critical section, held by the thread with a dead waiter ahead",
		"unlock, between request and effect, held by the thread with a dead waiter ahead",
	}
	for _, c := range []struct {
		b, fault string
		dead     bool
	}{
		{"{lock: x}, {sleep: 1s}, {unlock: x}", "", false},
		{"{lock: x}", "{at: 5s, crash: b}", true},
		{"{try_lock: {name: x, wait: 3s}}", "", false},
		{"{try_lock: {name: x, wait: 3s}}", "{at: 3s, partition: b, for: 40s}", true},
	} {
		cells := cellsOf(t, "redisson-fair@3.21.3", `
  a/1: [{lock: x}, {sleep: 15s}, {unlock: x}]
  b/1: [{at: 1s}, `+c.b+`]
  c/1: [{at: 2s}, {lock: x}, {sleep: 1s}, {unlock: x}]`, c.fault)
		if !slices.Contains(cells, ahead) {
			t.Errorf("%s, %s: %q is missing in\n%s", c.b, c.fault, ahead, strings.Join(cells, "\n"))
		}
		for _, want := range dead {
			if slices.Contains(cells, want) != c.dead {
				t.Errorf("%s, %s: %q is there: %v, want %v, in\n%s", c.b, c.fault, want, !c.dead, c.dead, strings.Join(cells, "\n"))
			}
		}
	}
}

// A lock without a queue tells no order of its waiters, and a dead one does not wait.
func TestWaitersWithoutAQueue(t *testing.T) {
	cells := cellsOf(t, "redisson@4.7.0", `
  a/1: [{lock: x}, {sleep: 15s}, {unlock: x}]
  b/1: [{at: 1s}, {lock: x}]`, "{at: 5s, crash: b}")
	for want, there := range map[string]bool{
		"lock, in the critical section, held by the thread and waited for":      true,
		"unlock, between request and effect, held by the thread":                true,
		"unlock, between request and effect, held by the thread and waited for": false,
	} {
		if slices.Contains(cells, want) != there {
			t.Errorf("%q is there: %v, want %v, in\n%s", want, !there, there, strings.Join(cells, "\n"))
		}
	}
	if i := slices.IndexFunc(cells, func(c string) bool { return strings.Contains(c, " ahead") }); i >= 0 {
		t.Errorf("there is an order of waiters: %s", cells[i])
	}
}

// The empty cells are named by kind of fault. Where they are many, some of each kind are named,
// and the number of the others.
func TestEmptyCellsAreNamed(t *testing.T) {
	anywhere := func(coverage.Moment) string { return "" }
	var met, open []int
	for _, state := range coverage.States[:8] {
		for _, m := range []coverage.Moment{coverage.ToServer, coverage.FromServer, coverage.AtRenewal} {
			for _, op := range []model.Action{model.ActLock, model.ActUnlock, model.ActExtend} {
				c := coverage.Cell{State: state, Op: op, Moment: m}
				met = append(met, c.Code())
				if c.Fault = coverage.Drop; m == coverage.AtRenewal || op != model.ActLock {
					open = append(open, c.Code())
				} else {
					met = append(met, c.Code())
				}
				if c.Fault = coverage.Crash; op == model.ActLock && state == coverage.Free {
					open = append(open, c.Code())
				}
			}
		}
	}
	table := coverage.Sum(met, open, []coverage.Asked{{Kind: coverage.Drop, At: anywhere}, {Kind: coverage.Crash, At: anywhere}, {Kind: coverage.Pause, At: anywhere}}, nil)
	if n := len(table.Empty()); n != 7*8+3 || n != table.Of-table.Met {
		t.Errorf("%d cells are empty, of %d that faults could meet they met %d", n, table.Of, table.Met)
	}
	for _, want := range []string{
		"* drop never met 56 of 72: lock at the renewal (free, held by the thread, ", "; unlock between request and effect (free, held by the thread); ", "; and 44 more.\n",
		"* crash never met 3 of 3: lock between request and effect (free); lock between effect and reply (free); lock at the renewal (free).\n",
	} {
		if !strings.Contains(table.Markdown(), want) {
			t.Errorf("no %q in\n%s", want, table.Markdown())
		}
	}
	if full := coverage.Sum(open, open, []coverage.Asked{{Kind: coverage.Drop, At: anywhere}}, nil); full.NotTried(3) != "" || full.Met != full.Of {
		t.Errorf("of a full table: %q", full.NotTried(3))
	}
}

func TestTheTableCountsSituations(t *testing.T) {
	section := coverage.Cell{State: coverage.Own, Op: model.ActLock, Moment: coverage.InSection}
	waited := section
	waited.State = coverage.Own.With(coverage.AnotherWaits)
	crashed := section
	crashed.Fault = coverage.Crash
	renewal := coverage.Cell{State: coverage.Own, Op: model.ActLock, Moment: coverage.AtRenewal, Fault: coverage.Drop}
	anywhere := func(coverage.Moment) string { return "" }
	crashedWaited := waited
	crashedWaited.Fault = coverage.Crash
	crashedLater := renewal
	crashedLater.Fault = coverage.Crash
	table := coverage.Sum([]int{section.Code(), waited.Code(), crashed.Code(), renewal.Code(), 1 << 40}, []int{crashed.Code(), crashedWaited.Code(), crashedLater.Code()}, []coverage.Asked{
		{Kind: coverage.Drop, At: anywhere}, {Kind: coverage.Crash, At: anywhere}, {Kind: coverage.Isolate, Lacks: "one server is alone"},
	}, nil)
	// The dropped renewal is a situation too, which no opening told of.
	if table.Situations != 3 || table.Met != 2 || table.Of != 4 {
		t.Errorf("%+v", table)
	}
	want := []coverage.Situation{
		{Op: model.ActLock, State: coverage.Own, Moment: coverage.InSection, Met: []coverage.Kind{coverage.Crash}},
		{Op: model.ActLock, State: coverage.Own, Moment: coverage.AtRenewal, Met: []coverage.Kind{coverage.Drop}, Never: []coverage.Kind{coverage.Crash}},
		{Op: model.ActLock, State: coverage.Own.With(coverage.AnotherWaits), Moment: coverage.InSection, Never: []coverage.Kind{coverage.Crash}},
	}
	if !reflect.DeepEqual(table.Grid, want) {
		t.Errorf("the situations are %+v", table.Grid)
	}
	text := table.Markdown()
	for _, want := range []string{
		"| crash | – | no run | no run | no run | no run | 1 of 2 | 0 of 1 | no run |\n", "* isolate: one server is alone.\n",
		"* crash never met 2 of 3: lock at the renewal (held by the thread); lock in the critical section (held by the thread and waited for).\n",
		"* crash had no room in any run: between request and effect;", "at the wake-up; after the lease; before request 1; after request 1; after request 2; after request 3; after request 4.\n",
		"* cannot be (no message is on its way): drop before the request,",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}
