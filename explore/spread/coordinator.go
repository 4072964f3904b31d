package spread

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"lockstep/explore"
)

// The times of a coordinator.
const (
	// LookAgain is the time after which a coordinator looks for a result without having heard that
	// there is one. If there is none, it offers the task again.
	LookAgain = 5 * time.Second
	// Silent is the time after which a worker that gives no sign of life counts as gone.
	Silent = 5 * Beat
)

// Coordinator lets the workers of a queue play families of campaigns. Make it with NewCoordinator.
type Coordinator struct {
	queue     Queue
	lookAgain time.Duration
	patience  time.Duration

	mu      sync.Mutex
	waiting map[string]chan struct{} // by task: whoever waits for its result
	workers map[string]seen          // by name
	now     func() time.Time
	// trouble is the last error that a worker reported because the queue took no result, and "" if
	// there was none after the last result. since is the time of the first such report.
	trouble string
	since   time.Time
}

// seen is the last message of a worker.
type seen struct {
	Told
	at time.Time
}

// A QueueError says that a queue failed.
type QueueError struct{ Err error }

func (e *QueueError) Error() string { return fmt.Sprintf("the queue failed: %v", e.Err) }
func (e *QueueError) Unwrap() error { return e.Err }

// NewCoordinator returns a coordinator, which hears the workers until ctx ends. It gives up when
// the queue has failed for as long as patience. now is the clock that decides whether a silent
// worker is gone; it may jump.
func NewCoordinator(ctx context.Context, q Queue, patience time.Duration, now func() time.Time) (*Coordinator, error) {
	c := &Coordinator{queue: q, lookAgain: LookAgain, patience: patience, waiting: map[string]chan struct{}{}, workers: map[string]seen{}, now: now}
	texts, err := q.Hear(ctx)
	if err != nil {
		return nil, &QueueError{err}
	}
	go func() {
		for text := range texts {
			var told Told
			if json.Unmarshal(text, &told) == nil {
				c.hear(told)
			}
		}
	}()
	return c, nil
}

func (c *Coordinator) hear(told Told) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if told.Ended {
		delete(c.workers, told.Worker)
	} else {
		c.workers[told.Worker] = seen{told, c.now()}
	}
	if told.Trouble != "" {
		if c.trouble == "" {
			c.since = time.Now()
		}
		c.trouble = told.Trouble
	}
	if w := c.waiting[told.Kept]; w != nil {
		select {
		case w <- struct{}{}:
		default: // it is about to look anyway
		}
	}
}

// Workers returns the last message of each worker that is not gone, in the order of their names.
func (c *Coordinator) Workers() (all []Told) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	for name, s := range c.workers {
		if silent := now.Sub(s.at); silent > Silent || silent < 0 {
			delete(c.workers, name) // a worker that still works will come back with its next sign of life
			continue
		}
		all = append(all, s.Told)
	}
	slices.SortFunc(all, func(a, b Told) int { return strings.Compare(a.Worker, b.Worker) })
	return all
}

// Family returns a function for explore.Campaign that lets the workers play a family of a plan. The
// function returns the error of ctx when ctx has ended, and a QueueError when the queue fails.
func (c *Coordinator) Family(ctx context.Context, p explore.Plan) func(number int, before []explore.Run, each func(explore.Run) error) error {
	return func(number int, before []explore.Run, each func(explore.Run) error) error {
		if from, to := p.Family(number); len(before) == to-from {
			return nil
		}
		t := Task{Plan: p, Versions: p.Versions(), Family: number}
		runs, err := c.result(ctx, t)
		if err != nil {
			return err
		}
		for _, r := range runs[len(before):] {
			if err := each(r); err != nil {
				return err
			}
		}
		_ = c.queue.Drop(ctx, t.Name()) // a result that is not dropped does no harm
		return nil
	}
}

// result waits for the result of a task.
func (c *Coordinator) result(ctx context.Context, t Task) ([]explore.Run, error) {
	task, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	name := t.Name()
	kept := make(chan struct{}, 1)
	c.mu.Lock()
	c.waiting[name] = kept
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.waiting, name)
	}()
	fails := time.Now() // when the queue began to fail
	for {
		runs, err := c.look(ctx, t, name, task)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case runs != nil:
			c.mu.Lock()
			c.trouble = ""
			c.mu.Unlock()
			return runs, nil
		case err == nil:
			fails = time.Now()
			if err := c.refuses(); err != nil {
				return nil, err
			}
		case time.Since(fails) >= c.patience:
			return nil, &QueueError{err}
		}
		select {
		case <-kept:
		case <-time.After(c.lookAgain):
		case <-ctx.Done():
		}
	}
}

// look returns the runs of a task if the queue has its result. If it has none, or one that is
// broken, look offers the task.
func (c *Coordinator) look(ctx context.Context, t Task, name string, task []byte) ([]explore.Run, error) {
	text, err := c.queue.Kept(ctx, name)
	if err != nil {
		return nil, err
	}
	if text != nil {
		if runs, err := readResult(t, text); err == nil {
			return runs, nil
		}
		if err := c.queue.Drop(ctx, name); err != nil {
			return nil, err
		}
	}
	return nil, c.queue.Offer(ctx, name, task)
}

// refuses returns an error if the queue has taken no result for too long.
func (c *Coordinator) refuses() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.trouble != "" && time.Since(c.since) >= c.patience {
		return &QueueError{fmt.Errorf("it takes no results: %s", c.trouble)}
	}
	return nil
}
