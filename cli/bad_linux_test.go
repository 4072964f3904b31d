package cli

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"lockstep/cli/frame"
	"lockstep/internal/bad"
	"lockstep/internal/filetest"
	"lockstep/internal/longtest"
)

// started runs simrun as a process of its own, which change may give another environment.
func started(t *testing.T, change func(*exec.Cmd), args ...string) (a bad.Answer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), bad.Most)
	defer cancel()
	var out, stderr strings.Builder
	cmd := exec.CommandContext(ctx, self, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = t.TempDir(), &out, &stderr
	if change != nil {
		change(cmd)
	}
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	a = bad.Answer{Code: cmd.ProcessState.ExitCode(), Out: out.String(), Errors: stderr.String()}
	if ctx.Err() != nil {
		t.Errorf("%v: no end\n%v", args, a)
	}
	if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signaled() {
		a.Code = 128 + int(status.Signal())
	}
	return a
}

// A run and a campaign come to the same in any environment, or say in a line why they are not played.
func TestBadEnvironments(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	filetest.Write(t, file, "")
	type change struct {
		name string
		do   func(*exec.Cmd)
	}
	var changes []change
	for _, variable := range []string{
		"TMPDIR=/no/such", "TMPDIR=" + file, "TMPDIR=/proc", "TMPDIR=", "TMPDIR=.", "TMPDIR=a\x1b[2Jb", "HOME=", "HOME=/no/such", "XDG_CACHE_HOME=x", "GOMAXPROCS=0", "GOMAXPROCS=-1", "GOMAXPROCS=x", "GOMAXPROCS=1000",
		"GODEBUG=asynctimerchan=1", "GODEBUG=nonsense", "GODEBUG=a=b,,=,c", "GODEBUG=randseednop=0", "GODEBUG=\x1b[2J", "GOGC=off", "GOGC=1", "GOGC=x", "GOTRACEBACK=crash", "GOTRACEBACK=\x1b", "TERM=", "TERM=xterm", "NO_COLOR=1",
		"COLUMNS=-1", "LC_ALL=tr_TR.UTF-8", "LANG=\xff", "TZ=No/Such", "TZ=" + file, "TZ=../../../dev/zero", "GITHUB_ACTIONS=true", "GITHUB_WORKSPACE=\n::error::x", "CI=1", "PATH=", "PATH=" + file, "LOCKSTEP_LONG=x",
		"USER=\x1b[2J", "HTTP_PROXY=http://[", "GOCOVERDIR=/no/such", "LOCKSTEP=1", "A=" + strings.Repeat("a", 100_000),
	} {
		changes = append(changes, change{variable, func(c *exec.Cmd) { c.Env = append(os.Environ(), variable) }})
	}
	shell := func(script string) change {
		return change{script, func(c *exec.Cmd) {
			c.Path, c.Args = "/bin/sh", append([]string{"sh", "-c", script + "; exec \"$0\" \"$@\""}, c.Args...)
		}}
	}
	changes = append(changes,
		change{"no environment", func(c *exec.Cmd) { c.Env = []string{"A=1"} }},
		change{"in /", func(c *exec.Cmd) { c.Dir = "/" }},
		change{"in /proc", func(c *exec.Cmd) { c.Dir = "/proc/self" }},
		shell("rmdir \"$PWD\""), shell("exec <&-"), shell("exec </dev/zero"), shell("exec <."), shell("umask 777"), shell("umask 0"), shell("ulimit -n 32"), shell("ulimit -s 100"), shell("ulimit -c 0"),
		shell("ulimit -f 0"), shell("trap '' INT TERM HUP PIPE"), shell("exec 3</dev/zero 4>/dev/null 9<."), shell("cd /tmp && cd - >/dev/null"), shell("unset PWD"), shell("PWD=/no/such; export PWD"),
	)
	commands := [][]string{
		{"run", "misdelete", "--lock", "setnx-del", "--seed", "1", "--json"},
		{"explore", "--lock", "setnx-del", "--runs", "4", "--jobs", "2", "--json", "--quiet"},
	}
	bad.Counted(t, "environments", len(changes)*len(commands))
	step := longtest.Size(t, 3, 1)
	for i, args := range commands {
		if i > 0 && !longtest.Asked() {
			break
		}
		want := started(t, nil, args...)
		for i := 0; i < len(changes); i += step {
			c := changes[i]
			a := started(t, c.do, args...)
			err := a.Check(2, want.Code, frame.ExitUsage, frame.ExitIO)
			if err == nil && a.Code == want.Code && a.Out != want.Out {
				err = fmt.Errorf("it comes to something else")
			}
			if err != nil {
				t.Errorf("%.200q %v: %v\n%v", c.name, args, err, a)
			}
		}
	}
}

