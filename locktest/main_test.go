package locktest_test

import (
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/lockmain"
	"lockstep/locktest"
	"lockstep/sim"
	"lockstep/sim/goredis"
	simredis "lockstep/sim/redis"
)

// asProgram is the variable that makes this test a program. It holds the name of its lock. The program
// has no other lock, since the test does not import redistest.
const asProgram = "LOCKSTEP_MAIN"

func TestMain(m *testing.M) {
	if name := os.Getenv(asProgram); name != "" {
		lockmain.Main(lockmain.Options{Locks: []locktest.Subject{tries(name)}})
		return
	}
	os.Exit(m.Run())
}

// tries returns the subject of a lock on Redis that asks every 100 ms.
func tries(name string) locktest.Subject {
	return locktest.Subject{
		Name: name, Lease: 8 * time.Second,
		Servers: locktest.Independent(1, 6379, func() sim.Server { return simredis.New(simredis.Config{}) }),
		State: func(s locktest.Snapshot, lock string) *locktest.State {
			keys := s.Server(0).(*simredis.Server).At(int64(s.Now()))
			owner, held := keys.String(lock)
			if !held {
				return nil
			}
			return &locktest.State{Owner: owner, Expires: time.Duration(keys.ExpiresMs(lock)) * time.Millisecond}
		},
		Open: func(p *locktest.Process) (locktest.Client, error) {
			rdb := goredis.NewClient(p.Sim(), goredis.Options(p.Sim(), p.Addr(0)))
			p.OnClose(func() { _ = rdb.Close() })
			return triesClient{rdb}, nil
		},
	}
}

// A go-redis client has hundreds of methods, and embedding it compiles a copy of each.
type triesClient struct{ rdb *redis.Client }

func (c triesClient) Lock(name string) (locktest.Lock, error) {
	return &triesLock{rdb: c.rdb, name: name}, nil
}

func (c triesClient) Close() error { return c.rdb.Close() }

type triesLock struct {
	rdb   *redis.Client
	name  string
	value string
}

func (l *triesLock) Lock(ctx context.Context) error {
	l.value = rand.Text()
	for {
		if ok, err := l.rdb.SetNX(ctx, l.name, l.value, 8*time.Second).Result(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (l *triesLock) Unlock(ctx context.Context) error {
	n, err := l.rdb.Eval(ctx, "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0", []string{l.name}, l.value).Int()
	if err == nil && n == 0 {
		return locktest.ErrNotHeld
	}
	return err
}

// A program that lacks the built-in locks has the built-in scenarios of its own locks, without the other
// locks that these name, and no other built-in scenario.
func TestAProgramWithoutTheBuiltinLocks(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "mine.yaml")
	const scenario = "lockstep: 1\nname: mine\nlocks: [%s]\nprocesses: {a: {}}\nsteps: {a/1: [{lock: x}, {unlock: x}]}\n"
	if err := os.WriteFile(file, []byte(strings.ReplaceAll(scenario, "%s", "mine")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		lock, args, want string
		code             int
	}{
		{"mine", "list", `^locks\n  mine .*\n$`, 0},
		{"mine", "run " + file, `1 run of 1 pair .*; 0 not as expected(?s:.*)mine +mine +1 +held`, 0},
		{"mine", "run " + file + " --lock mine", `0 not as expected`, 0},
		{"mine", "run", `^simrun: no built-in scenario names a lock of this program; name a scenario, or the file of one\n`, 64},
		{"mine", "run misdelete --lock mine", `1 pair n/a(?s:.*)misdelete\.yaml:18: the step lock does not apply: mine takes no lease`, 0},
		{"mine", "explore --lock mine --strategy exhaustive --scenario misdelete", `^simrun: .*misdelete\.yaml:18: the step lock does not apply`, 64},
		{"mine", "run misdelete", `^simrun: this program has none of the locks that the built-in scenario misdelete names; name one of its own with --lock, or import locktest/redistest, which has them\n$`, 64},
		{"mine", "matrix --tag track-record", `^simrun: --tag: no scenario is tagged "track-record", and none of this program has a tag\n$`, 64},
		{"mine", "run misdelet", `^simrun: no scenario "misdelet" and no such file`, 64},
		{"mine", "__complete run misdelete --lock m", `^mine\n`, 0},
		{"setnx-del", "list", `^scenarios\n(?s:.*)  misdelete (?s:.*)\nlocks\n  setnx-del .*\n$`, 0},
		{"setnx-del", "__complete run mis", `^misdelete\t`, 0},
		{"setnx-del", "list --json", `"locks":\["setnx-del"\],"scenario":"misdelete"`, 0},
	} {
		cmd := exec.Command(self, strings.Fields(c.args)...)
		cmd.Env = append(os.Environ(), asProgram+"="+c.lock)
		out, _ := cmd.CombinedOutput()
		if !regexp.MustCompile(c.want).Match(out) || cmd.ProcessState.ExitCode() != c.code {
			t.Errorf("%s, %s: exit code %d, want %d and %s\n%s", c.lock, c.args, cmd.ProcessState.ExitCode(), c.code, c.want, out)
		}
	}
}
