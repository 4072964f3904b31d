//go:build interop

package interop

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"

	"lockstep/lockimpl/redisserver"
)

// Library is one release of the library, running in a JVM of its own behind
// the driver (java/src/main/java/lockstep/interop/Driver.java has the words).
// It ends with the test; what its clients hold is not unlocked.
type Library struct {
	Version string

	stdin  io.WriteCloser
	stderr *tail

	mu      sync.Mutex
	next    int
	waiting map[string]chan Answer
	ended   error
}

// Answer is what came of one command.
type Answer map[string]string

// Value is the result, as Java prints it; "ok" of a method without one.
func (a Answer) Value() string { return a["value"] }

// Owner is how the library writes the thread that answered: UUID:THREAD.
func (a Answer) Owner() string { return a["uuid"] + ":" + a["jvm_thread"] }

// Exception is the class of what was thrown, without its package; "" for none.
func (a Answer) Exception() string {
	return a["error"][strings.LastIndexByte(a["error"], '.')+1:]
}

// Err is what was thrown, as an error.
func (a Answer) Err() error {
	if a["error"] == "" {
		return nil
	}
	return fmt.Errorf("%s: %s", a["error"], a["message"])
}

// Fields are a command's words: key, value, key, value, ...
type Fields []any

// StartLibrary builds the driver with a release, unless that was done before,
// and starts it. Without Java or Maven the test is skipped, see Missing.
func StartLibrary(t testing.TB, version string) *Library {
	t.Helper()
	java, err := exec.LookPath("java")
	if err != nil {
		redisserver.Missing(t, "java", "openjdk-17-jdk-headless")
	}
	classpath, err := Classpath("java", version)
	if errors.Is(err, exec.ErrNotFound) {
		redisserver.Missing(t, "mvn", "maven")
	}
	if err != nil {
		t.Fatalf("build of the driver with redisson %s: %v", version, err)
	}
	args := []string{"-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"}
	for _, pkg := range []string{"lang", "math", "net", "nio", "text", "time", "util", "util.concurrent"} {
		// The older releases look into the JDK's own classes.
		args = append(args, "--add-opens", "java.base/java."+pkg+"=ALL-UNNAMED")
	}
	cmd := exec.Command(java, append(args, "-cp", classpath, "lockstep.interop.Driver")...)
	l := &Library{Version: version, stderr: &tail{}, waiting: map[string]chan Answer{}}
	cmd.Stderr = l.stderr
	if l.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		l.read(stdout)
	}()
	t.Cleanup(func() {
		_ = l.stdin.Close()
		_ = cmd.Process.Kill()
		<-read
		_ = cmd.Wait()
	})
	return l
}

// Send gives the driver a command (do is its verb) and returns at once; the
// answer comes through the channel.
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

// Ask is Send and the answer; what was thrown comes as an error.
func (l *Library) Ask(do string, fields Fields) (Answer, error) {
	a := <-l.Send(do, fields)
	if err := a.Err(); err != nil {
		return a, fmt.Errorf("redisson %s: %s %v: %w", l.Version, do, []any(fields), err)
	}
	return a, nil
}

func (l *Library) read(stdout io.Reader) {
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		a := Answer{}
		for pair := range strings.SplitSeq(lines.Text(), "\t") {
			k, v, _ := strings.Cut(pair, "=")
			a[k] = v
		}
		l.mu.Lock()
		answer := l.waiting[a["id"]]
		delete(l.waiting, a["id"])
		l.mu.Unlock()
		if answer != nil {
			answer <- a
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.end(errors.New("the driver ended"))
}

// end answers whoever still waits; l.mu is held.
func (l *Library) end(why error) {
	if l.ended == nil {
		l.ended = fmt.Errorf("%w; its last words: %s", why, l.stderr)
	}
	for id, answer := range l.waiting {
		answer <- Answer{"error": "driver", "message": l.ended.Error()}
		delete(l.waiting, id)
	}
}

// tail keeps the last of what is written to it.
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
