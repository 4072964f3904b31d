// Package queuetest has a queue in memory that loses and repeats messages as a test tells it to.
// Its function Check tests whether a queue does what every queue must do.
package queuetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"lockstep/explore/spread"
)

// Engine is an engine in the memory of this process.
type Engine struct {
	// Wait is the time after which Take returns a task again whose worker gives no sign of life; 0
	// means 5 s.
	Wait time.Duration
	// Fail, if not nil, is called before each call of a queue, with the name of the method. The call
	// fails with the error that Fail returns.
	Fail func(method string) error
	// Lose, if not nil, is called when a method of a queue has accepted something. It reports
	// whether the queue then loses it.
	Lose func(method string) bool
	// Twice delivers each task twice.
	Twice bool

	mu      sync.Mutex
	tasks   []*task
	results map[string][]byte
	hearers map[chan []byte]bool
	changed chan struct{} // closed when tasks changes
}

type task struct {
	name  string
	text  []byte
	until time.Time // the task is taken until then; zero if nobody has it
	more  int       // how often it is delivered after the next time
}

// Start implements spread.Engine. The engine has one address, and Open ignores its argument.
func (e *Engine) Start(string, string) (string, func(), error) { return "memory", func() {}, nil }

// Open implements spread.Engine.
func (e *Engine) Open(context.Context, string) (spread.Queue, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.results == nil {
		e.results, e.hearers, e.changed = map[string][]byte{}, map[chan []byte]bool{}, make(chan struct{})
	}
	return queue{e}, nil
}

type queue struct{ *Engine }

func (q queue) fails(method string) error {
	if q.Fail == nil {
		return nil
	}
	return q.Fail(method)
}

func (q queue) loses(method string) bool { return q.Lose != nil && q.Lose(method) }

// change wakes whoever waits for a task. The caller has the mutex.
func (q queue) change() {
	close(q.changed)
	q.changed = make(chan struct{})
}

