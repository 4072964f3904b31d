package redisson

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl"
)

// Topology is the kind of Redis that the library's configuration would name. It decides whether
// scripts are followed by WAIT and how releases are published.
type Topology int

const (
	// Single is one server (useSingleServer): no WAIT.
	Single Topology = iota
	// Replicated is a master and its replicas (useMasterSlaveServers, useReplicatedServers,
	// useSentinelServers): WAIT follows scripts if the release sends it.
	Replicated
	// Cluster is Redis Cluster as of Redis 7 (useClusterServers): like Replicated, but from 3.22.0
	// on SPUBLISH publishes the releases of locks.
	Cluster
)

// ErrNotSynced: the script ran, but reached no replica in time (NoSyncedSlavesException). Some
// releases give an acquire back before they return this error; see Sync.
var ErrNotSynced = errors.New("no replica had it in time")

// syncTimeout is slavesSyncTimeout, the timeout of WAIT.
const syncTimeout = time.Second

// waits reports whether WAIT follows scripts.
func (c *Client) waits() bool { return c.topology != Single && c.rel.Sync != SyncNone }

// sharded reports whether messages go through sharded channels.
func (c *Client) sharded() bool {
	return c.topology == Cluster && c.rel.Sharded()
}

// Sharded reports whether the release publishes by SPUBLISH in a cluster (3.22.0 and later).
func (r *Release) Sharded() bool { return r.Unlock.takes("publish command") }

// Latched reports whether an unlock leaves its answer behind under the id of its request.
func (r *Release) Latched() bool { return r.Unlock.takes("unlock latch of this request") }

// resends reports whether a command is sent again after a lost reply. The library's path with WAIT
// forgets which commands must not be sent again (issue 7367).
func (c *Client) resends(kind ScriptKind) bool { return c.waits() || c.rel.resends(kind) }

// node returns the server of a key. WAIT has no key, and must follow its script to the same server
// on the same connection.
func (c *Client) node(ctx context.Context, key string) (redis.UniversalClient, error) {
	if cluster, ok := c.rdb.(*redis.ClusterClient); ok {
		return cluster.MasterForKey(ctx, key)
	}
	return c.rdb, nil
}

// evalSynced sends a script and WAIT in one write. It fails with ErrNotSynced if there are replicas
// and the script reached none of them. The library waits longer for the answer than without WAIT,
// by the time for which the server may wait.
func (c *Client) evalSynced(ctx context.Context, s Script, keys []string, args []any) attempt {
	node, err := c.node(ctx, keys[0])
	if err != nil {
		return attempt{err: err, response: c.response}
	}
	got := c.evalAt(ctx, node, false, s, keys, args)
	for range redirectionsMost {
		to, asking := c.redirected(ctx, got.err)
		if to == nil {
			break
		}
		got = c.evalAt(ctx, to, asking, s, keys, args)
	}
	return got
}

// redirectionsMost is how many redirections in a row the client of a cluster follows.
const redirectionsMost = 5

// redirected returns the node of a cluster to which an answer redirects the client, or nil if the
// answer is no redirection. asking reports that the node does not have the slot yet, so that the
// command needs ASKING before it.
func (c *Client) redirected(ctx context.Context, answer error) (to *redis.Client, asking bool) {
	cluster, ok := c.rdb.(*redis.ClusterClient)
	if !ok {
		return nil, false
	}
	addr, asking := redirection(answer)
	if addr == "" {
		return nil, false
	}
	var found sync.Mutex // each node is checked in a goroutine of its own
	_ = cluster.ForEachMaster(ctx, func(_ context.Context, node *redis.Client) error {
		found.Lock()
		defer found.Unlock()
		if node.Options().Addr == addr {
			to = node
		}
		return nil
	})
	if !asking {
		cluster.ReloadState(ctx)
	}
	return to, asking
}

