package server

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"lockstep/live"
	"lockstep/model"
	"lockstep/peers/external"
	"lockstep/sim"
)

func init() {
	live.RegisterKind(&external.Kind{
		Program: "zookeeper", Needs: []live.Needed{{Program: "java", Package: "default-jre-headless"}}, Files: map[string]string{jar: "zookeeper"},
		Is: func(s sim.Server) bool {
			_, ok := s.(*Server)
			return ok
		},
		Begin: func(o external.Options) (live.Observed, error) {
			r := &realServer{o: o, changed: make(chan struct{}, 1)}
			return r, r.begin(true)
		},
	})
}

// realServer is ZooKeeper in a live run. It implements live.Observed.
type realServer struct {
	o       external.Options
	starts  int // with an empty folder
	version string
	process *external.Process
	changed chan struct{}
	stopped chan struct{}
	polled  sync.WaitGroup
}

// patience is how long the server may take to answer the run.
const patience = 2 * time.Minute

// begin starts the program, with the data that it had or without.
func (r *realServer) begin(empty bool) error {
	java, err := exec.LookPath("java")
	if err != nil {
		return err
	}
	if empty {
		r.starts++
	}
	dir := filepath.Join(r.o.Dir, "zookeeper-"+strconv.Itoa(r.starts))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if r.process, err = launch(java, dir, r.o.Addr, int(Tick.Milliseconds()), r.o.Log, r.o.Spawn); err != nil {
		return err
	}
	answer, err := ask(r.o.Addr, "srvr", patience)
	if err != nil {
		r.process.Kill()
		return err
	}
	first, _, _ := strings.Cut(answer, "\n")
	r.version, _, _ = strings.Cut(strings.TrimPrefix(first, "Zookeeper version: "), "-")
	r.stopped = make(chan struct{})
	stopped := r.stopped
	r.polled.Go(func() { r.poll(stopped) })
	return nil
}

// pollEvery is how often the run looks whether nodes have gone by themselves.
const pollEvery = 20 * time.Millisecond

// poll tells the run when there are other nodes, until stop is closed.
func (r *realServer) poll(stop <-chan struct{}) {
	var last []string
	for {
		select {
		case <-stop:
			return
		case <-time.After(pollEvery):
		}
		view, err := r.look()
		if err != nil {
			continue // the server is stopped, or ends
		}
		if paths := slices.Sorted(maps.Keys(view)); !slices.Equal(paths, last) {
			last = paths
			select {
			case r.changed <- struct{}{}:
			default:
			}
		}
	}
}

// Addr implements live.Server.
func (r *realServer) Addr() string { return r.o.Addr }

// Version implements live.Server.
func (r *realServer) Version() string { return "zookeeper " + r.version }

// Pid implements live.Server.
func (r *realServer) Pid() int { return r.process.Cmd.Process.Pid }

// Restart implements live.Server.
func (r *realServer) Restart(keepData bool) error {
	r.end()
	return r.begin(!keepData)
}

func (r *realServer) end() {
	if r.stopped != nil {
		close(r.stopped)
		r.stopped = nil // it may not start again, and is stopped then
	}
	r.process.Kill()
	r.polled.Wait()
}

// Stop implements live.Server.
func (r *realServer) Stop() {
	r.end()
	_ = r.o.Log.Close()
}

// Settle implements live.Observed. Each request has an answer.
func (*realServer) Settle() live.Settle {
	return live.Settle{First: 500 * time.Millisecond, Quiet: 2 * time.Millisecond, Most: time.Second}
}

// AsksNothing implements live.Observed. A ping keeps a session.
func (*realServer) AsksNothing([]byte) bool { return false }

// Changed implements live.Observed.
func (r *realServer) Changed() <-chan struct{} { return r.changed }

// shownNode is an ephemeral node of a real server.
type shownNode struct {
	session int64
	left    time.Duration // until its session ends
}

