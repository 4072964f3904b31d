package redistest_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/internal/bad"
	"lockstep/internal/filetest"
	"lockstep/internal/longtest"
	"lockstep/locktest"
	"lockstep/locktest/redistest"
	"lockstep/sim"
)

// The locks and clients of this file are setnx with something wrong.

// leaks starts a goroutine in each call, and ends none.
type leaks struct{ setnx }

func (l *leaks) Lock(ctx context.Context) error {
	go l.forever()
	return l.setnx.Lock(ctx)
}

func (*leaks) forever() { <-make(chan struct{}) }

// floods leaves hundreds of goroutines behind in each call.
type floods struct{ leaks }

func (l *floods) Lock(ctx context.Context) error {
	for range 500 {
		go l.forever()
	}
	return l.setnx.Lock(ctx)
}

// deaf does not look at its context.
type deaf struct{ setnx }

func (l *deaf) Lock(context.Context) error { return l.setnx.Lock(context.Background()) }

// stubborn waits for a signal that never comes.
type stubborn struct{ setnx }

func (*stubborn) Lock(context.Context) error { select {} }

// asleep sleeps in the operating system.
type asleep struct{ setnx }

func (l *asleep) Lock(ctx context.Context) error {
	t := syscall.NsecToTimespec(int64(time.Hour))
	if err := syscall.Nanosleep(&t, nil); err != nil {
		return err
	}
	return l.setnx.Lock(ctx)
}

// piped reads a pipe that nobody writes to.
type piped struct{ setnx }

func (l *piped) Lock(ctx context.Context) error {
	var ends [2]int
	if err := syscall.Pipe(ends[:]); err != nil {
		return err
	}
	if _, err := syscall.Read(ends[0], make([]byte, 1)); err != nil {
		return err
	}
	return l.setnx.Lock(ctx)
}

// real asks a server of the machine.
type real struct{ setnx }

func (l *real) Lock(ctx context.Context) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	c, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		return err
	}
	if _, err := c.Read(make([]byte, 1)); err != nil {
		return err
	}
	return l.setnx.Lock(ctx)
}

// closing is a client whose Close does something wrong.
type closing struct {
	anyClient
	close func(anyClient) error
}

func (c closing) Close() error { return c.close(c.anyClient) }

// bursts panics in a goroutine that a Lock of one name starts.
type bursts struct {
	setnx
	at string
}

func (l *bursts) Lock(ctx context.Context) error {
	if l.name == l.at {
		go panic("in a goroutine of the lock")
	}
	return l.setnx.Lock(ctx)
}

func waitsForEver(anyClient) error {
	var renewals sync.WaitGroup
	renewals.Add(1)
	renewals.Wait()
	return nil
}

func init() {
	add := func(name string, lock func(setnx) locktest.Lock, end func(anyClient) error) {
		s := subjectOf(name, false)
		s.Open = func(p *locktest.Process) (locktest.Client, error) {
			c := anyClient{redis.NewClient(redistest.Options(p, 0)), func(rdb *redis.Client, name string) locktest.Lock {
				return lock(setnx{rdb: rdb, name: name})
			}}
			if end == nil {
				return c, nil
			}
			return closing{c, end}, nil
		}
		wrong[name] = s
	}
	plain := func(l setnx) locktest.Lock { return &l }
	add("leaks goroutines", func(l setnx) locktest.Lock { return &leaks{l} }, nil)
	add("floods", func(l setnx) locktest.Lock { return &floods{leaks{l}} }, nil)
	add("does not look at its context", func(l setnx) locktest.Lock { return &deaf{l} }, nil)
	add("blocks for ever", func(l setnx) locktest.Lock { return &stubborn{l} }, nil)
	add("sleeps in the system", func(l setnx) locktest.Lock { return &asleep{l} }, nil)
	add("bursts in a story", func(l setnx) locktest.Lock { return &bursts{l, "orders"} }, nil)
	add("bursts in a schedule", func(l setnx) locktest.Lock { return &bursts{l, "x"} }, nil)
	add("reads a pipe", func(l setnx) locktest.Lock { return &piped{l} }, nil)
	add("uses a real socket", func(l setnx) locktest.Lock { return &real{l} }, nil)
	add("panics in Close", plain, func(anyClient) error { panic("the adapter's own panic") })
	add("waits for ever in Close", plain, waitsForEver)
	add("does not close twice", plain, func(c anyClient) error {
		if err := c.Close(); err != nil {
			panic("closed twice")
		}
		return nil
	})
	add("fails to close", plain, func(c anyClient) error { return errors.Join(c.Close(), errLicence) })
}

