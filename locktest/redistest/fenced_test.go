package redistest_test

import (
	"context"
	"crypto/rand"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/internal/longtest"
	"lockstep/locktest"
	"lockstep/locktest/redistest"
)

// fenced is a setnx whose holds have a token, which a counter beside the lock gives.
type fenced struct {
	setnx
	early  bool // draws the token before it waits for the lock: a bug
	silent bool // tells nobody the token
	token  uint64
}

const takeWithToken = `
if redis.call("set", KEYS[1], ARGV[1], "NX", "PX", ARGV[2]) then return redis.call("incr", KEYS[2]) end
return 0`

func (l *fenced) TryLock(ctx context.Context) (bool, error) {
	value := rand.Text()
	n, err := l.rdb.Eval(ctx, takeWithToken, []string{l.name, counter(l.name)}, value, lease.Milliseconds()).Uint64()
	if n > 0 {
		l.value, l.token = value, n
	}
	return n > 0, err
}

func (l *fenced) Lock(ctx context.Context) error {
	if l.early {
		n, err := l.rdb.Incr(ctx, counter(l.name)).Uint64()
		if err == nil {
			l.token, err = n, l.setnx.Lock(ctx)
		}
		return err
	}
	for {
		if ok, err := l.TryLock(ctx); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return locktest.ErrBusy
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (l *fenced) Token() (uint64, bool) { return l.token, l.token > 0 && !l.silent }

func counter(lock string) string { return lock + ":tokens" }

func fencedSubject(name string, early, silent bool) locktest.Subject {
	s := subjectOf(name, false)
	s.Open = func(p *locktest.Process) (locktest.Client, error) {
		return anyClient{redis.NewClient(redistest.Options(p, 0)), func(rdb *redis.Client, name string) locktest.Lock {
			return &fenced{setnx: setnx{rdb: rdb, name: name}, early: early, silent: silent}
		}}, nil
	}
	s.Kept = func(lock string) []string { return []string{counter(lock)} }
	return s
}

// The tokens of a lock that draws them with the grant grow. The counter may stay.
func TestAFencedLock(t *testing.T) {
	locktest.Run(t, fencedSubject("fenced", false, false), locktest.Options{Runs: longtest.Size(t, 20, 200), Faults: "network,pause,crash", Scenarios: "testdata/fenced-*.yaml"})
}

// A resource with a fence refuses the token of a holder that is late. The program says so:
// a test skips a scenario that does not apply.
func TestAFenceAsksForTheTokensOfAnybodysLock(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "run", "testdata/fenced-pause.yaml", "--json")
	cmd.Env = append(os.Environ(), asProgram+"=fenced")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	mustContain(t, string(out), `"verdict":"limit"`, `"as_expected":true`)
}

func TestATokenThatIsDrawnBeforeTheWait(t *testing.T) {
	text, passed := outcome(t, t.TempDir(), "draws its token too early", nil, "-lockstep.faults=none")
	if passed {
		t.Fatalf("it passed:\n%s", text)
	}
	mustContain(t, text, "draws its token too early breaks fencing: ", " was told the token ", "fingerprint: fencing.bug.acquire.")
}
