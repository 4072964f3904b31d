package lockmain_test

import (
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/live"
	"lockstep/lockimpl/redisserver"
	"lockstep/lockmain"
	"lockstep/locktest"
	"lockstep/locktest/redistest"
)

// lease is short, since a live run waits for it in real time.
const lease = time.Second

// orders is a lock as a user of Lockstep may write it. It has a bug: Unlock deletes the key,
// whoever holds the lock.
type orders struct {
	rdb  *redis.Client
	name string
}

func (l orders) Lock(ctx context.Context) error {
	for {
		if ok, err := l.rdb.SetNX(ctx, l.name, rand.Text(), lease).Result(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (l orders) Unlock(ctx context.Context) error { return l.rdb.Del(ctx, l.name).Err() }

type client struct{ rdb *redis.Client }

func (c client) Lock(name string) (locktest.Lock, error) { return orders{c.rdb, name}, nil }

func (c client) Close() error { return c.rdb.Close() }

var subject = locktest.Subject{
	Name: "orders", Servers: redistest.Servers(1), Lease: lease, State: redistest.Value(nil),
	Open: func(p *locktest.Process) (locktest.Client, error) { return client{redistest.NewClient(p, 0)}, nil },
}

// elsewhere is orders in another database.
func elsewhere() locktest.Subject {
	s := subject
	s.Name = "elsewhere"
	s.Open = func(p *locktest.Process) (locktest.Client, error) {
		o := redistest.Options(p, 0)
		o.DB = 3
		return client{redis.NewClient(o)}, nil
	}
	return s
}

// part is the environment variable that says which part of a test this program plays.
const part = "LOCKMAIN_PART"

func TestMain(m *testing.M) {
	if os.Getenv(part) == "program" {
		lockmain.Main(lockmain.Options{Locks: []locktest.Subject{subject, elsewhere()}, Live: live.Player()})
	}
	os.Exit(m.Run())
}

// TestOrders judges orders, if a test of this file asks for it.
func TestOrders(t *testing.T) {
	if os.Getenv(part) != "test" {
		t.Skip("n/a: another test runs this one")
	}
	t.Run("part", func(t *testing.T) { locktest.Run(t, subject, locktest.Options{Runs: 1, Live: live.Player()}) })
}

// rerun runs this program again in a folder, to play a part of a test.
func rerun(t *testing.T, plays, dir string, args ...string) string {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		redisserver.Missing(t, "redis-server", "redis-server")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), part+"="+plays, "GITHUB_ACTIONS=")
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Errorf("%v: nothing failed:\n%s", args, out)
	}
	return string(out)
}

// A failure that a test found in the simulated world shows on a real server.
func TestATestPlaysItsRecordingLive(t *testing.T) {
	t.Parallel() // most of its time is waiting
	dir := t.TempDir()
	rerun(t, "test", dir, "-test.run=^TestOrders$")
	file := filepath.Join("testdata", "lockstep", "TestOrders", "part", "story.unlock-twice.misdelete.lockstep")
	text := rerun(t, "test", dir, "-test.run=^TestOrders$", "-lockstep.replay="+file, "-lockstep.live=3")
	if !strings.Contains(text, "orders breaks misdelete: ") || !strings.Contains(text, "orders breaks misdelete on redis-server ") {
		t.Errorf("the bug is not seen in both worlds:\n%s", text)
	}
	rest := text
	for _, part := range []string{
		"locktest: orders, live run 1 of 3, after 0s: starting the processes\n", "locktest: orders, live run 1 of 3, after ", ": playing the steps and the faults\n",
		": waiting until no lock is held any more\n", "locktest: orders, live run 3 of 3, after ", ": judging\n", "locktest: orders, live run 3 of 3, after ",
	} {
		_, after, ok := strings.Cut(rest, part)
		if !ok {
			t.Fatalf("%q is missing in the progress, or not in this place:\n%s", part, text)
		}
		rest = after
	}
}

const late = `lockstep: 1
name: late
about: Process a works for longer than its lease.
source: SET NX and DEL
locks: [orders]
processes: {a: {}, b: {}}
steps:
  a/1: [lock: orders, at: 1500ms, unlock: orders]
  b/1: [at: 500ms, lock: orders, at: 1900ms, unlock: orders]
`

// A program that a user writes has the command live. A run in which the machine stood still may not
// show the bug.
func TestAProgramPlaysItsLockLive(t *testing.T) {
	t.Parallel() // most of its time is waiting
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "late.yaml"), []byte(late), 0o644); err != nil {
		t.Fatal(err)
	}
	if text := rerun(t, "program", dir, "live", "late.yaml", "--runs", "3"); !strings.Contains(text, "misdelete: unlock of a/1 (DEL, ") {
		t.Errorf("the bug is not seen:\n%s", text)
	}
}

func TestALiveRunReadsDatabase0(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "late.yaml"), []byte(strings.ReplaceAll(late, "[orders]", "[elsewhere]")), 0o644); err != nil {
		t.Fatal(err)
	}
	want := "the client of the lock selects database 3, and a live run reads database 0; give the client database 0"
	if text := rerun(t, "program", dir, "live", "late.yaml"); !strings.Contains(text, want) {
		t.Errorf("%q is missing:\n%s", want, text)
	}
}
