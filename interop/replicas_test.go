//go:build interop

package interop

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/internal/realtime"
	"lockstep/lockimpl/redisson"
)

// TestWireOfReplicas compares the commands that both sides send to a master with a replica.
func TestWireOfReplicas(t *testing.T) {
	t.Parallel()
	for _, rel := range redisson.Releases {
		t.Run(rel.Version, func(t *testing.T) {
			t.Parallel()
			compareLines(t, rel, redisson.Replicated, func(t *testing.T) []*Proxy {
				master, replica := startReplicated(t)
				return []*Proxy{StartProxy(t, master.Addr), StartProxy(t, replica.Addr)}
			})
		})
	}
}

// TestWireOfCluster compares the commands that both sides send to a cluster of one master and its
// replica, for the releases that publish in another way in a cluster.
func TestWireOfCluster(t *testing.T) {
	t.Parallel()
	for _, rel := range redisson.Releases {
		if !rel.Sharded() {
			continue
		}
		t.Run(rel.Version, func(t *testing.T) {
			t.Parallel()
			compareLines(t, rel, redisson.Cluster, func(t *testing.T) []*Proxy { return startCluster(t) })
		})
	}
}

func startReplicated(t *testing.T) (master, replica *Server) {
	master = StartServer(t)
	host, port, _ := net.SplitHostPort(master.Addr)
	replica = StartServer(t, "--replicaof", host+" "+port, "--repl-diskless-sync-delay", "0")
	eventually(t, "the replica to be in step", func(ctx context.Context) bool {
		return infoOf(ctx, replica.Addr, "master_link_status") == "up" && infoOf(ctx, master.Addr, "connected_slaves") == "1"
	})
	return master, replica
}

// startCluster starts a master with all slots and its replica, and returns a proxy of each. The
// nodes announce the proxies' ports as their own.
func startCluster(t *testing.T) []*Proxy {
	var nodes []*Server
	var via []*Proxy
	ctx := context.Background()
	for range 2 {
		node := StartServer(t, "--cluster-enabled", "yes", "--databases", "1", "--repl-diskless-sync-delay", "0")
		p := StartProxy(t, node.Addr)
		_, port, _ := net.SplitHostPort(p.Addr)
		rdb := redis.NewClient(&redis.Options{Addr: node.Addr})
		if err := rdb.ConfigSet(ctx, "cluster-announce-port", port).Err(); err != nil {
			t.Fatal(err)
		}
		_ = rdb.Close()
		nodes, via = append(nodes, node), append(via, p)
	}
	master := redis.NewClient(&redis.Options{Addr: nodes[0].Addr})
	replica := redis.NewClient(&redis.Options{Addr: nodes[1].Addr})
	defer func() { _, _ = master.Close(), replica.Close() }()
	if err := master.ClusterAddSlotsRange(ctx, 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	host, port, _ := net.SplitHostPort(nodes[0].Addr)
	n, _ := strconv.Atoi(port)
	if err := replica.Do(ctx, "CLUSTER", "MEET", host, port, n+10000).Err(); err != nil {
		t.Fatal(err)
	}
	id, err := master.Do(ctx, "CLUSTER", "MYID").Text()
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the nodes to meet", func(ctx context.Context) bool {
		return replica.Do(ctx, "CLUSTER", "REPLICATE", id).Err() == nil
	})
	eventually(t, "the cluster to be ready", func(ctx context.Context) bool {
		return strings.Contains(replica.ClusterInfo(ctx).Val(), "cluster_state:ok") &&
			strings.Contains(master.ClusterInfo(ctx).Val(), "cluster_state:ok") &&
			infoOf(ctx, nodes[1].Addr, "master_link_status") == "up" && infoOf(ctx, nodes[0].Addr, "connected_slaves") == "1" &&
			strings.Contains(master.ClusterNodes(ctx).Val(), "slave")
	})
	return via
}

func infoOf(ctx context.Context, addr, field string) string {
	rdb := redis.NewClient(&redis.Options{Addr: addr})
	defer func() { _ = rdb.Close() }()
	for line := range strings.SplitSeq(rdb.Info(ctx).Val(), "\r\n") {
		if v, ok := strings.CutPrefix(line, field+":"); ok {
			return v
		}
	}
	return ""
}

func eventually(t *testing.T, what string, is func(context.Context) bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if is(context.Background()) {
			return
		}
	}
	t.Fatalf("waited in vain for %s", what)
}

// unsyncedCalls are made while the replica stands still: WAIT answers 0.
var unsyncedCalls = []struct {
	name   string
	kind   string
	before []move
	move   move
}{
	{"plain lock", "plain", nil, move{thread: 1, op: "lock"}},
	{"plain tryLock", "plain", nil, move{thread: 1, op: "try_lock"}},
	{"plain unlock of one of six levels", "plain", slices.Repeat([]move{{thread: 1, op: "lock"}}, 6), move{thread: 1, op: "unlock"}},
	{"plain force unlock", "plain", []move{{thread: 1, op: "lock"}}, move{thread: 2, op: "force_unlock"}},
	{"fair lock", "fair", nil, move{thread: 1, op: "lock"}},
	{"fair unlock of one of six levels", "fair", slices.Repeat([]move{{thread: 1, op: "lock"}}, 6), move{thread: 1, op: "unlock"}},
	{"fair tryLock of what another holds", "fair", []move{{thread: 1, op: "lock"}}, move{thread: 2, op: "try_lock", with: Fields{"wait", 100}}},
}

