//go:build linux

package live

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"lockstep/live/topology"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/scenarios/subject/onredis"
)

// groups are the setups in which the servers know one another.
var groups = []string{onredis.Sentinel, onredis.Cluster}

// replicasWatched is the number of replicas under sentinels, unless the scenario gives a number.
const replicasWatched = 2

// group is a set of servers that know one another and promote a replica by themselves. Together
// they stand for one server of a simulated world. Each of them is a node. Which nodes take writes
// changes (see session.serving). The parent looks only at nodes that take writes.
//
// A client learns addresses from sentinels and from the nodes of a cluster. It dials them through
// the proxies of its process; began.Routes says which proxy belongs to which address.
type group struct {
	sentinels *topology.Sentinels
	cluster   *topology.Cluster
}

func (g *group) stop() {
	if g.sentinels != nil {
		g.sentinels.Stop()
	}
	if g.cluster != nil {
		g.cluster.Stop()
	}
}

// lacksGroup returns why a scenario is not possible on a group; or "" if it is possible.
func lacksGroup(setup string, sc *scenarios.Scenario, l *subject.Subject) string {
	switch {
	case !slices.Contains(groups, setup):
		return fmt.Sprintf("there are no servers %q; there are %s", setup, strings.Join(groups, " and "))
	case !slices.Contains(l.Setups, setup):
		return fmt.Sprintf("%s makes no client for %s", l.Name, setup)
	case setup == onredis.Cluster && sc.Server.Replicas > 1:
		return fmt.Sprintf("the scenario has %d replicas, and each master of the cluster has one", sc.Server.Replicas)
	}
	return ""
}

// lacksGroupFault returns why a fault is not possible on a group; or "" if it is possible.
func lacksGroupFault(f model.FaultSpec) string {
	possible := []model.ServerFault{model.ServerFailover, model.ServerFlushScripts, model.ServerMoveSlot}
	if f.Kind == model.FaultServer && !slices.Contains(possible, f.Server) {
		return "servers that know of one another answer it with a failover; use server: failover"
	}
	return ""
}

// serveGroup starts the servers of a group.
func (s *session) serveGroup(dir string) error {
	path, err := Needed{program, program}.Find()
	if err != nil {
		return err
	}
	ctx, o, g := context.Background(), topology.Options{Path: path, Dir: dir, Start: Spawn}, &group{}
	var members, masters []*topology.Node
	if s.o.Servers == onredis.Sentinel {
		if g.sentinels, err = topology.StartSentinels(ctx, o, cmp.Or(s.sc.Server.Replicas, replicasWatched)); err == nil {
			members, masters = g.sentinels.Nodes, []*topology.Node{g.sentinels.Master()}
		}
	} else if g.cluster, err = topology.StartCluster(ctx, o); err == nil {
		members = g.cluster.Nodes
		masters, err = g.cluster.Masters(ctx)
	}
	if err != nil {
		g.stop()
		return unusable{err}
	}
	s.group = g
	for _, m := range members {
		n := newNode(len(s.nodes), &redisServer{addr: m.Addr(), clustered: g.cluster != nil})
		n.world, n.member = 0, m
		s.nodes = append(s.nodes, n)
		if !slices.Contains(masters, m) {
			continue
		}
		s.serving = append(s.serving, n.index)
		if err := n.redis.connect(); err != nil {
			s.stop()
			return unusable{err}
		}
	}
	for _, n := range s.nodes { // they all run the same program
		n.redis.version = s.masters()[0].redis.version
	}
	if g.sentinels != nil {
		for _, addr := range g.sentinels.Addrs() {
			n := newNode(len(s.nodes), &redisServer{addr: addr})
			n.world, n.sentinel = 0, true
			s.nodes = append(s.nodes, n)
		}
	}
	if err := mayStop(members[0].Pid()); err != nil {
		s.stop()
		return err
	}
	if s.sc.Server.Replicas > 0 {
		lag := s.sc.Server.Lag
		if g.sentinels != nil {
			g.sentinels.Lag(lag.Min, lag.Max)
		} else {
			g.cluster.Lag(lag.Min, lag.Max)
		}
	}
	return nil
}

// ways returns the addresses that a client is given, and for each address that it may learn the
// proxy of its process.
func (g *group) ways(c *side) (addrs []string, routes map[string]string) {
	routes = map[string]string{}
	for _, x := range c.gates {
		at := x.node.Addr()
		if x.node.member != nil {
			at = x.node.member.Announced()
		}
		routes[at] = x.proxy.Addr()
		if x.node.sentinel || g.cluster != nil {
			addrs = append(addrs, at)
		}
	}
	return addrs, routes
}

// ofSentinels reports whether a channel is one on which sentinels talk to one another.
func ofSentinels(channel string) bool { return strings.HasPrefix(channel, "__sentinel__:") }