// A sentence names such a lock and its fault, and the tests after it go on.
func TestBadLocksAreExplained(t *testing.T) {
	here := reflect.TypeFor[closing]().PkgPath()
	const system = " a goroutine waits for the operating system, and simulated time does not pass meanwhile; most likely for a file, a pipe, a process, or a connection that was not dialled through the world"
	wants := map[string][]string{
		"leaks goroutines":             {"leaks goroutines breaks tidy: ", "there still was a goroutine, which stood in " + here + ".(*leaks).forever and had been started by " + here + ".(*leaks).Lock", "hint: Client.Close must end every goroutine that the client or one of its locks has started; Lockstep calls Close when a process ends in order, and also for a process that crashed"},
		"waits for ever in Close":      {"waits for ever in Close breaks tidy: ", "every lease was over, Close of the client of process a had not returned; it stood in " + here + ".waitsForEver\n", "hint: Client.Close must end what the client and its locks have started, and return"},
		"does not look at its context": {"does not look at its context breaks wait-bound: "},
		"blocks for ever":              {"blocks for ever breaks liveness: a/1 waited for orders from 0.000s"},
		"sleeps in the system":         {"sleeps in the system cannot be judged: the world stood still", ".(*asleep).Lock" + system},
		"reads a pipe":                 {"reads a pipe cannot be judged: the world stood still", ".(*piped).Lock" + system},
		"uses a real socket":           {"uses a real socket cannot be judged: the world stood still", ".(*real).Lock" + system},
		"panics in Close":              {"panics in Close is undecided: the client of process a panicked at ", ", when it was closed: the adapter's own panic", here + ".closing.Close\n"},
	}
	bad.Counted(t, "locks of a test", len(wants))
	for name, want := range wants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, passed := outcome(t, t.TempDir(), name, nil, fmt.Sprint("-lockstep.runs=", longtest.Size(t, 8, 30)))
			if passed {
				t.Errorf("it passed:\n%s", text)
			}
			mustContain(t, text, append(want, "--- PASS: TestJudged/after_it")...)
		})
	}
}

// A client is closed once, and an error of its Close breaks no promise.
func TestCloseIsCalledOnce(t *testing.T) {
	for _, name := range []string{"does not close twice", "fails to close"} {
		if text, passed := outcome(t, t.TempDir(), name, nil, "-lockstep.runs=10"); !passed {
			t.Errorf("it failed:\n%s", text)
		}
	}
}

// A panic in a goroutine of the lock ends the binary. The stack says what was played.
func TestAPanicInAGoroutineSaysWhatWasPlayed(t *testing.T) {
	t.Parallel()
	for name, played := range map[string]string{
		"bursts in a story":    "the story one-after-the-other",
		"bursts in a schedule": "schedule number 61 of -lockstep.seed=7 -lockstep.profile=simple",
	} {
		text, _ := outcome(t, t.TempDir(), name, nil, "-lockstep.runs=80", "-lockstep.seed=7")
		mustContain(t, text, "panic: in a goroutine of the lock", `labels:{"lockstep": "`+played+`"}]:`)
	}
}

// A lock that leaves so many goroutines behind that its test would not end is told so, with the function.
func TestALockThatLeavesGoroutinesBehindEndsItsTest(t *testing.T) {
	text, passed := outcome(t, t.TempDir(), "floods", nil, "-lockstep.runs=200", "-lockstep.faults=none", "-test.run=TestJudged/explore")
	if passed {
		t.Errorf("it passed:\n%s", text)
	}
	mustContain(t, text, " of 200 schedules: ", " goroutines are left over by the runs until then, which makes each run longer than the one before. The judge tidy names the function in which they stand\n",
		"floods breaks tidy: ", "(*leaks).forever and had been started by ", "(*floods).Lock")
}

