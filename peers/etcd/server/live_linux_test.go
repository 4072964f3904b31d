package server

import (
	"slices"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
)

func TestHousekeeping(t *testing.T) {
	frame := func(kind byte, size int) string {
		return string([]byte{0, 0, byte(size), kind, 0, 0, 0, 0, 0}) + string(make([]byte, size))
	}
	for _, c := range []struct {
		text string
		want bool
	}{
		{"", true}, {preface, true}, {preface + frame(4, 6), true}, {frame(8, 4) + frame(6, 8), true},
		{frame(0, 5), false}, {frame(1, 5), false}, {frame(8, 4) + frame(0, 5), false}, {frame(3, 4), false}, {frame(9, 4), false},
		{frame(8, 4)[:11], false}, {"GET / HT", false},
	} {
		if got := housekeeping([]byte(c.text)); got != c.want {
			t.Errorf("%q: %v, want %v", c.text, got, c.want)
		}
	}
}

// The observer of etcd misses no revision.
func TestTheObserverTellsEachRevision(t *testing.T) {
	m, addr := startMember(t)
	o := &observer{m: m, revision: m.etcd.KV().Rev()}
	c, session := connect(t, addr)
	if _, err := c.Put(t.Context(), "orders/a", "", clientv3.WithLease(session.Lease())); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"orders/b", "orders/a"} {
		if _, err := c.Put(t.Context(), "orders/b", ""); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	views, err := o.Look([]string{"orders"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, v := range views {
		got = append(got, keysOf(shown(v, "orders/")))
	}
	if want := []string{"a", "a,b", "a", "a,b", "b"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if e := views[0][0]; !e.Leased {
		t.Errorf("%+v has no lease", e)
	}
	if views, err = o.Look([]string{"orders"}); err != nil || len(views) != 1 || len(views[0]) != 1 {
		t.Errorf("a look without a change: %v, %v; want the present view", views, err)
	}
	left, err := o.Left()
	if want := []string{"orders/b"}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left %q, %v; want %q", left, err, want)
	}
}

// A live run shows the same entries as the simulated server: the key that has the name of a lock, and the
// keys below the name.
func TestAnObservedServerHasTheEntriesOfTheServer(t *testing.T) {
	m, addr := startMember(t)
	o := &observer{m: m, revision: m.etcd.KV().Rev()}
	c, _ := connect(t, addr)
	for _, key := range []string{"orders/b", "orders", "orders/a", "stock"} {
		if _, err := c.Put(t.Context(), key, ""); err != nil {
			t.Fatal(err)
		}
	}
	views, err := o.Look([]string{"orders"})
	if err != nil {
		t.Fatal(err)
	}
	simulated := &Server{now: m, seen: map[string][]Entry{}}
	for prefix, want := range map[string]string{"orders": "/b,,/a", "orders/": "b,a", "stock": "", "": "orders/b,orders,orders/a,stock"} {
		got := shown(views[len(views)-1], prefix)
		if keysOf(got) != want || !slices.Equal(got, simulated.Entries(prefix)) {
			t.Errorf("below %q: %v, and the simulated server has %v; want the keys %s", prefix, got, simulated.Entries(prefix), want)
		}
	}
	if got := shown(nil, "orders"); len(got) != 0 {
		t.Errorf("an empty server has %v", got)
	}
}

// shown returns the entries below a prefix of a server that shows a view.
func shown(v view, prefix string) []Entry {
	s := &Server{}
	s.Show(v)
	return s.Entries(prefix)
}

// keysOf returns the keys of entries.
func keysOf(entries []Entry) string {
	var keys []string
	for _, e := range entries {
		keys = append(keys, e.Key)
	}
	return strings.Join(keys, ",")
}
