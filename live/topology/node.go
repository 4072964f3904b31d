//go:build linux

package topology

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"lockstep/lockimpl/redisserver"
)

// Options are the settings of a topology.
type Options struct {
	// Path is the program redis-server.
	Path string
	// Dir is a folder that exists. Each server works in a folder of its own below it, and writes
	// its log there.
	Dir string
	// Start starts the process of a server. It makes sure that the process does not outlive this
	// one.
	Start func(*exec.Cmd) error
}

// patience is how long servers may take until they are ready. It only keeps a caller from waiting
// for ever.
const patience = time.Minute

// Node is a Redis server that other servers know.
type Node struct {
	Name string

	o     Options
	dir   string
	addr  string
	front *Front
	args  []string // the arguments of every start
	log   io.WriteCloser
	cmd   *exec.Cmd
	over  <-chan struct{}
	rdb   *redis.Client
}

// Failing has the functions that are called at the steps of a failover. Each may be nil.
type Failing struct {
	Killed func() // the old master has ended
	// Promoted is called when the new master takes writes. lacks is the number of bytes of
	// replication that it lacks.
	Promoted func(n *Node, lacks int64)
}

func (f Failing) killed() {
	if f.Killed != nil {
		f.Killed()
	}
}

func (f Failing) promoted(n *Node, lacks int64) {
	if f.Promoted != nil {
		f.Promoted(n, lacks)
	}
}

// errEnded says that a server ended before it served.
var errEnded = errors.New("it ended before it served")

// startNode starts a server that works in the folder Dir/name, at a free port. args returns the
// arguments of the program for the front of the server.
func startNode(o Options, name string, args func(f *Front) []string) (*Node, error) {
	n := &Node{Name: name, o: o, dir: filepath.Join(o.Dir, name)}
	if err := os.Mkdir(n.dir, 0o777); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(n.dir, "redis-server.log"))
	if err != nil {
		return nil, err
	}
	n.log = log
	for range 3 { // another program may take the port before the server does
		if n.addr, err = redisserver.FreeAddr(); err != nil {
			break
		}
		if n.front, err = newFront(n.addr); err != nil {
			break
		}
		n.args = args(n.front)
		if err = n.Launch(); err == nil {
			return n, nil
		}
		n.front.close()
		n.front = nil
		_ = os.Remove(filepath.Join(n.dir, "nodes.conf"))
	}
	n.Stop()
	return nil, err
}

// Addr is the address of the server itself.
func (n *Node) Addr() string { return n.addr }

// Announced is the address by which the other servers know the server, and which they tell clients.
func (n *Node) Announced() string { return n.front.Addr() }

// Pid is the process of the server. It changes with each Launch.
func (n *Node) Pid() int { return n.cmd.Process.Pid }

// Launch starts the program at the address of the server. args follow the arguments of each start.
func (n *Node) Launch(args ...string) (err error) {
	n.cmd, n.over, err = redisserver.Launch(n.o.Path, n.dir, n.addr, n.log, n.o.Start, append(append([]string{"--dbfilename", dumpName}, n.args...), args...)...)
	if err == nil && n.cmd == nil {
		err = errEnded
	}
	if err != nil {
		n.cmd = nil
		return fmt.Errorf("%s at %s: %w", n.o.Path, n.addr, err)
	}
	n.front.join()
	n.rdb = newClient(n.addr)
	return nil
}

// newClient returns a client that sends each command once.
func newClient(addr string) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: addr, PoolSize: 1, MaxRetries: -1, Protocol: 2, DisableIdentity: true,
		ReadTimeout: patience, WriteTimeout: patience, DialTimeout: 5 * time.Second,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

const dumpName = "dump.rdb"

// Alive reports whether the process of the server is running.
func (n *Node) Alive() bool { return n.cmd != nil }

// Kill ends the process of the server. What is under way to other servers is lost, as if the
// machine of the server had died.
func (n *Node) Kill() {
	if n.cmd == nil {
		return
	}
	n.front.cut()
	_ = n.rdb.Close()
	_ = n.cmd.Process.Kill() // SIGKILL also ends a process that is stopped
	<-n.over
	n.cmd = nil
}

// Forget removes the data that the server has saved. Call it after Kill.
func (n *Node) Forget() error {
	if err := os.Remove(filepath.Join(n.dir, dumpName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Stop ends the server for good.
func (n *Node) Stop() {
	n.Kill()
	if n.front != nil {
		n.front.close()
	}
	_ = n.log.Close()
}

// do sends a command to the server.
func (n *Node) do(ctx context.Context, words ...any) *redis.Cmd { return n.rdb.Do(ctx, words...) }

// order sends a command to the server. Its error has the name of the server.
func (n *Node) order(ctx context.Context, words ...any) error {
	if err := n.do(ctx, words...).Err(); err != nil {
		return fmt.Errorf("%s: %s: %w", n.Name, strings.TrimSpace(fmt.Sprintln(words...)), err)
	}
	return nil
}

// info returns the fields of a section of INFO.
func (n *Node) info(ctx context.Context, section string) (map[string]string, error) {
	text, err := n.do(ctx, "INFO", section).Text()
	if err != nil {
		return nil, fmt.Errorf("%s: INFO: %w", n.Name, err)
	}
	return fieldsOf(text), nil
}

// fieldsOf reads lines of the form NAME:VALUE.
func fieldsOf(text string) map[string]string {
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			fields[name] = value
		}
	}
	return fields
}

// number reads a number of INFO. A text that is not a number counts as -1.
func number(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return -1
	}
	return n
}

// await asks ready again and again until nothing is missing, for at most patience. The error says what
// the last check found.
func await(caller context.Context, ready func(context.Context) (missing string, err error)) error {
	ctx, cancel := context.WithTimeout(caller, patience)
	defer cancel()
	missing := "no server answered"
	for {
		now, err := ready(ctx)
		switch {
		case err == nil && now == "":
			return nil
		case ctx.Err() != nil:
		case err != nil:
			missing = err.Error()
		default:
			missing = now
		}
		select {
		case <-ctx.Done():
			if err := caller.Err(); err != nil {
				return err
			}
			return fmt.Errorf("the Redis servers did not become ready within %v; the last check found this: %s", patience, missing)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