// Damaged recordings of a test are refused one by one, and stay as they are. None ends the test.
func TestDamagedRecordingsOfATest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	outcome(t, dir, "exists-then-set", nil, "-test.run=^TestJudged$/^stories$/^slow-network$")
	folder := filepath.Join(dir, "testdata", "lockstep", "TestJudged")
	const name = "story.slow-network.mutual-exclusion.lockstep"
	whole := filetest.Read(t, filepath.Join(folder, name))
	begin := strings.Index(whole, "{")
	other := strings.Replace(filetest.Read(t, filepath.Join("..", "..", "results", "misdelete", "setnx-del", "1.lockstep")), "setnx-del", "exists-then-set", 1)
	inputs := slices.Concat(bad.Flipped(whole, 60), bad.Cut(whole, 20), bad.Spliced(whole, other, 10))
	for _, in := range bad.Fields(whole[begin:]) {
		inputs = append(inputs, bad.Input{Name: in.Name, Text: whole[:begin] + in.Text + "\n"})
	}
	bad.Counted(t, "damaged recordings of a test", len(inputs))
	for i, in := range inputs {
		filetest.Write(t, filepath.Join(folder, fmt.Sprintf("story.slow-network.mutual-exclusion~%d.lockstep", i+2)), in.Text)
	}
	for _, what := range []string{"folder.lockstep", "story.no-such-story.misdelete.lockstep/x"} {
		if err := os.MkdirAll(filepath.Join(folder, what), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"loop.lockstep": "loop.lockstep", "dangling.lockstep": "no", "zero.lockstep": "/dev/zero"} {
		if err := os.Symlink(to, filepath.Join(folder, link)); err != nil {
			t.Fatal(err)
		}
	}
	text, passed := outcome(t, dir, "exists-then-set", nil)
	a := bad.Answer{Code: 1, Out: strings.ReplaceAll(text, "\n=== ", "\n")}
	// A flipped digit may make another schedule of the scenario. One of those does with the overlay, and holds.
	holds := !sim.Overlaid && strings.Contains(text, "holds in the schedule that broke it before")
	if err := a.Check(1, 1); err != nil || passed || strings.Contains(text, "panic") || holds {
		t.Errorf("%v:\n%s", err, text)
	}
	if done := strings.Count(text, "\n    --- "); done != len(inputs)+7 {
		t.Errorf("%d of %d recordings are told:\n%s", done, len(inputs)+7, text)
	}
	for i, in := range inputs {
		if filetest.Read(t, filepath.Join(folder, fmt.Sprintf("story.slow-network.mutual-exclusion~%d.lockstep", i+2))) != in.Text {
			t.Errorf("%s: the recording was changed", in.Name)
		}
	}
}

// A failure whose recording cannot be written is shown, and no command that would not work.
func TestARecordingThatCannotBeWritten(t *testing.T) {
	for name, block := range map[string]func(dir string) error{
		"a file in the place of the folder": func(dir string) error { return os.WriteFile(filepath.Join(dir, "testdata"), nil, 0o644) },
		"a link that leads nowhere":         func(dir string) error { return os.Symlink("/no/such", filepath.Join(dir, "testdata")) },
		"a folder in the place of the file": func(dir string) error {
			return os.MkdirAll(filepath.Join(dir, "testdata", "lockstep", "TestJudged", "story.slow-network.mutual-exclusion.lockstep", "x"), 0o755)
		},
	} {
		dir := t.TempDir()
		if err := block(dir); err != nil {
			t.Fatal(err)
		}
		text, passed := outcome(t, dir, "exists-then-set", nil, "-test.run=^TestJudged$/^stories$/^slow-network$")
		if passed || strings.Contains(text, "replay: ") {
			t.Errorf("%s:\n%s", name, text)
		}
		mustContain(t, text, "fingerprint: story.slow-network.mutual-exclusion\n", "the recording could not be written: ")
	}
}
