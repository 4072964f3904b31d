package evidence

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/google/renameio/v2"

	"lockstep/cli"
	"lockstep/cli/frame"
	"lockstep/internal/counted"
	"lockstep/linearizability/judges"
	"lockstep/scenarios/play"
)

// An agreedRun is the result of a live run of agree. Its first fields identify the run.
type agreedRun struct {
	Scenario string   `json:"scenario"`
	Text     string   `json:"text"` // a hash of the scenario file
	Lock     string   `json:"lock"`
	Run      int      `json:"run"`
	Judges   int      `json:"judges"` // their version
	Outcome  string   `json:"outcome"`
	Bugs     []string `json:"bugs,omitempty"` // of a planted bug: the judges that find a bug
	Note     string   `json:"note,omitempty"`
	Programs []string `json:"programs"`
}

// agreedRunOf returns run n of a pair.
func agreedRunOf(p *cli.Pair, n int, r play.LiveRun) agreedRun {
	x := agreedKey(p, n)
	x.Outcome, x.Note, x.Programs = outcome(r.Verdict), r.Note, r.Programs
	return x
}

func agreedKey(p *cli.Pair, n int) agreedRun {
	sum := sha256.Sum256([]byte(p.Scenario.Text))
	return agreedRun{Scenario: p.Scenario.Name, Text: hex.EncodeToString(sum[:8]), Lock: p.Lock.Name, Run: n, Judges: judges.Version}
}

func (r agreedRun) key() string {
	return fmt.Sprintf("%s %s %s %d %d", r.Scenario, r.Text, r.Lock, r.Run, r.Judges)
}

// place names the place of a run in the table. A newer run of the same place replaces it.
func (r agreedRun) place() string { return fmt.Sprintf("%s %s %d", r.Scenario, r.Lock, r.Run) }

// agreedRuns has the runs in a file. Each run is added when it has ended, so that an interrupted or
// killed command can go on. The zero value keeps nothing.
type agreedRuns struct {
	file *os.File
	mu   sync.Mutex
	runs map[string]agreedRun
	all  []agreedRun // in the order of the file
}

// openAgreed reads the runs from the file beside the table out that has the same name, but ends in
// .jsonl. out may be "" for none. The error says that another process writes the file, or that
// agree did not write it.
func openAgreed(out string) (*agreedRuns, error) {
	k := &agreedRuns{runs: map[string]agreedRun{}}
	if out == "" {
		return k, nil
	}
	name := strings.TrimSuffix(out, filepath.Ext(out)) + ".jsonl"
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	k.file = f
	if err := k.read(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), f.Close())
	}
	return k, nil
}

// read reads the file. A line without an end, which was being written when the program was killed,
// is removed.
func (k *agreedRuns) read() error {
	if err := syscall.Flock(int(k.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
		return errors.New("another process writes into it")
	}
	text, err := io.ReadAll(k.file)
	if err != nil {
		return err
	}
	whole := bytes.LastIndexByte(text, '\n') + 1
	for i, line := range bytes.Split(bytes.TrimSuffix(text[:whole], []byte("\n")), []byte("\n")) {
		if len(line) == 0 {
			continue
		}
		var r agreedRun
		dec := json.NewDecoder(bytes.NewReader(line))
		dec.DisallowUnknownFields()
		if err := dec.Decode(&r); err != nil {
			return fmt.Errorf("line %d is no run of agree: %w", i+1, err)
		}
		k.runs[r.key()] = r
		k.all = append(k.all, r)
	}
	if err := k.file.Truncate(int64(whole)); err != nil {
		return err
	}
	_, err = k.file.Seek(int64(whole), io.SeekStart)
	return err
}

// find returns run n of a pair, if it was played.
func (k *agreedRuns) find(p *cli.Pair, n int) (agreedRun, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r, ok := k.runs[agreedKey(p, n).key()]
	return r, ok
}

// add appends a run to the file, so that the next command finds it.
func (k *agreedRuns) add(r agreedRun) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.file == nil {
		return nil
	}
	k.all = append(k.all, r)
	text, err := linesOf(r)
	if err != nil {
		return err
	}
	_, err = k.file.Write(text)
	return err
}

// agreeing plays live runs that are kept.
type agreeing struct {
	a         *frame.App
	o         play.LiveOptions
	earlier   *agreedRuns
	differing string // the folder for the runs that do not agree; "": none
}

