//go:build linux

package topology

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"lockstep/lockimpl/redisserver"
)

// options returns the settings for a test. The test is skipped without redis-server.
func options(t *testing.T) Options {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		redisserver.Missing(t, "redis-server", "redis-server")
	}
	return Options{Path: path, Dir: t.TempDir(), Start: (*exec.Cmd).Start}
}

func replicas(t *testing.T, n int) *Replicas {
	t.Helper()
	r, err := StartReplicas(t.Context(), options(t), n)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Stop)
	return r
}

func (n *Node) must(t *testing.T, words ...any) any {
	t.Helper()
	v, err := n.do(context.Background(), words...).Result()
	if err != nil {
		t.Fatalf("%s: %v: %v", n.Name, words, err)
	}
	return v
}

// get returns the value of a key, "" if there is none.
func (n *Node) get(t *testing.T, key string) string {
	t.Helper()
	v, _ := n.do(context.Background(), "GET", key).Text()
	return v
}

func TestReplicasHaveWhatTheMasterHas(t *testing.T) {
	t.Parallel()
	r := replicas(t, 2)
	r.Master().must(t, "SET", "orders", "a")
	if n := r.Master().must(t, "WAIT", 2, 60_000); n != int64(2) {
		t.Fatalf("WAIT: %v replicas have the write, want 2", n)
	}
	for _, n := range r.Nodes {
		if got := n.get(t, "orders"); got != "a" {
			t.Errorf("%s has %q", n.Name, got)
		}
	}
}

func TestALagDelaysWritesAndAcknowledgements(t *testing.T) {
	t.Parallel()
	r := replicas(t, 1)
	const lag = 3 * time.Second // long enough that a machine that stands still for a second does not change the outcome
	r.Lag(lag, lag)
	r.Master().must(t, "SET", "orders", "a")
	begun := time.Now()
	if n := r.Master().must(t, "WAIT", 1, 1000); n != int64(0) {
		t.Errorf("WAIT of a second: %v replicas have the write, want none", n)
	}
	if n := r.Master().must(t, "WAIT", 1, 60_000); n != int64(1) {
		t.Errorf("WAIT of a minute: %v replicas have the write, want 1", n)
	}
	if took := time.Since(begun); took < 2*lag {
		t.Errorf("the acknowledgement came after %v, want at least the two ways of %v each", took, lag)
	}
}

func TestAFailoverLosesWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	r := replicas(t, 2)
	r.Master().must(t, "SET", "orders", "a")
	if n := r.Master().must(t, "WAIT", 2, 60_000); n != int64(2) {
		t.Fatalf("WAIT: %v, want 2", n)
	}
	r.Lag(time.Hour, time.Hour)
	old := r.Master()
	old.must(t, "SET", "orders", "b")
	lacks, err := r.Failover(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Master() == old || lacks <= 0 {
		t.Errorf("the master is %s, which lacks %d bytes; want another one, which lacks the last write", r.Master().Name, lacks)
	}
	for _, n := range r.Nodes {
		if got := n.get(t, "orders"); got != "a" {
			t.Errorf("%s has %q after the failover, want what the replicas had", n.Name, got)
		}
	}
	// A second failover works too, and the lag remains.
	r.Lag(0, 0)
	r.Master().must(t, "SET", "orders", "c")
	if n := r.Master().must(t, "WAIT", 2, 60_000); n != int64(2) {
		t.Fatalf("WAIT after the failover: %v, want 2", n)
	}
	if lacks, err = r.Failover(t.Context()); err != nil || lacks != 0 {
		t.Errorf("the second failover: %v, it lacks %d bytes", err, lacks)
	}
	if got := r.Master().get(t, "orders"); got != "c" {
		t.Errorf("after a failover without a lag the key is %q", got)
	}
}

func TestAPromotedReplicaHasTheMostWrites(t *testing.T) {
	t.Parallel()
	r := replicas(t, 2)
	// The first replica hears nothing more: its link is cut.
	first := r.Nodes[1]
	first.must(t, "REPLICAOF", "127.0.0.1", "1")
	r.Master().must(t, "SET", "orders", "a")
	if n := r.Master().must(t, "WAIT", 1, 10_000); n != int64(1) {
		t.Fatalf("WAIT: %v, want 1", n)
	}
	if _, err := r.Failover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if r.Master() != r.Nodes[2] {
		t.Errorf("the master is %s, want the replica that got the write", r.Master().Name)
	}
	if got := r.Master().get(t, "orders"); got != "a" {
		t.Errorf("the key is %q", got)
	}
}

