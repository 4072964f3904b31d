//go:build linux

package topology

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"lockstep/lockimpl/redisserver"
)

// masters is the number of masters of a cluster. Each has one replica.
const masters = 3

// slots is the number of slots of a cluster.
const slots = 16384

// NodeTimeout is the time after which the nodes of a cluster take a node that does not answer for
// dead. It is longer than a busy machine may stand still.
const NodeTimeout = 2 * time.Second

// Cluster is a Redis Cluster of three masters with a replica each. The nodes notice that a master
// is dead, and promote its replica.
type Cluster struct {
	servers          // the first three are the masters at the start
	ids     []string // of the nodes
}

// StartCluster starts a cluster of three masters and three replicas, and waits until each node has
// all slots covered. The caller calls Stop.
func StartCluster(ctx context.Context, o Options) (*Cluster, error) {
	c := &Cluster{}
	if err := c.start(ctx, o); err != nil {
		c.Stop()
		return nil, err
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, o Options) error {
	for i := range 2 * masters {
		bus := ""
		n, err := startNode(o, fmt.Sprintf("redis-%d", i+1), func(f *Front) []string {
			host, port, _ := net.SplitHostPort(f.Addr())
			if free, err := redisserver.FreeAddr(); err == nil {
				_, bus, _ = net.SplitHostPort(free)
			}
			return []string{
				"--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf", "--cluster-node-timeout", fmt.Sprint(NodeTimeout.Milliseconds()),
				"--cluster-port", bus, "--cluster-announce-ip", host, "--cluster-announce-port", port, "--cluster-announce-bus-port", bus,
				"--cluster-replica-validity-factor", "0", "--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0", "--repl-timeout", "600",
			}
		})
		if err != nil {
			return err
		}
		c.Nodes = append(c.Nodes, n)
		id, err := n.do(ctx, "CLUSTER", "MYID").Text()
		if err != nil {
			return err
		}
		c.ids = append(c.ids, id)
		// Each node has an epoch of its own from the start. Otherwise they would take a while to
		// agree on who has which slots.
		if err := n.order(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1); err != nil {
			return err
		}
		if i > 0 {
			host, port, err := net.SplitHostPort(c.Nodes[0].Announced())
			if err != nil {
				return err
			}
			_, firstBus, _ := strings.Cut(strings.Join(c.Nodes[0].args, " "), "--cluster-port ")
			firstBus, _, _ = strings.Cut(firstBus, " ")
			if err := n.order(ctx, "CLUSTER", "MEET", host, port, firstBus); err != nil {
				return err
			}
		}
	}
	for i := range masters {
		if err := c.Nodes[i].order(ctx, "CLUSTER", "ADDSLOTSRANGE", i*slots/masters, (i+1)*slots/masters-1); err != nil {
			return err
		}
	}
	for i := range masters {
		// A node can follow a master that it knows.
		if err := await(ctx, func(ctx context.Context) (string, error) {
			if err := c.Nodes[masters+i].order(ctx, "CLUSTER", "REPLICATE", c.ids[i]); err != nil {
				return err.Error(), nil
			}
			return "", nil
		}); err != nil {
			return err
		}
	}
	return c.Ready(ctx)
}

// member is a line of CLUSTER NODES.
type member struct {
	id, master string
	flags      []string
	linked     bool
	ranges     []string
}

// members returns the nodes of the cluster that a node knows.
func (n *Node) members(ctx context.Context) ([]member, error) {
	text, err := n.do(ctx, "CLUSTER", "NODES").Text()
	if err != nil {
		return nil, fmt.Errorf("%s: CLUSTER NODES: %w", n.Name, err)
	}
	var all []member
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 8 {
			continue
		}
		all = append(all, member{id: f[0], flags: strings.Split(f[2], ","), master: f[3], linked: f[7] == "connected", ranges: f[8:]})
	}
	return all, nil
}

