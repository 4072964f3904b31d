package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"time"

	"lockstep/explore"
	"lockstep/explore/draw"
	"lockstep/sim"
)

// A chase asks another process, a hunter, for a hunt. A hunter plays the hunts of one lock only: the goroutines of
// some clients, such as go-zookeeper, never end and keep their worlds in memory. If one process played the hunts of
// all locks, the garbage collector would spend time on these worlds in each later hunt.
type chase struct {
	Lock     string        `json:"lock"`
	Judge    string        `json:"judge,omitempty"` // that finds the planted bug of the lock; "": the hunt is for Bugs
	Bugs     []explore.Bug `json:"bugs,omitempty"`
	Strategy string        `json:"strategy"`
	Seed     uint64        `json:"seed"`
	Limit    time.Duration `json:"limit_ns"` // of processors
}

// chaseOf returns the hunt of bugs of one lock. If one of them is planted, it is the only one.
func chaseOf(bugs []quarry, strategy string, seed uint64, limit time.Duration) chase {
	c := chase{Lock: bugs[0].lock, Strategy: strategy, Seed: seed, Limit: limit}
	for _, q := range bugs {
		if q.planted != nil {
			c.Judge = q.planted.Judge
			return c
		}
		c.Bugs = append(c.Bugs, q.bug)
	}
	return c
}

func (c chase) plan() explore.Plan {
	return explore.Plan{World: sim.Version, Lock: c.Lock, Faults: draw.Classes, Profile: draw.Full, Strategy: c.Strategy, Depth: 3, Seed: c.Seed, Runs: huntRuns}
}

// hunt looks for the bugs in this process. It returns how the hunt of each ended.
func (c chase) hunt(h *sim.Host) ([]huntEnd, error) {
	ends := make([]huntEnd, max(len(c.Bugs), 1))
	for i := range ends {
		ends[i].Used = c.Limit
	}
	begun := processorTime()
	met := func(i, runs int) { ends[i] = huntEnd{processorTime() - begun, runs} }
	expired := func() bool { return processorTime()-begun > c.Limit }
	if c.Judge != "" {
		k, err := explore.Hunt(h, c.plan(), c.Judge, expired)
		if err == nil && k.Runs > 0 {
			met(0, k.Runs)
		}
		return ends, err
	}
	return ends, explore.Seek(h, c.plan(), c.Bugs, met, expired)
}

// warm plays a run of the lock, so that no hunt counts what only the first run of a process costs.
func (c chase) warm(h *sim.Host) error {
	p := c.plan()
	p.Strategy, p.Runs = explore.StrategyPlain, 1
	player, err := explore.Here(h, p)
	if err != nil {
		return err
	}
	defer player.Close()
	return player.Family(0, nil, func(explore.Run) error { return nil })
}

// ServeHunts implements Benchmarks.
func (b *bench) ServeHunts(in io.Reader, out io.Writer) error {
	chases, answers := json.NewDecoder(in), json.NewEncoder(out)
	for first := true; ; first = false {
		var c chase
		if err := chases.Decode(&c); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if first {
			if err := c.warm(b.Host); err != nil {
				return err
			}
		}
		ends, err := c.hunt(b.Host)
		if err != nil {
			return err
		}
		if err := answers.Encode(ends); err != nil {
			return err
		}
	}
}

// hunter is a process that plays hunts of one lock.
type hunter struct {
	lock    string
	process *exec.Cmd
	in      io.Closer
	asks    *json.Encoder
	answers *json.Decoder
	stderr  bytes.Buffer
}

func startHunter(process *exec.Cmd, lock string) (*hunter, error) {
	x := &hunter{lock: lock, process: process}
	in, err := process.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := process.StdoutPipe()
	if err != nil {
		return nil, err
	}
	process.Stderr = &x.stderr
	x.in, x.asks, x.answers = in, json.NewEncoder(in), json.NewDecoder(out)
	return x, process.Start()
}

func (x *hunter) hunt(c chase) (ends []huntEnd, err error) {
	if err = x.asks.Encode(c); err == nil {
		err = x.answers.Decode(&ends)
	}
	if err != nil {
		return nil, fmt.Errorf("a process that hunts: %w", errors.Join(err, x.end()))
	}
	return ends, nil
}

// end ends the process. Its error has what the process wrote about one.
func (x *hunter) end() error {
	_ = x.in.Close()
	if err := x.process.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, x.stderr.String())
	}
	return nil
}

// huntAway plays a hunt in the process of its lock, which it starts if the hunt before was of another lock.
func (b *bench) huntAway(bugs []quarry, strategy string, seed uint64, limit time.Duration) ([]huntEnd, error) {
	c := chaseOf(bugs, strategy, seed, limit)
	if b.hunter == nil || b.hunter.lock != c.Lock {
		if err := b.endHunter(); err != nil {
			return nil, err
		}
		x, err := startHunter(b.Hunter(), c.Lock)
		if err != nil {
			return nil, err
		}
		b.hunter = x
	}
	ends, err := b.hunter.hunt(c)
	if err != nil {
		b.hunter = nil
	}
	return ends, err
}

// endHunter ends the process that hunts, if there is one.
func (b *bench) endHunter() error {
	x := b.hunter
	if b.hunter = nil; x == nil {
		return nil
	}
	return x.end()
}