// asksForNodes reports whether a command asks which nodes there are, or which commands they know. A
// client library sends such commands on its own, at any time.
func asksForNodes(command string) bool { return command == "CLUSTER" || command == "COMMAND" }

// lookAway adds a look at a node that takes no writes. Guarded by mu.
func (s *session) lookAway(m *message, l look) {
	l.msg, l.blind, l.readNs = m, true, s.now()
	if l.toNs == 0 {
		l.toNs = l.readNs
	}
	if m != nil {
		m.look = len(s.looks)
	}
	s.looks = append(s.looks, l)
}

// masterOf returns the master of the cluster that stores the keys of a lock.
func (s *session) masterOf(ctx context.Context, lock string) (*node, error) {
	g := s.group.cluster
	if g == nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.masters()[0], nil
	}
	slot, err := g.Slot(ctx, lock)
	if err != nil {
		return nil, err
	}
	owner, err := g.Owner(ctx, slot)
	if err != nil {
		return nil, err
	}
	return s.nodeOf(owner), nil
}

// failoverOfGroup ends the master (in a cluster, the one that has the scenario's first lock) and
// waits until the other servers have promoted a replica and the old master is back as a replica.
func (s *session) failoverOfGroup(ctx context.Context, number int) error {
	first := ""
	if locks := play.LockNames(s.sc); len(locks) > 0 {
		first = locks[0]
	}
	old, err := s.masterOf(ctx, first)
	if err != nil {
		return err
	}
	// No request reaches a replica until the parent has looked at the promoted one.
	var waiting []*node
	for _, n := range s.nodes {
		s.mu.Lock()
		replica := n.member != nil && !slices.Contains(s.serving, n.index)
		s.mu.Unlock()
		if n == old || replica {
			n.turn <- struct{}{}
			waiting = append(waiting, n)
		}
	}
	release := func(which func(*node) bool) {
		waiting = slices.DeleteFunc(waiting, func(n *node) bool {
			if which(n) {
				<-n.turn
				return true
			}
			return false
		})
	}
	defer release(func(*node) bool { return true })
	s.mu.Lock()
	from := s.now()
	old.down = true
	s.movedNs = from
	s.mu.Unlock()
	old.redis.disconnect()
	var failed error
	tell := topology.Failing{
		Killed: func() {
			release(func(n *node) bool { return n == old })
			for _, c := range s.sides {
				c.gates[old.index].proxy.Reset()
			}
		},
		Promoted: func(m *topology.Node, lacks int64) {
			n := s.nodeOf(m)
			failed = n.redis.connect()
			s.mu.Lock()
			defer s.mu.Unlock()
			serving := append(slices.DeleteFunc(slices.Clone(s.serving), func(i int) bool { return i == old.index }), n.index)
			n.stalls = append(n.stalls, [2]int64{from, s.now()})
			if failed == nil {
				s.look(nil, look{node: n.index, fromNs: from, fault: number, text: failoverText(m.Name, lacks), serving: serving})
			}
			s.record(model.Event{Kind: model.KindFaultEnd, Fault: number, Text: failoverText(m.Name, lacks)}, nil)
			s.movedNs = s.now()
			release(func(*node) bool { return true })
		},
	}
	if g := s.group; g.sentinels != nil {
		err = g.sentinels.Failover(ctx, tell)
	} else {
		err = g.cluster.Failover(ctx, first, tell)
	}
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	old.down = false
	return nil
}

// moveSlot moves the slot of a key to another master. The keys move at once, and the slot when the
// fault ends.
func (s *session) moveSlot(ctx context.Context, number int, f scenarios.Fault, ends func()) error {
	m, err := s.group.cluster.Move(ctx, f.Key)
	if err != nil {
		return err
	}
	from, to := s.nodeOf(m.From), s.nodeOf(m.To)
	// No request reaches either of them while the keys move.
	both := []*node{from, to}
	slices.SortFunc(both, func(a, b *node) int { return cmp.Compare(a.index, b.index) })
	moved := func(move func(context.Context) error, l look) error {
		for _, n := range both {
			n.turn <- struct{}{}
			defer func() { <-n.turn }()
		}
		l.fromNs = s.now()
		if err := move(ctx); err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		// The parent looks first at the node that has the keys now, so that it misses none.
		l.node = to.index
		s.look(nil, l)
		s.look(nil, look{node: from.index, fromNs: s.now(), moved: true})
		s.movedNs = s.now()
		return nil
	}
	if err := moved(m.Keys, look{fault: number, text: fmt.Sprintf("%s: slot %d moves from %s to %s", f.FaultSpec, m.Slot, m.From.Name, m.To.Name)}); err != nil {
		return err
	}
	s.sleepUntil(ctx, f.At+f.For)
	if err := moved(m.Finish, look{}); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ends()
	return nil
}

// nodeOf returns the node of a member of a group.
func (s *session) nodeOf(m *topology.Node) *node {
	return s.nodes[slices.IndexFunc(s.nodes, func(n *node) bool { return n.member == m })]
}