// A command whose output nobody takes ends, and says so where it can.
func TestOutputsThatEnd(t *testing.T) {
	recording, err := filepath.Abs(filepath.Join("..", "results", "misdelete", "setnx-del", "1.lockstep"))
	if err != nil {
		t.Fatal(err)
	}
	open := func(name string, flag int) *os.File {
		f, err := os.OpenFile(name, flag, 0)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = f.Close() })
		return f
	}
	full := open("/dev/full", os.O_WRONLY)
	closed := func() *os.File {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
		t.Cleanup(func() { _ = w.Close() })
		return w
	}
	ends := []struct {
		name   string
		change func(*exec.Cmd)
		codes  []int
	}{
		{"a full device", func(c *exec.Cmd) { c.Stdout = full }, []int{frame.ExitIO}},
		{"a closed pipe", func(c *exec.Cmd) { c.Stdout = closed() }, []int{frame.ExitIO, 128 + int(syscall.SIGPIPE)}},
		{"an output that only reads", func(c *exec.Cmd) { c.Stdout = open(os.DevNull, os.O_RDONLY) }, []int{frame.ExitIO}},
		{"no output, for which Go takes the null device", func(c *exec.Cmd) {
			c.Path, c.Args = "/bin/sh", append([]string{"sh", "-c", `exec "$0" "$@" >&-`}, c.Args...)
		}, []int{frame.ExitOK, frame.ExitUnexpected}},
		{"errors that go to a full device", func(c *exec.Cmd) { c.Stderr = full }, []int{frame.ExitOK, frame.ExitUnexpected}},
		{"errors that go to a closed pipe", func(c *exec.Cmd) { c.Stderr = closed() }, []int{frame.ExitOK, frame.ExitUnexpected, 128 + int(syscall.SIGPIPE)}},
	}
	commands := []string{
		"help", "list", "list --json", "run misdelete --lock setnx-del", "run misdelete --lock setnx-del --json", "run misdelete --lock setnx-del --format junit", "matrix misdelete --lock setnx-del", "replay FILE", "explain FILE",
		"report FILE --text", "shrink FILE", "explore --lock setnx-del --runs 4 --jobs 1", "version", "completion bash",
	}
	bad.Counted(t, "outputs that end", len(ends)*len(commands))
	for i, command := range commands {
		for _, end := range ends {
			if i%4 > 0 && !longtest.Asked() {
				continue
			}
			a := started(t, end.change, strings.Fields(strings.ReplaceAll(command, "FILE", recording))...)
			if err := a.Check(1, end.codes...); err != nil {
				t.Errorf("%s, %s: %v\n%v", command, end.name, err, a)
			}
		}
	}
}

// A command that a signal ends at any moment loses nothing: the same command then comes to the same folder.
func TestSignalsAtAnyMoment(t *testing.T) {
	commands := []string{
		"explore --lock setnx-del --faults pause --runs 30 --jobs 1 --out out", "run misdelete --lock setnx-del --seed 1..60 --out out", "report in -o out", "survey --lock none --runs 2 --jobs 1 --out out",
		"repeat --lock none --runs 20 --jobs 1 --seeds 1..1 --out out", "merge campaign --out out",
	}
	signals := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL, syscall.SIGHUP}
	const moments = 2
	bad.Counted(t, "signals", len(commands)*len(signals)*moments)
	longtest.Only(t)
	input := t.TempDir()
	for _, command := range []string{"run misdelete --lock setnx-del --out in", strings.Replace(commands[0], "out out", "out campaign", 1)} {
		started(t, func(c *exec.Cmd) { c.Dir = input }, strings.Fields(command)...)
	}
	for _, command := range commands {
		play := func(dir string, signal syscall.Signal, after time.Duration) bad.Answer {
			return started(t, func(c *exec.Cmd) {
				c.Dir = dir
				if signal != 0 {
					c.Path, c.Args = "/bin/sh", []string{"sh", "-c", fmt.Sprintf(`"$0" "$@" & p=$!; sleep %.3f; kill -%d $p 2>/dev/null; wait $p`, after.Seconds(), signal), c.Path}
					c.Args = append(c.Args, strings.Fields(command)...)
				}
			}, strings.Fields(command)...)
		}
		folder := func() string {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(input)); err != nil {
				t.Fatal(err)
			}
			return dir
		}
		dir, began := folder(), time.Now()
		whole := play(dir, 0, 0)
		took, want := time.Since(began), filetest.Contents(t, dir)
		for _, signal := range signals {
			for moment := range moments {
				dir, after := folder(), took*time.Duration(moment+1)/(moments+1)
				name := fmt.Sprintf("%s, %v after %v", command, signal, after)
				a := play(dir, signal, after)
				err := a.Check(2, frame.ExitOK, frame.ExitUnexpected, frame.ExitUndecided, 128+int(signal))
				if err == nil && (signal == syscall.SIGINT || signal == syscall.SIGTERM) && a.Code > frame.ExitUndecided && len(filetest.Contents(t, dir)) > len(filetest.Contents(t, input)) {
					err = fmt.Errorf("it did not end in order")
				}
				again := play(dir, 0, 0)
				got := filetest.Contents(t, dir)
				// A program that is killed leaves its temporary files.
				maps.DeleteFunc(got, func(name, _ string) bool {
					return strings.Contains("/"+name, "/.") && signal != syscall.SIGINT && signal != syscall.SIGTERM
				})
				if err == nil && (again.Code != whole.Code || !maps.Equal(got, want)) {
					err = fmt.Errorf("the same command comes to something else: exit %d, %s", again.Code, again.Errors)
					for name, text := range got {
						if want[name] != text {
							err = fmt.Errorf("%w; %s is another", err, name)
						}
					}
				}
				if err != nil {
					t.Errorf("%s: %v\n%v", name, err, a)
				}
			}
		}
	}
}
