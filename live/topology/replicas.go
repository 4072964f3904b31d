//go:build linux

package topology

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// servers are the servers of a group.
type servers struct {
	Nodes    []*Node
	min, max time.Duration // the lag
}

// Stop ends all servers.
func (s *servers) Stop() {
	for _, n := range s.Nodes {
		n.Stop()
	}
}

// Lag delays each write on its way to a replica, and each acknowledgement on its way back. The
// delay is drawn between the two for each piece of bytes. It lasts until the next call. A replica
// that connects anew gets the data without the delay, because its handshake would take the delay
// several times.
func (s *servers) Lag(least, most time.Duration) {
	s.min, s.max = least, most
	s.lag(least, most)
}

func (s *servers) lag(least, most time.Duration) {
	for _, n := range s.Nodes {
		n.front.lag(least, most)
	}
}

// Replicas is a master with replicas. The first server is the first master.
type Replicas struct {
	servers
	master int
}

// replicaArgs returns the arguments by which a server announces the address of its front, and
// begins to replicate at once.
func replicaArgs(f *Front) []string {
	host, port, _ := net.SplitHostPort(f.Addr())
	return []string{
		"--replica-announce-ip", host, "--replica-announce-port", port,
		"--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0",
		"--replica-priority", "100", "--repl-timeout", "600",
	}
}

// StartReplicas starts a master with n replicas, and waits until each replica has its data. The
// caller calls Stop.
func StartReplicas(ctx context.Context, o Options, n int) (*Replicas, error) {
	r := &Replicas{}
	for i := range n + 1 {
		node, err := startNode(o, fmt.Sprintf("redis-%d", i+1), replicaArgs)
		if err != nil {
			r.Stop()
			return nil, err
		}
		r.Nodes = append(r.Nodes, node)
	}
	for _, node := range r.Nodes[1:] {
		if err := r.follow(ctx, node); err != nil {
			r.Stop()
			return nil, err
		}
	}
	if err := r.Ready(ctx); err != nil {
		r.Stop()
		return nil, err
	}
	return r, nil
}

// follow makes a server a replica of the master.
func (r *Replicas) follow(ctx context.Context, n *Node) error {
	host, port, err := net.SplitHostPort(r.Master().Announced())
	if err != nil {
		return err
	}
	return n.order(ctx, "REPLICAOF", host, port)
}

// Master is the server that takes writes.
func (r *Replicas) Master() *Node { return r.Nodes[r.master] }

// Ready waits until every replica has all data of the master. Meanwhile there is no lag.
func (r *Replicas) Ready(ctx context.Context) error {
	r.lag(0, 0)
	defer r.lag(r.min, r.max)
	return await(ctx, r.behind)
}

// behind says which replica lacks data.
func (r *Replicas) behind(ctx context.Context) (missing string, err error) {
	info, err := r.Master().info(ctx, "replication")
	if err != nil {
		return "", err
	}
	if want, got := fmt.Sprint(len(r.Nodes)-1), info["connected_slaves"]; info["role"] != "master" || got != want {
		return fmt.Sprintf("%s has the role %s and %s of %s replicas", r.Master().Name, info["role"], got, want), nil
	}
	for i := range len(r.Nodes) - 1 {
		text := info[fmt.Sprintf("slave%d", i)]
		replica := map[string]string{}
		for part := range strings.SplitSeq(text, ",") {
			name, value, _ := strings.Cut(part, "=")
			replica[name] = value
		}
		if replica["state"] != "online" || replica["offset"] != info["master_repl_offset"] {
			return fmt.Sprintf("replica %d of %s is in the state %q, with %q of the %s bytes that the master has written", i+1, r.Master().Name, replica["state"], replica["offset"], info["master_repl_offset"]), nil
		}
	}
	return "", nil
}

// Restart ends the master and starts it again, with its data or without. Its replicas copy the data
// that it then has.
func (r *Replicas) Restart(ctx context.Context, keepData bool) error {
	m := r.Master()
	if keepData {
		if err := m.order(ctx, "SAVE"); err != nil {
			return err
		}
	}
	m.Kill()
	r.lag(0, 0) // until it is ready
	if !keepData {
		if err := m.Forget(); err != nil {
			return err
		}
	}
	if err := m.Launch(); err != nil {
		return err
	}
	for i, n := range r.Nodes {
		if i == r.master || !n.Alive() {
			continue
		}
		// A replica that lost its master tries again each second. An order makes it try now.
		if err := errors.Join(n.order(ctx, "REPLICAOF", "NO", "ONE"), r.follow(ctx, n)); err != nil {
			return err
		}
	}
	return r.Ready(ctx)
}

// Failover ends the master, and promotes the replica that got the most writes. What was under way
// to the replicas is lost. The old master starts again without data, as a replica. lacks is the
// number of bytes of replication that the promoted replica lacks.
func (r *Replicas) Failover(ctx context.Context) (lacks int64, err error) {
	old := r.master
	info, err := r.Master().info(ctx, "replication")
	if err != nil {
		return 0, err
	}
	wrote := number(info["master_repl_offset"])
	r.Master().Kill()
	r.lag(0, 0) // until it is ready
	best, most := -1, int64(-2)
	for i, n := range r.Nodes {
		if i == old {
			continue
		}
		info, err := n.info(ctx, "replication")
		if err != nil {
			return 0, err
		}
		has := number(info["slave_repl_offset"])
		if info["master_sync_in_progress"] == "1" {
			has = -1 // it has no data
		}
		if has > most {
			best, most = i, has
		}
	}
	if best < 0 {
		return 0, errors.New("there is no replica to promote")
	}
	if err := r.Nodes[best].order(ctx, "REPLICAOF", "NO", "ONE"); err != nil {
		return 0, err
	}
	r.master = best
	if err := r.Nodes[old].Forget(); err != nil {
		return 0, err
	}
	if err := r.Nodes[old].Launch(); err != nil {
		return 0, err
	}
	for i, n := range r.Nodes {
		if i == best {
			continue
		}
		if err := r.follow(ctx, n); err != nil {
			return 0, err
		}
	}
	return wrote - most, r.Ready(ctx)
}
