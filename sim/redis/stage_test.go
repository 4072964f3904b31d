package redis

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/model"
	"lockstep/sim"
	"lockstep/sim/goredis"
)

// oneWay is the time that a message takes in a stage's network.
const oneWay = time.Millisecond

// serverConfig is the configuration of the server of a stage.
type serverConfig = Config

// stage is a world for a test: a configuration, and the bodies of the threads.
type stage struct {
	sim.Config
	serverConfig
	locks []string // whose state is recorded
	// server and world are those of the run that began last.
	server *Server
	world  *sim.World
	// client changes the options of every process's client.
	client func(*redis.Options)
	bodies map[string]body // by process/thread
	begin  func()          // runs inside the bubble before the threads do; may be nil
}

// body is the work of a thread with its process's client.
type body func(th *sim.Thread, c *redis.Client)

// newStage has processes a and b of one thread each and an exact network.
func newStage(faults ...model.FaultSpec) *stage {
	return &stage{
		Config: sim.Config{
			Chooser: sim.NewSeeded(1), LatencyMin: oneWay, LatencyMax: oneWay,
			Processes: []sim.ProcessConfig{{Name: "a", Threads: 1}, {Name: "b", Threads: 1}},
			Faults:    faults,
			Name: func(words []string, _ sim.Author) sim.Command {
				if strings.EqualFold(words[0], "incr") {
					return sim.Command{Script: "count"}
				}
				return sim.Command{}
			},
			Quiet: 30 * time.Second, Settle: time.Second, Drain: time.Second,
			MaxEvents: 100_000,
		},
		bodies: map[string]body{},
	}
}

func (s *stage) does(thread string, b body) *stage {
	s.bodies[thread] = b
	return s
}

// slot is the resolution of the world's nominal time.
const slot = 10 * time.Microsecond

// addr is the address of a stage's server.
const addr = "192.0.2.1:6379"

// nodes makes the server of the stage.
func (s *stage) nodes() []sim.Node {
	s.server = New(s.serverConfig)
	return []sim.Node{{Addr: addr, Server: s.server, Locks: s.locks}}
}

// run plays the stage.
func (s *stage) run(h *sim.Host) sim.Result {
	s.Nodes = s.nodes()
	return sim.Run(h, s.Config, func(w *sim.World) {
		s.world = w
		if s.begin != nil {
			s.begin()
		}
		for _, pc := range s.Processes {
			p := w.Process(pc.Name)
			opt := goredis.Options(p, addr)
			if s.client != nil {
				s.client(opt)
			}
			c := goredis.NewClient(p, opt)
			p.OnClose(func() { _ = c.Close() })
			for _, th := range p.Threads() {
				th.Start(func() {
					if b := s.bodies[th.Name()]; b != nil {
						b(th, c)
					}
				})
			}
		}
	})
}

// dial opens a bare connection to the server.
func dial(th *sim.Thread) (net.Conn, error) {
	return th.Process().DialContext(context.Background(), "tcp", addr)
}

// operate performs f as an operation of th, and returns its error.
func operate(th *sim.Thread, f func(context.Context) error) (err error) {
	th.Call(sim.Operation{Action: model.ActLock, Lock: "x"}, func(ctx context.Context) (model.Outcome, error) {
		if err = f(ctx); err != nil {
			return model.Failed, err
		}
		return model.Granted, nil
	})
	return err
}

// clock returns the time since the start, rounded to a tenth of a millisecond, since the world
// separates the instants of its events by less.
func clock(*sim.Thread) time.Duration {
	return time.Since(time.UnixMilli(sim.EpochMs)).Round(100 * time.Microsecond)
}

// at returns the time of an event, rounded like clock.
func at(e model.Event) time.Duration { return time.Duration(e.AtNs).Round(100 * time.Microsecond) }

// pick returns the events of r that match.
func pick(r sim.Result, match func(e model.Event) bool) []model.Event {
	var found []model.Event
	for _, e := range r.Record.Events {
		if match(e) {
			found = append(found, e)
		}
	}
	return found
}

func ofKind(kind model.Kind) func(model.Event) bool {
	return func(e model.Event) bool { return e.Kind == kind }
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
