package locktest_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"lockstep/locktest"
)

// short is the variable with the -timeout that TestShort is to meet, and with the name of its lock.
const short = "LOCKSTEP_TEST_SHORT"

// blind is a triesLock whose Unlock deletes any hold.
type blind struct{ triesLock }

func (l *blind) Unlock(ctx context.Context) error {
	n, err := l.rdb.Del(ctx, l.name).Result()
	if err == nil && n == 0 {
		return locktest.ErrNotHeld
	}
	return err
}

type blindClient struct{ triesClient }

func (c blindClient) Lock(name string) (locktest.Lock, error) {
	return &blind{triesLock{rdb: c.rdb, name: name}}, nil
}

// TestShort judges a lock by a clock that advances by a second whenever it is read.
func TestShort(t *testing.T) {
	text, name, ok := strings.Cut(os.Getenv(short), " ")
	if !ok {
		t.Skip("n/a: another test runs this one")
	}
	timeout, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	s := tries(name)
	if open := s.Open; name == "blind" {
		s.Open = func(p *locktest.Process) (locktest.Client, error) {
			c, err := open(p)
			if err != nil {
				return nil, err
			}
			return blindClient{c.(triesClient)}, nil
		}
	}
	clock := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	now := func() time.Time {
		clock = clock.Add(time.Second)
		return clock
	}
	locktest.RunFor(t, s, locktest.Options{Accept: []string{"tidy.bug.run.never"}}, now, timeout)
}

// A test that would meet its -timeout stops before it. It shows what it found, and fails even if it found nothing.
func TestARunStopsBeforeItsTimeout(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const unmet = "the accepted finding tidy.bug.run.never did not occur"
	late := func(timeout string) string {
		return ": the test would have met its -timeout of " + timeout + "; give a larger one"
	}
	for _, c := range []struct {
		what, short string // see TestShort
		runs        int
		passed      bool
		want, not   []string
	}{
		{"a right lock", "300s right", 3000, false, []string{" of 3000 schedules" + late("5m0s") + ", or ask for fewer schedules with -lockstep.runs\n"}, []string{" breaks ", unmet, "not played"}},
		{"a wrong lock", "300s blind", 3000, false, []string{" of 3000 schedules" + late("5m0s"), "fingerprint: misdelete.bug.unlock.", "schedules do, the first is number "}, []string{unmet, "not played"}},
		{"time enough", "400s right", 20, true, []string{"20 schedules of right with the profile simple: ", unmet}, []string{"-timeout", "not played"}},
		{"no time for stories", "8s right", 20, false, []string{"played 0 of 20 schedules" + late("8s"), " of the recordings, stories and scenarios of right were not played" + late("8s") + "\n"}, []string{unmet}},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(self, "-test.run=^TestShort$", "-test.v", "-lockstep.runs="+strconv.Itoa(c.runs))
			cmd.Dir = t.TempDir()
			cmd.Env = append(os.Environ(), "GITHUB_ACTIONS=", short+"="+c.short)
			out, err := cmd.CombinedOutput()
			text := string(out)
			if passed := err == nil; passed != c.passed {
				t.Errorf("passed: %t, want %t", passed, c.passed)
			}
			for _, want := range c.want {
				if !strings.Contains(text, want) {
					t.Errorf("%q is missing", want)
				}
			}
			for _, not := range c.not {
				if strings.Contains(text, not) {
					t.Errorf("%q should not be there", not)
				}
			}
			if m := regexp.MustCompile(`played (\d+) of 3000 schedules`).FindStringSubmatch(text); c.runs == 3000 && (m == nil || len(m[1]) != 2) {
				t.Errorf("%q were played, want some dozens", m)
			}
			for _, m := range regexp.MustCompile(`recording: +(\S+)`).FindAllStringSubmatch(text, -1) {
				if _, err := os.Stat(filepath.Join(cmd.Dir, m[1])); err != nil {
					t.Error(err)
				}
			}
			if t.Failed() {
				t.Log(text)
			}
		})
	}
}
