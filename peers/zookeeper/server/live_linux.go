package server

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
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
			r := &realServer{}
			r.Options, r.Launch, r.Disconnect = o, r.launch, func() {}
			return r, r.Begin()
		},
	})
}

// realServer is ZooKeeper in a live run. It implements live.Observed.
type realServer struct{ external.Running }

// patience is how long the server may take to answer the run.
const patience = 2 * time.Minute

// launch starts the program, with the data that it had or without.
func (r *realServer) launch(empty bool) (*external.Process, string, error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, "", err
	}
	dir, err := r.Folder("zookeeper", empty)
	if err != nil {
		return nil, "", err
	}
	p, err := launch(java, dir, r.Addr(), int(Tick.Milliseconds()), r.Log, r.Spawn)
	if err != nil {
		return nil, "", err
	}
	answer, err := ask(r.Addr(), "srvr", patience)
	if err != nil {
		p.Kill()
		return nil, "", err
	}
	first, _, _ := strings.Cut(answer, "\n")
	version, _, _ := strings.Cut(strings.TrimPrefix(first, "Zookeeper version: "), "-")
	var last []string
	r.Poll(pollEvery, func() bool {
		view, err := r.look()
		paths := slices.Sorted(maps.Keys(view))
		if err != nil || slices.Equal(paths, last) { // after an error the server is stopped, or ends
			return false
		}
		last = paths
		return true
	})
	return p, "zookeeper " + version, nil
}

// pollEvery is how often the run looks whether nodes have gone by themselves.
const pollEvery = 20 * time.Millisecond

// Settle implements live.Observed. Each request has an answer.
func (*realServer) Settle() live.Settle {
	return live.Settle{First: 500 * time.Millisecond, Quiet: 2 * time.Millisecond, Most: time.Second}
}

// AsksNothing implements live.Observed. A ping keeps a session.
func (*realServer) AsksNothing([]byte) bool { return false }

// shownNode is an ephemeral node of a real server.
type shownNode struct {
	session int64
	left    time.Duration // until its session ends
}

// look reads the ephemeral nodes by their paths.
func (r *realServer) look() (map[string]shownNode, error) {
	text, err := ask(r.Addr(), "dump", patience)
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
				return nil, fmt.Errorf("zookeeper answers dump with the line %q: %w", line, err)
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
func (*realServer) Show(server sim.Server, view any, nowNs int64) {
	server.(*Server).shown = func(path string) (list []Node) {
		nodes := view.(map[string]shownNode)
		for _, p := range slices.Sorted(maps.Keys(nodes)) {
			if filepath.Dir(p) == path {
				list = append(list, Node{Path: p, Owner: nodes[p].session, Ends: time.Duration(nowNs) + nodes[p].left})
			}
		}
		return list
	}
}

// Strike implements live.Observed. It deletes only ephemeral nodes, such as the nodes of the locks.
func (r *realServer) Strike(f model.FaultSpec) error {
	view, err := r.look()
	if err != nil {
		return err
	}
	c, _, err := zk.Connect([]string{r.Addr()}, patience, zk.WithLogInfo(false))
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

// Left implements live.Observed. It knows only ephemeral nodes.
func (r *realServer) Left() ([]string, error) {
	view, err := r.look()
	return slices.Collect(maps.Keys(view)), err
}
