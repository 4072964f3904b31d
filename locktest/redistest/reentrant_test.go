package redistest_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"lockstep/internal/longtest"
	"lockstep/locktest"
	"lockstep/locktest/redistest"
)

// counting is a lock that its holder may take again. The value on the server is that of the handle, a
// colon, and the number of levels.
type counting struct {
	rdb         *redis.Client
	name, value string
	all         bool // an unlock gives up all levels: a bug
}

const (
	enterAgain = `
local value, levels = string.match(redis.call('GET', KEYS[1]) or '', '^(.*):(%d+)$')
if value and value ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[1] .. ':' .. (tonumber(levels or 0) + 1), 'PX', ARGV[2])
return 1`
	leaveOne = `
local value, levels = string.match(redis.call('GET', KEYS[1]) or '', '^(.*):(%d+)$')
if value ~= ARGV[1] then return 0 end
if tonumber(levels) == 1 or ARGV[2] == 'all' then return redis.call('DEL', KEYS[1]) end
redis.call('SET', KEYS[1], value .. ':' .. (tonumber(levels) - 1), 'KEEPTTL')
return 1`
)

func (l *counting) TryLock(ctx context.Context) (bool, error) {
	return l.rdb.Eval(ctx, enterAgain, []string{l.name}, l.value, lease.Milliseconds()).Bool()
}

func (l *counting) Lock(ctx context.Context) error { return retry(ctx, l.TryLock) }

func (l *counting) Unlock(ctx context.Context) error {
	what := "one"
	if l.all {
		what = "all"
	}
	ok, err := l.rdb.Eval(ctx, leaveOne, []string{l.name}, l.value, what).Bool()
	if err == nil && !ok {
		return locktest.ErrNotHeld
	}
	return err
}

// levels is the State of counting.
func levels(s locktest.Snapshot, name string) *locktest.State {
	state := redistest.Value(nil)(s, name)
	if state != nil && state.Owner != "" {
		value, count, _ := strings.Cut(state.Owner, ":")
		state.Owner = value
		state.Count, _ = strconv.Atoi(count)
	}
	return state
}

func reentrant(name string, all bool) locktest.Subject {
	return locktest.Subject{
		Name: name, Servers: redistest.Servers(1), Lease: lease, Reentrant: true, State: levels,
		Open: func(p *locktest.Process) (locktest.Client, error) {
			random := p.Rand()
			return anyClient{redis.NewClient(redistest.Options(p, 0)), func(rdb *redis.Client, name string) locktest.Lock {
				return &counting{rdb, name, strconv.FormatUint(random.Uint64(), 36), all}
			}}, nil
		},
	}
}

// The unlock of a lock with levels returns nil whether a level is left or not. The server knows. The handle has one value
// for all holds, so an unlock that it gave up may end the next.
func TestALockWithLevels(t *testing.T) {
	locktest.Run(t, reentrant("counts", false), locktest.Options{Runs: 100, Profile: "full", Faults: "pause,crash",
		Accept: []string{"story.unlock-given-up-that-comes-in-the-next-hold.mutual-exclusion"}})
}

// Without a State nobody knows how many levels the servers count.
func TestALockWithLevelsAndNoState(t *testing.T) {
	s := reentrant("counts where nobody looks", false)
	s.State, s.NoState = nil, "nobody can read the server"
	locktest.Run(t, s, locktest.Options{Runs: 5, Faults: "none"})
}

func init() {
	wrong["gives up all levels"] = reentrant("gives up all levels", true)
	forgotten := reentrant("forgets the levels in State", false)
	forgotten.State = func(s locktest.Snapshot, name string) *locktest.State {
		state := levels(s, name)
		if state != nil {
			state.Count = 0
		}
		return state
	}
	wrong["forgets the levels in State"] = forgotten
}

func TestLevelsThatAreWrong(t *testing.T) {
	for name, want := range map[string][]string{
		"gives up all levels": {"gives up all levels breaks hold-count: "},
		"forgets the levels in State": {"breaks hold-count: ", "hint: State.Count must be the number of levels",
			"hint: State shows one level after a/1 was granted the lock at ", ", while it held it; if the lock counts levels, State must return them in Count\n"},
	} {
		text, passed := outcome(t, t.TempDir(), name, nil, fmt.Sprint("-lockstep.runs=", longtest.Size(t, 20, 40)), "-lockstep.profile=full", "-lockstep.faults=none")
		if passed {
			t.Errorf("it passed:\n%s", text)
		}
		mustContain(t, text, want...)
		if strings.Contains(text, "State shows one level") != strings.HasPrefix(name, "forgets") {
			t.Errorf("%s: a hint at State:\n%s", name, text)
		}
	}
}