// look reads the ephemeral nodes by their paths.
func (r *realServer) look() (map[string]shownNode, error) {
	text, err := ask(r.o.Addr, "dump", patience)
	if err != nil {
		return nil, err
	}
	return readDump(text, time.Now(), live.Monotonic())
}

// readDump reads the answer to the command dump: the sessions by the instants at which they end,
// and the ephemeral nodes by their sessions. wall and monotonic are the instant of the answer.
func readDump(text string, wall time.Time, monotonic int64) (map[string]shownNode, error) {
	nodes := map[string]shownNode{}
	left := map[int64]time.Duration{}
	part := 0
	var ends time.Duration
	session := int64(0)
	lines := bufio.NewScanner(strings.NewReader(text))
	for lines.Scan() {
		line := lines.Text()
		word := strings.TrimSpace(line)
		switch {
		case line == "SessionTracker dump:":
			part = 1
		case line == "ephemeral nodes dump:":
			part = 2
		case line == "Connections dump:":
			part = 3
		case part == 1 && strings.Contains(line, " expire at "):
			_, date, _ := strings.Cut(strings.TrimSuffix(line, ":"), " expire at ")
			at, err := time.Parse(time.UnixDate, date)
			if err != nil {
				return nil, fmt.Errorf("zookeeper tells of sessions that %q: %w", line, err)
			}
			ends = endOfTick(at.Sub(wall), monotonic)
		case part == 1 && strings.HasPrefix(word, "0x"):
			id, err := strconv.ParseUint(word[2:], 16, 64)
			if err != nil {
				return nil, err
			}
			left[int64(id)] = ends
		case part == 2 && strings.HasPrefix(line, "0x"):
			id, err := strconv.ParseUint(strings.TrimSuffix(word, ":")[2:], 16, 64)
			if err != nil {
				return nil, err
			}
			session = int64(id)
		case part == 2 && strings.HasPrefix(word, "/"):
			nodes[word] = shownNode{session, left[session]}
		}
	}
	return nodes, nil
}

// endOfTick returns the time until a session ends. Sessions end when the clock that all processes
// share is at a multiple of a tick. The server tells the instant in whole seconds, rounded down.
func endOfTick(told time.Duration, monotonic int64) time.Duration {
	tick := int64(Tick)
	about := monotonic + int64(told) + int64(time.Second)/2
	return time.Duration((about+tick/2)/tick*tick - monotonic)
}

// Look implements live.Observed.
func (r *realServer) Look([]string) ([]any, error) {
	view, err := r.look()
	if err != nil {
		return nil, err
	}
	return []any{view}, nil
}

// Show implements live.Observed.
func (*realServer) Show(of sim.Server, view any, nowNs int64) {
	of.(*Server).shown = func(path string) (list []Node) {
		nodes := view.(map[string]shownNode)
		for _, p := range slices.Sorted(maps.Keys(nodes)) {
			if filepath.Dir(p) == path {
				list = append(list, Node{Path: p, Owner: nodes[p].session, Ends: time.Duration(nowNs) + nodes[p].left})
			}
		}
		return list
	}
}

// Strike implements live.Observed. The lock has ephemeral nodes.
func (r *realServer) Strike(f model.FaultSpec) error {
	view, err := r.look()
	if err != nil {
		return err
	}
	c, _, err := zk.Connect([]string{r.o.Addr}, patience, zk.WithLogInfo(false))
	if err != nil {
		return err
	}
	defer c.Close()
	for _, path := range slices.Sorted(maps.Keys(view)) {
		if sim.Match(f.Key, path) || sim.Match("/"+f.Key, path) {
			if e := c.Delete(path, anyVersion); !errors.Is(e, zk.ErrNoNode) {
				err = errors.Join(err, e)
			}
		}
	}
	return err
}

// Left implements live.Observed. It knows ephemeral nodes.
func (r *realServer) Left() ([]string, error) {
	view, err := r.look()
	return slices.Collect(maps.Keys(view)), err
}