func TestARestartOfAMasterWithReplicas(t *testing.T) {
	t.Parallel()
	r := replicas(t, 2)
	for _, keep := range []bool{true, false} {
		r.Master().must(t, "SET", "orders", "a")
		if err := r.Restart(t.Context(), keep); err != nil {
			t.Fatal(err)
		}
		want := ""
		if keep {
			want = "a"
		}
		for _, n := range r.Nodes {
			if got := n.get(t, "orders"); got != want {
				t.Errorf("keep %v: %s has %q, want %q", keep, n.Name, got, want)
			}
		}
	}
}

func TestSentinelsPromoteAReplica(t *testing.T) {
	t.Parallel()
	s, err := StartSentinels(t.Context(), options(t), 2)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	if len(s.Addrs()) != 3 {
		t.Errorf("the sentinels are at %v", s.Addrs())
	}
	for round, kept := range []bool{true, false} {
		old := s.Master()
		old.must(t, "SET", "orders", "a")
		if n := old.must(t, "WAIT", 2, 60_000); n != int64(2) {
			t.Fatalf("WAIT: %v, want 2", n)
		}
		want := "b"
		if kept {
			old.must(t, "SET", "orders", "b")
			if n := old.must(t, "WAIT", 2, 60_000); n != int64(2) {
				t.Fatalf("WAIT: %v, want 2", n)
			}
		} else {
			want = "a"
			s.Lag(time.Hour, time.Hour)
			old.must(t, "SET", "orders", "b")
		}
		killed, told, lacks := false, false, int64(0)
		err := s.Failover(t.Context(), Failing{func() { killed = true }, func(n *Node, bytes int64) { told, lacks = n == s.Master(), bytes }})
		s.Lag(0, 0)
		if err != nil {
			t.Fatal(err)
		}
		if s.Master() == old || !killed || !told || kept != (lacks == 0) {
			t.Errorf("round %d: the master is %s, told %v, which lacks %d bytes", round, s.Master().Name, told, lacks)
		}
		for _, n := range s.Nodes {
			if got := n.get(t, "orders"); got != want {
				t.Errorf("round %d: %s has %q after the failover, want %q", round, n.Name, got, want)
			}
		}
	}
}

func TestAClusterPromotesAReplicaAndMovesASlot(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	c, err := StartCluster(ctx, options(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Stop)
	slot, err := c.Slot(ctx, "orders")
	if err != nil {
		t.Fatal(err)
	}
	owner := func() *Node {
		n, err := c.Owner(ctx, slot)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	first := owner()
	first.must(t, "SET", "orders", "a")
	if n := first.must(t, "WAIT", 1, 10_000); n != int64(1) {
		t.Fatalf("WAIT: %v, want 1", n)
	}
	m, err := c.Move(ctx, "orders")
	if err != nil {
		t.Fatal(err)
	}
	if m.From != first || m.To == first {
		t.Fatalf("the slot moves from %s to %s, and %s has it", m.From.Name, m.To.Name, first.Name)
	}
	if got := first.get(t, "orders"); got != "a" {
		t.Errorf("while the slot begins to move, the old master has %q", got)
	}
	if err := m.Keys(ctx); err != nil {
		t.Fatal(err)
	}
	if err := first.do(ctx, "GET", "orders").Err(); err == nil || !hasPrefix(err, "ASK ") {
		t.Errorf("the old master answers %v for a key that has moved, want ASK", err)
	}
	if err := m.Finish(ctx); err != nil {
		t.Fatal(err)
	}
	if err := first.do(ctx, "GET", "orders").Err(); err == nil || !hasPrefix(err, "MOVED ") {
		t.Errorf("the old master answers %v for a slot that has moved, want MOVED", err)
	}
	if got := m.To.get(t, "orders"); got != "a" || owner() != m.To {
		t.Errorf("the new master has %q, and %s has the slot", got, owner().Name)
	}
	// Its master dies.
	if n := m.To.must(t, "WAIT", 1, 10_000); n != int64(1) {
		t.Fatalf("WAIT: %v, want 1", n)
	}
	var told *Node
	if err := c.Failover(ctx, "orders", Failing{Promoted: func(n *Node, _ int64) { told = n }}); err != nil {
		t.Fatal(err)
	}
	if told == nil || told == m.To || owner() != told {
		t.Fatalf("%v was promoted, and %s has the slot", told, owner().Name)
	}
	if got := told.get(t, "orders"); got != "a" {
		t.Errorf("after the failover the key is %q", got)
	}
}

func hasPrefix(err error, text string) bool { return strings.HasPrefix(err.Error(), text) }
