package locktest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"lockstep/internal/counted"
	"lockstep/internal/foreign"
	"lockstep/linearizability/judges"
	"lockstep/report/sentence"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
)

// liveClient is the variable that makes a test one process of a live run. It has the name of
// the test.
const liveClient = "LOCKSTEP_LIVE_CLIENT"

// serveLive plays a process of a live run, if this program was started for one. Then it does not
// return.
func (r *runner) serveLive() {
	if os.Getenv(liveClient) != r.t.Name() || r.o.Live == nil {
		return
	}
	subject.Register(r.lock)
	out := os.Stdout
	os.Stdout = os.Stderr // the lock may print to stdout
	if err := r.o.Live.Client(os.Stdin, out); err != nil {
		fmt.Fprintln(foreign.NewTerminal(os.Stderr), err)
		os.Exit(1)
	}
	os.Exit(0)
}

// livable returns the reason why a player cannot play a lock on a real server; nil if it can.
func livable(player play.LivePlayer, name string) error {
	if runtime.GOOS != "linux" {
		return errors.New("-lockstep.live needs Linux")
	}
	if player == nil {
		return fmt.Errorf("-lockstep.live needs a player: set Options.Live of the test to live.Player(), of the package %q", path.Join(path.Dir(reflect.TypeFor[Subject]().PkgPath()), "live"))
	}
	if _, err := subject.Find(name); err == nil {
		return fmt.Errorf("subject %q has the name of a built-in lock, which -lockstep.live would play instead; give it a name of its own", name)
	}
	return nil
}

// live plays the scenario of a recording on a real server, as often as runs says. It fails the test if
// a run has a bug. A recording is of one schedule, and a live run has the schedule that the machine
// gives it.
func (r *runner) live(t *testing.T, file string, runs int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		say(t).Fatal("locktest:", err)
	}
	_, sc, _ := r.read(t, file)
	if err := os.Setenv(liveClient, r.t.Name()); err != nil {
		say(t).Fatal("locktest:", err)
	}
	defer func() { _ = os.Unsetenv(liveClient) }()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU())) // nothing is simulated here
	o := play.LiveOptions{Program: []string{self, "-test.run=" + patternOf(r.t.Name())}}
	seen := map[string][]string{} // by judge, one text per run with a bug
	var order []string
	ended := map[string]int{} // by verdict
	server := ""
	for n := range runs {
		told := tellLive(foreign.NewTerminal(os.Stderr), fmt.Sprintf("locktest: %s, live run %d of %d", r.s.Name, n+1, runs))
		o.Tell = told.tell
		v, err := r.o.Live.Run(t.Context(), sc, r.lock, uint64(n+1), o)
		if err != nil {
			say(t).Fatal("locktest:", err)
		}
		told.tell(string(v.Word))
		ended[string(v.Word)]++
		server = strings.Join(v.Programs, ", ")
		met := map[string]bool{}
		for _, f := range v.Findings {
			if f.Class != judges.ClassBug || met[f.Judge] {
				continue
			}
			met[f.Judge] = true
			if seen[f.Judge] == nil {
				order = append(order, f.Judge)
			}
			seen[f.Judge] = append(seen[f.Judge], sentence.Finding(f))
		}
	}
	for _, judge := range order {
		say(t).Errorf("locktest: %s breaks %s on %s, in %d of %s (%s): %s", r.s.Name, judge, server, len(seen[judge]), counted.Of(runs, "run"), words(ended), seen[judge][0])
	}
	if len(order) == 0 {
		// Of the test and not of this part, so that it is shown if the replay failed.
		say(r.t).Logf("locktest: %s shows no bug on %s in %s: %s. A recording is of one schedule; a live run has the schedule that the machine gives it",
			r.s.Name, server, counted.Of(runs, "run"), words(ended))
	}
}

// liveProgress writes what a live run is doing. A live run takes up to minutes, and a test that is
// silent for so long looks as if it hung.
type liveProgress struct {
	w     io.Writer
	run   string // its name and number
	begun time.Time
}

func tellLive(w io.Writer, run string) liveProgress { return liveProgress{w, run, time.Now()} }

// tell writes a line. It does not use the log of the test, which go test keeps until the test has ended
// unless it was called with -v.
func (p liveProgress) tell(doing string) {
	_, _ = fmt.Fprintf(p.w, "%s, after %v: %s\n", p.run, time.Since(p.begun).Round(time.Second), doing)
}

// patternOf returns the pattern of -run that matches a test and nothing else.
func patternOf(test string) string { return "^" + strings.ReplaceAll(test, "/", "$/^") + "$" }
