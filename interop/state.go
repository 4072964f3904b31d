package interop

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl/redisson"
)

// State is the state of the server for a sequence, in the sequence's own names.
type State struct {
	Locks map[string]LockState `json:"locks,omitempty"`
	// Others lists the keys that belong to no lock, such as an unlock latch that was left behind.
	Others []string `json:"others,omitempty"`
}

// LockState is the state of one lock: its hash, and the queue of a fair lock. Times are in
// milliseconds from the instant of the reading.
type LockState struct {
	Holds     map[string]string `json:"holds,omitempty"`
	TTL       int64             `json:"ttl_ms,omitempty"` // 0: no key
	Queue     []string          `json:"queue,omitempty"`  // head first
	Deadlines map[string]int64  `json:"deadlines_ms,omitempty"`
	Token     string            `json:"token,omitempty"` // the newest of a fenced lock
}

// toleranceMS is the largest difference between two times that count as equal. The state is read
// some time after the call, and on a loaded machine a long time after.
const toleranceMS = 2000

// within reports whether two times are at most a number of milliseconds apart.
func within(ms int64) func(a, b int64) bool {
	return func(a, b int64) bool { return max(a-b, b-a) <= ms }
}

func (s State) equalWithin(o State, ms int64) bool {
	return maps.EqualFunc(s.Locks, o.Locks, func(l, m LockState) bool { return l.equalWithin(m, ms) }) && slices.Equal(s.Others, o.Others)
}

func (l LockState) equalWithin(o LockState, ms int64) bool {
	near := within(ms)
	return maps.Equal(l.Holds, o.Holds) && near(l.TTL, o.TTL) && (l.TTL < 0) == (o.TTL < 0) &&
		slices.Equal(l.Queue, o.Queue) && l.Token == o.Token && maps.EqualFunc(l.Deadlines, o.Deadlines, near)
}

func (s State) String() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s.Locks)) {
		l := s.Locks[name]
		fmt.Fprintf(&b, "%s held %v for %d ms, queue %v, deadlines %v, token %q; ", name, l.Holds, l.TTL, l.Queue, l.Deadlines, l.Token)
	}
	if len(s.Others) > 0 {
		fmt.Fprintf(&b, "others %v", s.Others)
	}
	return strings.TrimSuffix(b.String(), "; ")
}

// soonOver reports whether a hold will soon end by itself.
func (s State) soonOver() bool {
	for _, l := range s.Locks {
		if len(l.Holds) > 0 && l.TTL >= 0 && l.TTL < longMS/10 {
			return true
		}
	}
	return false
}

// names translates the names that a server has: it takes the prefix from keys, and turns owners into
// client:thread.
type names struct {
	prefix string
	owners map[string]string // CLIENT:THREAD on the server to client:thread
}

func (n names) plain(text string) string {
	text = strings.ReplaceAll(text, n.prefix, "")
	if i := strings.LastIndex(text, "}:"); i >= 0 {
		return text[:i+2] + n.owner(text[i+2:])
	}
	return text
}

func (n names) owner(text string) string {
	if name, ok := n.owners[text]; ok {
		return name
	}
	return text
}

// look reads the state of a sequence's locks in one transaction.
func look(ctx context.Context, rdb redis.UniversalClient, n names, nowMS func() int64) (State, error) {
	type cmds struct {
		hash  *redis.MapStringStringCmd
		ttl   *redis.Cmd
		list  *redis.StringSliceCmd
		zset  *redis.ZSliceCmd
		token *redis.SliceCmd
	}
	found := map[string]cmds{}
	var keys *redis.StringSliceCmd
	known := map[string]bool{}
	_, err := rdb.TxPipelined(ctx, func(p redis.Pipeliner) error {
		keys = p.Keys(ctx, "*"+n.prefix+"*")
		for _, name := range lockNames {
			key := n.prefix + name
			queue, zset, token := redisson.QueueName(key), redisson.DeadlinesName(key), redisson.TokenName(key)
			known[key], known[queue], known[zset], known[token] = true, true, true, true
			found[name] = cmds{
				p.HGetAll(ctx, key), p.Do(ctx, "PTTL", key),
				p.LRange(ctx, queue, 0, -1), p.ZRangeWithScores(ctx, zset, 0, -1),
				p.MGet(ctx, token), // not GET, for which a missing key is an error
			}
		}
		return nil
	})
	if err != nil {
		return State{}, fmt.Errorf("look at the locks %s*: %w", n.prefix, err)
	}
	now := nowMS()
	s := State{}
	for name, c := range found {
		l := LockState{}
		for owner, count := range c.hash.Val() {
			if l.Holds == nil {
				l.Holds = map[string]string{}
			}
			l.Holds[n.owner(owner)] = count
		}
		if ms, _ := c.ttl.Val().(int64); len(l.Holds) > 0 {
			l.TTL = ms
		}
		for _, owner := range c.list.Val() {
			l.Queue = append(l.Queue, n.owner(owner))
		}
		for _, z := range c.zset.Val() {
			if l.Deadlines == nil {
				l.Deadlines = map[string]int64{}
			}
			l.Deadlines[n.owner(fmt.Sprint(z.Member))] = int64(z.Score) - now
		}
		l.Token, _ = c.token.Val()[0].(string)
		if l.Holds == nil && l.Queue == nil && l.Deadlines == nil && l.Token == "" {
			continue
		}
		if s.Locks == nil {
			s.Locks = map[string]LockState{}
		}
		s.Locks[name] = l
	}
	for _, k := range keys.Val() {
		if !known[k] {
			s.Others = append(s.Others, n.plain(k))
		}
	}
	slices.Sort(s.Others)
	return s, nil
}

func hasLatch(s State) bool {
	return slices.ContainsFunc(s.Others, func(k string) bool { return strings.Contains(k, "latch") })
}