// run returns run n of a pair: the one that is kept, unless it is to be played anew, or else a new one.
// judge completes what is kept of a live run, and reports whether the run agrees.
func (g agreeing) run(ctx context.Context, p *cli.Pair, n int, anew bool, judge func(x *agreedRun, r play.LiveRun) bool) (x agreedRun, before bool, err error) {
	if x, before = g.earlier.find(p, n); before && !anew {
		return x, true, nil
	}
	r, err := g.a.Live.Run(ctx, p.Scenario, p.Lock, uint64(n), g.o)
	if err != nil {
		return x, false, fmt.Errorf("%s on %s: %w", p.Scenario.Name, p.Lock.Name, err)
	}
	x = agreedRunOf(p, n, r)
	if agrees := judge(&x, r); !agrees && g.differing != "" {
		if _, err := cli.WriteLive(g.differing, r); err != nil {
			return x, false, err
		}
	}
	return x, false, g.earlier.add(x)
}

func linesOf(runs ...agreedRun) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, r := range runs {
		if err := enc.Encode(r); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

// tidy removes each run that a newer one has replaced from the file. add must not be called after it.
func (k *agreedRuns) tidy() error {
	newest := map[string]int{}
	for i, r := range k.all {
		newest[r.place()] = i
	}
	if k.file == nil || len(newest) == len(k.all) {
		return nil
	}
	var left []agreedRun
	for i, r := range k.all {
		if newest[r.place()] == i {
			left = append(left, r)
		}
	}
	text, err := linesOf(left...)
	if err != nil {
		return err
	}
	return renameio.WriteFile(k.file.Name(), text, 0o666)
}

func (k *agreedRuns) close() {
	if k.file != nil {
		_ = k.file.Close()
	}
}

// sideBySide calls do for each number below n, jobs at a time, until ctx is over. Live runs mostly
// wait, so that several share a processor. A run that cannot be played does not end the others,
// unless its input is unusable or it is the last of brokenMost such runs in a row. The error says how
// many could not be played, and has the first reason. noun names the thing that do plays, such as "run".
func sideBySide(ctx context.Context, n, jobs int, noun string, do func(i int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	var first error
	failed, inARow := 0, 0
	end := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		var bad cli.Unusable
		switch {
		case ctx.Err() != nil: // the run was ended
		case err == nil:
			inARow = 0
		default:
			failed++
			inARow++
			first = cmp.Or(first, err)
			if errors.As(err, &bad) || inARow == cli.BrokenMost {
				cancel(err)
			}
		}
	}
	var all sync.WaitGroup
	next := make(chan int)
	for range jobs {
		all.Go(func() {
			for i := range next {
				end(do(i))
			}
		})
	}
	for i := 0; i < n && ctx.Err() == nil; i++ {
		select {
		case next <- i:
		case <-ctx.Done():
		}
	}
	close(next)
	all.Wait()
	if err := context.Cause(ctx); err != nil || failed == 0 {
		return err
	}
	return fmt.Errorf("%d of %s could not be played, the first because of this: %w", failed, counted.Of(n, noun), first)
}

// kept says as a clause that the runs are kept; "" if they are not.
func (k *agreedRuns) kept() string {
	if k.file == nil {
		return ""
	}
	return "; the runs that are done are kept, and the same command goes on"
}

// tableError returns the error of a table whose runs sideBySide played: nil if it played all. kept says
// as a clause which of them are kept; "": none.
func tableError(ctx context.Context, err error, kept string) error {
	var wrong frame.UsageError
	switch err := cli.LiveError(ctx, err); {
	case err == nil:
		return nil
	case ctx.Err() != nil && kept != "":
		return frame.InterruptedError(kept)
	case ctx.Err() != nil || errors.As(err, &wrong):
		return err
	default:
		return fmt.Errorf("%w%s", err, kept)
	}
}

// liveProgress reports on stderr how far live runs are.
type liveProgress struct {
	a          *frame.App
	mu         sync.Mutex
	of         int
	done, kept int // kept were played by an earlier command
	begun      time.Time
	shown      time.Time
}

func tellLive(a *frame.App, of int) *liveProgress {
	now := time.Now()
	return &liveProgress{a: a, of: of, begun: now, shown: now}
}

// played notes the outcome of a run. before reports that an earlier command played it. The caller
// holds t.mu.
func (t *liveProgress) played(before bool, what string) {
	t.done++
	if before {
		t.kept++
		return
	}
	left := ""
	now := time.Now()
	if n := t.done - t.kept; t.of > t.done {
		left = frame.More(now.Sub(t.begun) / time.Duration(n) * time.Duration(t.of-t.done))
	}
	line := fmt.Sprintf("%d of %d live runs%s; %s", t.done, t.of, left, what)
	if t.a.TTY || now.Sub(t.shown) >= frame.PaceElsewhere {
		t.shown = now
		t.a.Advance("%s", line)
	}
}
