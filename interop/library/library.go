// Package library runs a release of org.redisson:redisson in a JVM of its own, behind a
// driver (java/) that takes commands line by line.
package library

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Library is a release of the library in a JVM. The commands of its driver are listed in
// java/src/main/java/lockstep/interop/Driver.java.
type Library struct {
	Version string

	cmd    *exec.Cmd
	read   chan struct{} // closed when the output has ended
	stdin  io.WriteCloser
	stderr *tail

	mu      sync.Mutex
	gap     func(fromNs, toNs int64)
	next    int
	waiting map[string]chan Answer
	ended   error
}

// Answer is the answer of the driver to a command.
type Answer map[string]string

// Value is the result, as Java prints it; "ok" for a method without one.
func (a Answer) Value() string { return a["value"] }

// Owner is the owner that the library writes for the thread that answered: UUID:THREAD.
func (a Answer) Owner() string { return a["uuid"] + ":" + a["jvm_thread"] }

// Exception is the class of the exception that was thrown, without its package; "" for none.
func (a Answer) Exception() string {
	return a["error"][strings.LastIndexByte(a["error"], '.')+1:]
}

// Beat makes the JVM check at every interval whether it stood still for longer than longest, and
// calls gap when it did. The instants are on the monotonic clock of the machine.
func (l *Library) Beat(every, longest time.Duration, gap func(fromNs, toNs int64)) error {
	l.mu.Lock()
	l.gap = gap
	l.mu.Unlock()
	_, err := l.Ask("beat", Fields{"every", every.Milliseconds(), "longest", longest.Milliseconds()})
	return err
}

// InterruptedUnderWay reports whether an interrupt came while the call waited for the answer to a
// command.
func (a Answer) InterruptedUnderWay() bool {
	return strings.HasSuffix(a["cause"], ".InterruptedException") ||
		a["message"] == "Unexpected exception while processing command" && a["cause"] == "" // up to 3.12.4
}

// Err returns the exception as an error.
func (a Answer) Err() error {
	if a["error"] == "" {
		return nil
	}
	return fmt.Errorf("%s: %s", a["error"], a["message"])
}

// Fields are a command's words: key, value, key, value, ...
type Fields []any

// Options are the settings of the JVM.
type Options struct {
	Java      string // the program
	Classpath string // see Classpath
	// HeapMB is the size of the heap, so large that it is seldom collected; 0: a heap that grows to
	// 512 MB.
	HeapMB int
	// Start starts the process; nil: exec.Cmd.Start.
	Start func(*exec.Cmd) error
}

// Start starts the driver with a release.
func Start(version string, o Options) (*Library, error) {
	args := []string{"-Xmx512m"}
	if o.HeapMB != 0 {
		args = []string{fmt.Sprintf("-Xms%dm", o.HeapMB), fmt.Sprintf("-Xmx%dm", o.HeapMB), fmt.Sprintf("-Xmn%dm", o.HeapMB*3/4), "-XX:MetaspaceSize=256m"}
	}
	args = append(args, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
	for _, pkg := range []string{"lang", "math", "net", "nio", "text", "time", "util", "util.concurrent"} {
		// The older releases read private fields of the JDK's classes.
		args = append(args, "--add-opens", "java.base/java."+pkg+"=ALL-UNNAMED")
	}
	cmd := exec.Command(o.Java, append(args, "-cp", o.Classpath, "lockstep.interop.Driver")...)
	l := &Library{Version: version, cmd: cmd, stderr: &tail{}, waiting: map[string]chan Answer{}, read: make(chan struct{})}
	cmd.Stderr = l.stderr
	var err error
	if l.stdin, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	start := o.Start
	if start == nil {
		start = (*exec.Cmd).Start
	}
	if err := start(cmd); err != nil {
		return nil, err
	}
	go func() {
		defer close(l.read)
		l.hear(stdout)
	}()
	return l, nil
}

// Pid is the process of the JVM.
func (l *Library) Pid() int { return l.cmd.Process.Pid }

// Stop ends the JVM. The holds of its clients are not unlocked.
func (l *Library) Stop() {
	_ = l.stdin.Close()
	_ = l.cmd.Process.Kill()
	<-l.read
	_ = l.cmd.Wait()
}

// Send sends a command to the driver (do is its verb) and returns at once. The answer comes through
// the channel.
func (l *Library) Send(do string, fields Fields) <-chan Answer {
	answer := make(chan Answer, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended != nil {
		answer <- Answer{"error": "driver", "message": l.ended.Error()}
		return answer
	}
	l.next++
	id := strconv.Itoa(l.next)
	l.waiting[id] = answer
	var line strings.Builder
	fmt.Fprintf(&line, "id=%s\tdo=%s", id, do)
	for i := 0; i+1 < len(fields); i += 2 {
		fmt.Fprintf(&line, "\t%v=%v", fields[i], fields[i+1])
	}
	line.WriteByte('\n')
	if _, err := io.WriteString(l.stdin, line.String()); err != nil {
		l.end(fmt.Errorf("the driver takes no commands: %w", err))
	}
	return answer
}

// Ask sends a command and waits for the answer. An exception of the library becomes an error.
func (l *Library) Ask(do string, fields Fields) (Answer, error) {
	a := <-l.Send(do, fields)
	if err := a.Err(); err != nil {
		return a, fmt.Errorf("redisson %s: %s %v: %w", l.Version, do, []any(fields), err)
	}
	return a, nil
}

func (l *Library) hear(stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		a := Answer{}
		for pair := range strings.SplitSeq(lines.Text(), "\t") {
			k, v, _ := strings.Cut(pair, "=")
			a[k] = v
		}
		l.mu.Lock()
		answer, gap := l.waiting[a["id"]], l.gap
		delete(l.waiting, a["id"])
		l.mu.Unlock()
		if from, err := strconv.ParseInt(a["from"], 10, 64); err == nil && gap != nil {
			to, _ := strconv.ParseInt(a["to"], 10, 64)
			gap(from, to)
		}
		if answer != nil {
			answer <- a
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(errors.New("the driver ended"))
}

// end answers all callers that still wait. The caller holds l.mu.
func (l *Library) end(why error) {
	if l.ended == nil {
		l.ended = fmt.Errorf("%w; its last words: %s", why, l.stderr)
	}
	for id, answer := range l.waiting {
		answer <- Answer{"error": "driver", "message": l.ended.Error()}
		delete(l.waiting, id)
	}
}

// tail keeps the end of the text that is written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (k *tail) Write(p []byte) (int, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.text = append(k.text, p...)
	k.text = k.text[max(0, len(k.text)-2000):]
	return len(p), nil
}

func (k *tail) String() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return string(k.text)
}
