// Package zk opens the lock of go-zookeeper for the stories of package upstream.
package zk

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	. "lockstep/live/upstream/gostory"
)

// zkLock is the lock of zk.NewLock, by a session of 10 s for each client.
var zkLock = Library{
	Serve: func(t *testing.T, n int) []Server {
		s := &zkServer{t: t}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		_, s.port, _ = net.SplitHostPort(l.Addr().String())
		_ = l.Close()
		s.start(false)
		t.Cleanup(s.end)
		return []Server{s}
	},
	Open: func(addrs []string) (Client, error) {
		c := &zkClient{lost: make(chan struct{})}
		had := false
		var err error
		c.conn, _, err = zk.Connect(addrs, 10*time.Second, zk.WithLogger(quiet{}), zk.WithEventCallback(func(e zk.Event) {
			switch {
			case e.State == zk.StateHasSession:
				had = true
			case e.State == zk.StateDisconnected && had:
				had = false
				select {
				case <-c.lost:
				default:
					close(c.lost)
				}
			}
		}))
		return c, err
	},
	Split: &Split{
		Request: func(in *bufio.Reader) ([]byte, string, error) {
			raw, err := frame(in)
			if len(raw) < 12 {
				return raw, "", err
			}
			return raw, map[uint32]string{1: "CREATE", 2: "DELETE", 3: "EXISTS", 4: "GETDATA", 8: "GETCHILDREN", 11: "PING", 12: "GETCHILDREN2"}[binary.BigEndian.Uint32(raw[8:])], err
		},
		Reply: func(in *bufio.Reader) ([]byte, bool, error) {
			raw, err := frame(in)
			const event = 0xffffffff // the number of a watch event
			return raw, len(raw) < 8 || binary.BigEndian.Uint32(raw[4:]) != event, err
		},
		Idle: []string{"PING"},
	},
}

// frame reads a message of ZooKeeper's protocol.
func frame(in *bufio.Reader) ([]byte, error) {
	raw := make([]byte, 4)
	if _, err := io.ReadFull(in, raw); err != nil {
		return nil, err
	}
	raw = append(raw, make([]byte, binary.BigEndian.Uint32(raw))...)
	_, err := io.ReadFull(in, raw[4:])
	return raw, err
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

type zkClient struct {
	conn *zk.Conn
	lost chan struct{} // closed when the connection is lost
}

func (c *zkClient) Lock(name string) Lock { return &node{c: c, name: name} }

type node struct {
	c    *zkClient
	name string
	lock *zk.Lock
}

func (n *node) Lock(ctx context.Context) error {
	n.lock = zk.NewLock(n.c.conn, "/"+n.name, zk.WorldACL(zk.PermAll))
	done := make(chan error, 1)
	go func() { done <- n.lock.Lock() }() // it takes no context
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (n *node) TryLock(context.Context) error { return errors.New("the library has no single try") }

func (n *node) Unlock(context.Context) error {
	err := n.lock.Unlock()
	if errors.Is(err, zk.ErrNotLocked) || errors.Is(err, zk.ErrNoNode) {
		return ErrNotHeld
	}
	return err
}

func (n *node) Lost() <-chan struct{} { return n.c.lost }

// zkServer is the server of the package zookeeper of Debian.
type zkServer struct {
	t    *testing.T
	port string
	dir  string
	cmd  *exec.Cmd
}

func (s *zkServer) start(keepData bool) {
	if !keepData {
		s.dir = s.t.TempDir()
	}
	config := filepath.Join(s.dir, "zoo.cfg")
	text := fmt.Sprintf("tickTime=2000\ndataDir=%s/data\nclientPortAddress=127.0.0.1\nclientPort=%s\nadmin.enableServer=false\n", s.dir, s.port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.cmd = exec.Command("java", "-cp", "/usr/share/java/zookeeper.jar", "org.apache.zookeeper.server.ZooKeeperServerMain", config)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	Await(s.t, s.Addr())
}

func (s *zkServer) end() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

func (s *zkServer) Addr() string { return "127.0.0.1:" + s.port }

func (s *zkServer) Restart(keepData bool) {
	s.end()
	s.start(keepData)
}

var _ = zkLock
