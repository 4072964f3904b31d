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
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	. "lockstep/live/upstream/gostory"
)

// zkWith returns the lock of zk.NewLock, by a session of 10 s for each client. With closing the caller closes the session
// after a Lock that failed.
func zkWith(closing bool) Library {
	return Library{
		Serve: func(t *testing.T) Server {
			p := StartProgram(t, "java", "openjdk-17-jre-headless and zookeeper", func(dir, port string) *exec.Cmd {
				config := filepath.Join(dir, "zoo.cfg")
				text := fmt.Sprintf("tickTime=2000\ndataDir=%s/data\nclientPortAddress=127.0.0.1\nclientPort=%s\nadmin.enableServer=false\n", dir, port)
				if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				return exec.Command("java", "-cp", "/usr/share/java/zookeeper.jar", "org.apache.zookeeper.server.ZooKeeperServerMain", config)
			})
			for begun := time.Now(); !zkServes(p.Addr()); time.Sleep(50 * time.Millisecond) {
				if time.Since(begun) > time.Minute {
					t.Fatal("the server is not ready; the test did not work")
				}
			}
			return p
		},
		Open: func(addrs []string) (func(name string) Lock, error) {
			begun, lost := make(chan struct{}), make(chan struct{})
			begin, lose := sync.OnceFunc(func() { close(begun) }), sync.OnceFunc(func() { close(lost) })
			c, events, err := zk.Connect(addrs, 10*time.Second, zk.WithLogger(quiet{}))
			if err != nil {
				return nil, err
			}
			go func() {
				had := false
				for e := range events {
					switch {
					case e.State == zk.StateHasSession:
						had = true
						begin()
					case e.State == zk.StateDisconnected && had:
						lose()
					}
				}
			}()
			<-begun
			return func(name string) Lock { return &node{c: c, name: name, closing: closing, lost: lost} }, nil
		},
		Protocol: zkProtocol, Places: zkPlaces, Delete: zkDelete,
	}
}

// zkServes reports whether a server serves. It accepts connections before, and a client that connects then waits for 67 s.
func zkServes(addr string) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	_, _ = io.WriteString(c, "srvr")
	text, _ := io.ReadAll(c)
	return strings.Contains(string(text), "Mode:")
}

// zkProtocol is the protocol of ZooKeeper.
var zkProtocol = Protocol{
	Request: func(in *bufio.Reader) (raw []byte, name string, err error) {
		raw, err = frame(in)
		if len(raw) < 12 {
			return raw, "", err
		}
		return raw, map[uint32]string{1: "CREATE", 2: "DELETE", 3: "EXISTS", 4: "GETDATA", 8: "GETCHILDREN", 11: Idle, 12: "GETCHILDREN2"}[binary.BigEndian.Uint32(raw[8:])], err
	},
	Reply: func(in *bufio.Reader) (raw []byte, name string, err error) {
		const event = 0xffffffff // the number of a watch event
		raw, err = frame(in)
		if len(raw) >= 8 && binary.BigEndian.Uint32(raw[4:]) == event {
			name = Push
		}
		return raw, name, err
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

type node struct {
	c       *zk.Conn
	name    string
	closing bool
	lost    chan struct{}
	lock    *zk.Lock
}

func (n *node) Lock(ctx context.Context) error {
	n.lock = zk.NewLock(n.c, "/"+n.name, zk.WorldACL(zk.PermAll))
	done := make(chan error, 1)
	go func() { done <- n.lock.Lock() }() // it takes no context
	select {
	case err := <-done:
		if err != nil && n.closing {
			n.c.Close()
		}
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

func (n *node) Lost() <-chan struct{} { return n.lost }

// zkPlaces counts the nodes of a lock.
func zkPlaces(addr, lock string) (int, error) {
	c, _, err := zk.Connect([]string{addr}, 10*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		return 0, err
	}
	defer c.Close()
	nodes, _, err := c.Children("/" + lock)
	return len(nodes), err
}

// zkDelete removes the nodes of a lock, such as those of x for the glob x/*.
func zkDelete(addr, glob string) error {
	c, _, err := zk.Connect([]string{addr}, 10*time.Second, zk.WithLogger(quiet{}))
	if err != nil {
		return err
	}
	defer c.Close()
	parent := "/" + strings.TrimSuffix(glob, "/*")
	nodes, _, err := c.Children(parent)
	for _, n := range nodes {
		if e := c.Delete(parent+"/"+n, -1); !errors.Is(e, zk.ErrNoNode) {
			err = errors.Join(err, e)
		}
	}
	return err
}

// libraryOf returns the lock of a name.
func libraryOf(lock string) Library { return zkWith(lock == "zookeeper-closing") }

var _ = libraryOf