// TestUnsynced compares the sides on a replica that does not answer.
func TestUnsynced(t *testing.T) {
	t.Parallel()
	for _, rel := range redisson.Releases {
		if rel.Sync == redisson.SyncNone {
			continue
		}
		t.Run(rel.Version, func(t *testing.T) {
			t.Parallel()
			lib := StartLibrary(t, rel.Version)
			const attempts = 2
			type side struct {
				master, replica *Server
				begin           func(*Proxy, *Proxy) player
			}
			set := func(r *Proxy) settings {
				return settings{watchdog: noWatchdog, topology: redisson.Replicated, replicas: []*Proxy{r}, attempts: attempts}
			}
			agreed := 0
			realtime.Case(t, "calls without a replica's answer", func(int) string { // on new servers in each try
				sides := make([]side, 2)
				for i := range sides {
					sides[i].master, sides[i].replica = startReplicated(t)
				}
				sides[0].begin = func(p, r *Proxy) player { return newLibraryPlayer(t, lib, p, set(r), 3) }
				sides[1].begin = func(p, r *Proxy) player { return newPortPlayer(t, rel, p, set(r)) }
				outcomes := make([][2]string, len(unsyncedCalls))
				var before [2]string // what failed while all servers answered
				var all sync.WaitGroup
				for i, s := range sides {
					all.Go(func() {
						players := make([]player, len(unsyncedCalls))
						for k, x := range unsyncedCalls {
							p := s.begin(StartProxy(t, s.master.Addr), StartProxy(t, s.replica.Addr))
							players[k] = p
							for _, m := range append([]move{{thread: 3, op: "lock"}, {thread: 3, op: "unlock"}}, x.before...) {
								if r := await(t, p.do(m.thread, m.op, Fields{"kind", x.kind, "lock", fmt.Sprintf("unsynced%d", k)})); r != "ok" {
									before[i] = fmt.Sprintf("%s, before: %s %s", x.name, m.op, r)
								}
							}
						}
						freeze(t, s.replica)
						var calls sync.WaitGroup
						for k, x := range unsyncedCalls {
							calls.Go(func() {
								outcomes[k][i] = unsynced(t, rel, players[k], x.kind, x.move, fmt.Sprintf("unsynced%d", k), s.master.Addr)
							})
						}
						calls.Wait()
					})
				}
				all.Wait()
				agreed = 0
				var apart []string
				for _, failed := range before {
					if failed != "" {
						apart = append(apart, failed)
					}
				}
				for k, x := range unsyncedCalls {
					if o := outcomes[k]; o[0] != o[1] {
						apart = append(apart, x.name+":\n"+bothSides(o[0], o[1]))
					} else {
						agreed++
						t.Logf("%s:\n  both:    %s", x.name, o[0])
					}
				}
				return strings.Join(apart, "\n")
			})
			t.Logf("redisson %s: %d calls of %d without a replica's answer agree", rel.Version, agreed, len(unsyncedCalls))
		})
	}
}

// freeze stops a server as a whole: it answers nothing, and its connections stay open.
func freeze(t *testing.T, s *Server) {
	pid, err := strconv.Atoi(infoOf(context.Background(), s.Addr, "process_id"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = exec.Command("kill", "-CONT", strconv.Itoa(pid)).Run() })
}

func unsynced(t *testing.T, rel *redisson.Release, p player, kind string, m move, lock, master string) string {
	via := p.proxies()[0]
	via.Quiet(30*time.Millisecond, time.Second)
	from := len(via.Sent(0))
	result := await(t, p.do(m.thread, m.op, append(Fields{"kind", kind, "lock", lock}, m.with...)))
	time.Sleep(300 * time.Millisecond)
	n := newWording(rel, []player{p})
	var out []string
	var last time.Duration
	for _, s := range via.Sent(from) {
		text := n.command(via, s)
		if text == "" {
			continue
		}
		words := strings.Fields(text)
		if strings.HasPrefix(words[0], "EVAL") {
			gap := ""
			if last != 0 && s.At-last > 1700*time.Millisecond { // WAIT alone takes 1 s; WAIT and the shortest delay take 2 s
				gap = "(later) "
			}
			request := ""
			for _, w := range words {
				if _, r, ok := strings.Cut(w, "}:request"); ok {
					request = " request" + r
				}
			}
			text = gap + words[0] + " " + words[1] + request
		}
		last = s.At
		out = append(out, text)
	}
	state, _, _ := strings.Cut(lostState(master, lock), " queued") // latches may be over by now
	return fmt.Sprintf("%s; %s; %s", result, strings.Join(out, ", "), state)
}