// Ready waits until every node that runs knows all nodes: three masters that have all slots, and
// three replicas that follow them. Meanwhile there is no lag.
func (c *Cluster) Ready(ctx context.Context) error {
	c.lag(0, 0)
	defer c.lag(c.min, c.max)
	return await(ctx, func(ctx context.Context) (string, error) {
		for _, n := range c.Nodes {
			info, err := n.do(ctx, "CLUSTER", "INFO").Text()
			if err != nil {
				return "", err
			}
			f := fieldsOf(info)
			if f["cluster_state"] != "ok" || f["cluster_slots_ok"] != fmt.Sprint(slots) || f["cluster_size"] != fmt.Sprint(masters) {
				return fmt.Sprintf("by CLUSTER INFO of %s, the state of the cluster is %q, and %s of %d slots are served, by %s of %d masters", n.Name, f["cluster_state"], f["cluster_slots_ok"], slots, f["cluster_size"], masters), nil
			}
			all, err := n.members(ctx)
			if err != nil {
				return "", err
			}
			count := map[string]int{}
			for _, m := range all {
				if slices.ContainsFunc(m.flags, func(f string) bool { return f == "fail" || f == "fail?" || f == "handshake" }) {
					return fmt.Sprintf("%s gives another node the flags %s", n.Name, strings.Join(m.flags, ", ")), nil
				}
				for _, kind := range []string{"master", "slave"} {
					if slices.Contains(m.flags, kind) {
						count[kind]++
					}
				}
			}
			if count["master"] != masters || count["slave"] != masters {
				return fmt.Sprintf("%s knows %d masters and %d replicas, and there are %d of each", n.Name, count["master"], count["slave"], masters), nil
			}
			repl, err := n.info(ctx, "replication")
			if err != nil {
				return "", err
			}
			switch {
			case repl["role"] == "master" && repl["connected_slaves"] != "1":
				return n.Name + " has no replica", nil
			case repl["role"] == "slave" && repl["master_link_status"] != "up":
				return n.Name + " does not follow its master yet", nil
			case repl["role"] == "master" && !strings.Contains(repl["slave0"], "state=online"):
				return "the replica of " + n.Name + " has no data yet", nil
			}
		}
		return "", nil
	})
}

// Slot returns the slot of a key.
func (c *Cluster) Slot(ctx context.Context, key string) (int, error) {
	for _, n := range c.Nodes {
		if n.Alive() {
			return n.do(ctx, "CLUSTER", "KEYSLOT", key).Int()
		}
	}
	return 0, errors.New("no node of the cluster runs")
}

// Owner returns the master that says that it has a slot.
func (c *Cluster) Owner(ctx context.Context, slot int) (*Node, error) {
	for i, n := range c.Nodes {
		if !n.Alive() {
			continue
		}
		all, err := n.members(ctx)
		if err != nil {
			return nil, err
		}
		for _, m := range all {
			if m.id == c.ids[i] && slices.Contains(m.flags, "master") && covers(m.ranges, slot) {
				return n, nil
			}
		}
	}
	return nil, fmt.Errorf("no node that runs has slot %d", slot)
}

// covers reports whether a slot is in ranges such as 0-5460 or 7.
func covers(ranges []string, slot int) bool {
	for _, r := range ranges {
		if strings.HasPrefix(r, "[") {
			continue // a slot that is moving
		}
		var from, to int
		if n, _ := fmt.Sscanf(r, "%d-%d", &from, &to); n == 1 {
			to = from
		}
		if from <= slot && slot <= to {
			return true
		}
	}
	return false
}

// Masters returns the nodes that run and take writes.
func (c *Cluster) Masters(ctx context.Context) ([]*Node, error) {
	var all []*Node
	for _, n := range c.Nodes {
		if !n.Alive() {
			continue
		}
		info, err := n.info(ctx, "replication")
		if err != nil {
			return nil, err
		}
		if info["role"] == "master" {
			all = append(all, n)
		}
	}
	return all, nil
}