func (q queue) Offer(_ context.Context, name string, text []byte) error {
	if err := q.fails("Offer"); err != nil || q.loses("Offer") {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, t := range q.tasks {
		if t.name == name {
			return nil
		}
	}
	t := &task{name: name, text: bytes.Clone(text)}
	if q.Twice {
		t.more = 1
	}
	q.tasks = append(q.tasks, t)
	q.change()
	return nil
}

func (q queue) Take(ctx context.Context) (spread.Taken, error) {
	if err := q.fails("Take"); err != nil {
		return nil, err
	}
	wait := q.Wait
	if wait == 0 {
		wait = 5 * time.Second
	}
	for {
		q.mu.Lock()
		changed := q.changed
		now := time.Now()
		for _, t := range q.tasks {
			switch {
			case t.until.IsZero() || now.After(t.until):
				t.until = now.Add(wait)
			case t.more > 0:
				t.more--
			default:
				continue
			}
			q.mu.Unlock()
			return &taken{q, t, wait}, nil
		}
		q.mu.Unlock()
		select {
		case <-changed:
		case <-time.After(wait / 4):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (q queue) Keep(_ context.Context, name string, result []byte) error {
	if err := q.fails("Keep"); err != nil || q.loses("Keep") {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.results[name] = bytes.Clone(result)
	return nil
}

func (q queue) Kept(_ context.Context, name string) ([]byte, error) {
	if err := q.fails("Kept"); err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.results[name], nil
}

func (q queue) Drop(_ context.Context, name string) error {
	if err := q.fails("Drop"); err != nil {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.results, name)
	return nil
}

func (q queue) Tell(text []byte) error {
	if err := q.fails("Tell"); err != nil || q.loses("Tell") {
		return err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for h := range q.hearers {
		select {
		case h <- bytes.Clone(text):
		default: // it does not listen
		}
	}
	return nil
}

func (q queue) Hear(ctx context.Context) (<-chan []byte, error) {
	if err := q.fails("Hear"); err != nil {
		return nil, err
	}
	h := make(chan []byte, 100)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.hearers[h] = true
	context.AfterFunc(ctx, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		delete(q.hearers, h)
		close(h)
	})
	return h, nil
}

func (q queue) Close() {}

// taken is a task that a worker took.
type taken struct {
	queue
	*task
	wait time.Duration
}

func (t *taken) Task() []byte { return t.text }

func (t *taken) Working() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.until = time.Now().Add(t.wait)
	return t.fails("Working")
}

func (t *taken) Done() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, other := range t.tasks {
		if other == t.task {
			t.tasks = append(t.tasks[:i:i], t.tasks[i+1:]...)
			break
		}
	}
	return t.fails("Done")
}

func (t *taken) Return() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.until = time.Time{}
	t.change()
	return t.fails("Return")
}

// Check looks whether an engine does what every queue must do. Its queue must be empty. again is
// the time after which Take returns a task again whose worker gives no sign of life. A process that
// stalls for that long may fail the check, so a test calls Check through realtime.Case.
func Check(ctx context.Context, e spread.Engine, url string, again time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	q, err := e.Open(ctx, url)
	if err != nil {
		return err
	}
	defer q.Close()
	other, err := e.Open(ctx, url)
	if err != nil {
		return err
	}
	defer other.Close()
	here, there := steps{ctx, q}, steps{ctx, other}
	var one, two spread.Taken
	long := bytes.Repeat([]byte("a long result\n"), 300_000)
	for i, step := range []func() error{
		here.none(),
		here.offer("x.1", "one"),
		there.offer("x.1", "one"), // the queue has it already
		here.offer("x.2", "two"),
		there.take("one", &one),
		here.take("two", &two),
		here.offer("x.2", "two"), // a worker has it
		func() error { return two.Done() },
		here.none(),
		func() error { return one.Return() },
		here.take("one", &one),
		func() error { return one.Done() },
		there.none(),
		here.offer("x.1", "one"), // it was done, so it is a new task
		there.take("one", &two),
		here.take("one", &one), // the first worker gave no sign of life
		func() error {
			for begun := time.Now(); time.Since(begun) < 2*again; time.Sleep(again / 20) {
				if err := one.Working(); err != nil {
					return err
				}
			}
			return nil
		},
		there.none(),
		func() error { return one.Done() },

		here.kept(nil),
		func() error { return other.Keep(ctx, "x.1", []byte("first")) },
		func() error { return other.Keep(ctx, "x.1", long) },
		here.kept(long),
		func() error { return q.Drop(ctx, "x.1") },
		func() error { return q.Drop(ctx, "x.1") },
		there.kept(nil),

		func() error { return heard(ctx, q, other) },
	} {
		if err := step(); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return nil
}

// steps makes the steps of Check on a queue.
type steps struct {
	ctx context.Context
	q   spread.Queue
}

func (s steps) offer(name, task string) func() error {
	return func() error { return s.q.Offer(s.ctx, name, []byte(task)) }
}

func (s steps) take(want string, to *spread.Taken) func() error {
	return func() (err error) {
		if *to, err = s.q.Take(s.ctx); err == nil && string((*to).Task()) != want {
			err = fmt.Errorf("took %q, want %q", (*to).Task(), want)
		}
		return err
	}
}

// none finds no task.
func (s steps) none() func() error {
	return func() error {
		short, end := context.WithTimeout(s.ctx, 100*time.Millisecond)
		defer end()
		got, err := s.q.Take(short)
		switch {
		case err == nil:
			return fmt.Errorf("took %q, want nothing", got.Task())
		case !errors.Is(err, context.DeadlineExceeded):
			return err
		}
		return nil
	}
}

func (s steps) kept(want []byte) func() error {
	return func() error {
		got, err := s.q.Kept(s.ctx, "x.1")
		if err == nil && (!bytes.Equal(got, want) || (got == nil) != (want == nil)) {
			err = fmt.Errorf("kept %d bytes, want %d", len(got), len(want))
		}
		return err
	}
}

// heard checks that a queue hears what another one tells. Some may be lost.
func heard(ctx context.Context, q, other spread.Queue) error {
	texts, err := q.Hear(ctx)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		if err := other.Tell(fmt.Append(nil, "told ", i)); err != nil {
			return err
		}
		select {
		case text := <-texts:
			if !bytes.HasPrefix(text, []byte("told ")) {
				return fmt.Errorf("heard %q", text)
			}
			return nil
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return errors.New("nothing was heard")
		}
	}
}