// redirection returns the address in the answer MOVED SLOT ADDRESS or ASK SLOT ADDRESS; "" in
// any other.
func redirection(answer error) (addr string, asking bool) {
	var said redis.Error
	if !errors.As(answer, &said) {
		return "", false
	}
	words := strings.Fields(said.Error())
	if len(words) != 3 || words[0] != "MOVED" && words[0] != "ASK" {
		return "", false
	}
	return words[2], words[0] == "ASK"
}

// evalAt is evalSynced at a node.
func (c *Client) evalAt(ctx context.Context, node redis.UniversalClient, asking bool, s Script, keys []string, args []any) attempt {
	failed := func(err error) attempt { return attempt{err: err, response: c.response} }
	replicas, err := c.countReplicas(ctx, node)
	if err != nil {
		return failed(err)
	}
	if c.rel.ScriptCache {
		if _, loaded := c.loaded.LoadOrStore(s.SHA, true); !loaded {
			if err := node.ScriptLoad(ctx, s.Text).Err(); err != nil {
				c.loaded.Delete(s.SHA)
				return failed(err)
			}
		}
	}
	var script, synced *redis.Cmd
	// Each command has its own error.
	_, _ = node.Pipelined(ctx, func(p redis.Pipeliner) error {
		if asking {
			p.Do(ctx, "ASKING")
		}
		if c.rel.ScriptCache {
			script = p.EvalSha(ctx, s.SHA, keys, args...)
		} else {
			script = p.Eval(ctx, s.Text, keys, args...)
		}
		if replicas > 0 {
			synced = p.Do(ctx, "WAIT", replicas, syncTimeout.Milliseconds())
		}
		return nil
	})
	if redis.HasErrorPrefix(script.Err(), "NOSCRIPT") {
		c.loaded.Delete(s.SHA)
		return c.evalAt(ctx, node, asking, s, keys, args)
	}
	got := attempt{response: c.response}
	if synced != nil {
		got.response += syncTimeout
	}
	if got.val, got.err = script.Result(); got.err != nil && !errors.Is(got.err, redis.Nil) || synced == nil {
		return got
	}
	n, err := synced.Int64()
	if err == nil && n == 0 {
		c.replicas.Store(0)
		err = fmt.Errorf("%w: %w (%d are connected)", lockimpl.ErrUnknownOutcome, ErrNotSynced, replicas)
	}
	if err != nil {
		got.err = err
	}
	return got
}

// countReplicas asks how many replicas are connected. Some releases ask once, and again after a
// script that reached no replica.
func (c *Client) countReplicas(ctx context.Context, node redis.UniversalClient) (int64, error) {
	if known := c.replicas.Load(); known > 0 && c.rel.Sync != SyncAsked {
		return known, nil
	}
	info, err := node.Info(ctx, "replication").Result()
	if err != nil {
		return 0, err
	}
	_, rest, found := strings.Cut(info, "connected_slaves:")
	line, _, _ := strings.Cut(rest, "\n")
	n, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if !found || err != nil {
		return 0, fmt.Errorf("INFO replication does not tell connected_slaves: %q", info)
	}
	c.replicas.Store(n)
	return n, nil
}

// runSynced runs a script of a lock until it has reached a replica. It tries acquire, unlock and
// forceUnlock again, and gives an acquire back before. done gets the answer to each try.
func (l *lock) runSynced(ctx context.Context, s Script, v operands, done func(reply, operands)) reply {
	for attempt := 0; ; attempt++ {
		r := l.run(ctx, s, v)
		if done != nil {
			done(r, v)
		}
		if !errors.Is(r.err, ErrNotSynced) || s.Kind == KindLeave || l.c.rel.Sync == SyncThrown {
			return r
		}
		if s.Kind == KindAcquire {
			undo := operands{owner: v.owner, lease: l.field()}
			if l.latched() {
				undo.request = l.c.env.NewID(v.owner)
			}
			_ = l.run(ctx, l.unlock, undo) // whatever its outcome
		}
		if attempt >= l.c.attempts || !l.c.sleep(l.c.rel.RetryDelay.draw(attempt, v.owner, l.c.env)) {
			return r
		}
		if v.request != "" && !l.c.rel.RequestKept {
			v.request = l.c.env.NewID(v.owner)
		}
	}
}