func (c *Cluster) id(n *Node) string { return c.ids[slices.Index(c.Nodes, n)] }

// A Move is a slot on its way from one master to another.
type Move struct {
	Slot     int
	From, To *Node

	c *Cluster
}

// Move begins to move the slot of a key to another master: the first master that does not have the
// slot. Until Finish, the old master answers for the keys that it has, and sends clients to the new
// one for the others (ASK).
func (c *Cluster) Move(ctx context.Context, key string) (*Move, error) {
	slot, err := c.Slot(ctx, key)
	if err != nil {
		return nil, err
	}
	m := &Move{Slot: slot, c: c}
	if m.From, err = c.Owner(ctx, slot); err != nil {
		return nil, err
	}
	all, err := c.Masters(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range all {
		if n != m.From {
			m.To = n
			break
		}
	}
	if m.To == nil {
		return nil, errors.New("there is no other master to take the slot")
	}
	if err := m.To.order(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", c.id(m.From)); err != nil {
		return nil, err
	}
	return m, m.From.order(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", c.id(m.To))
}

// Keys moves the keys of the slot.
func (m *Move) Keys(ctx context.Context) error {
	for {
		keys, err := m.From.do(ctx, "CLUSTER", "GETKEYSINSLOT", m.Slot, 100).StringSlice()
		if err != nil {
			return err
		}
		if len(keys) == 0 {
			return nil
		}
		host, port, err := net.SplitHostPort(m.To.Addr())
		if err != nil {
			return err
		}
		for _, key := range keys {
			// A key may expire before it moves; MIGRATE then answers NOKEY.
			if err := m.From.order(ctx, "MIGRATE", host, port, key, 0, int(patience.Milliseconds())); err != nil {
				return err
			}
		}
	}
}

// Finish moves the keys that are left, and gives the slot to the new master. The old one sends
// clients there (MOVED).
func (m *Move) Finish(ctx context.Context) error {
	if err := m.Keys(ctx); err != nil {
		return err
	}
	// The new master is told first. Otherwise no node would have the slot for a moment.
	all, err := m.c.Masters(ctx)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(n *Node) bool { return n == m.To })
	for _, n := range append([]*Node{m.To}, all...) {
		if err := n.order(ctx, "CLUSTER", "SETSLOT", m.Slot, "NODE", m.c.id(m.To)); err != nil {
			return err
		}
	}
	return nil
}

// Failover ends the master of a key, waits until its replica is promoted, and starts the old master
// again without data, as a replica.
func (c *Cluster) Failover(ctx context.Context, key string, tell Failing) error {
	slot, err := c.Slot(ctx, key)
	if err != nil {
		return err
	}
	old, err := c.Owner(ctx, slot)
	if err != nil {
		return err
	}
	info, err := old.info(ctx, "replication")
	if err != nil {
		return err
	}
	wrote := number(info["master_repl_offset"])
	var replica *Node
	for _, n := range c.Nodes {
		all, err := n.members(ctx)
		if err != nil {
			return err
		}
		for _, m := range all {
			if m.id == c.id(n) && m.master == c.id(old) {
				replica = n
			}
		}
	}
	if replica == nil {
		return fmt.Errorf("%s has no replica", old.Name)
	}
	old.Kill()
	tell.killed()
	c.lag(0, 0) // until all is ready
	if info, err = replica.info(ctx, "replication"); err != nil {
		return err
	}
	has := number(info["slave_repl_offset"])
	if err := await(ctx, func(ctx context.Context) (string, error) {
		info, err := replica.info(ctx, "replication")
		if err != nil {
			return "", err
		}
		if info["role"] != "master" {
			return replica.Name + " was not promoted", nil
		}
		return "", nil
	}); err != nil {
		return err
	}
	tell.promoted(replica, wrote-has)
	if err := old.Forget(); err != nil {
		return err
	}
	if err := old.Launch(); err != nil {
		return err
	}
	return c.Ready(ctx)
}
