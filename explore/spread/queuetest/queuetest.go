// Package queuetest has a queue in memory, which loses and repeats what a test tells it to, and a
// test of what every queue must do.
package queuetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"lockstep/explore/spread"
)

// Engine is an engine in the memory of this process.
type Engine struct {
	// Wait is the time after which a task comes again whose worker says nothing; 0: 5 s.
	Wait time.Duration
	// Fail is asked before each call of a queue, by the name of the method. What it returns is
	// the error of the call; nil: no call fails.
	Fail func(method string) error
	// Lose reports whether the next thing that a queue has accepted by a method is lost; nil:
	// nothing is.
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
	until time.Time // taken until then; zero: by nobody
	more  int       // deliveries after the next one
}

// Start implements spread.Engine. The engine has one address, which Open does not look at.
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

// taken is a task that somebody took.
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

// Test tests an engine whose queue is empty. again is a time after which a task comes again whose
// worker says nothing, and stalls of this process are taken into account.
func Test(t *testing.T, e spread.Engine, url string, again time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	q, err := e.Open(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	other, err := e.Open(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	take := func(q spread.Queue, want string) spread.Taken {
		t.Helper()
		got, err := q.Take(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if string(got.Task()) != want {
			t.Fatalf("took %q, want %q", got.Task(), want)
		}
		return got
	}
	none := func(q spread.Queue) {
		t.Helper()
		short, end := context.WithTimeout(ctx, 100*time.Millisecond)
		defer end()
		if got, err := q.Take(short); err == nil {
			t.Fatalf("took %q, want nothing", got.Task())
		} else if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	none(q)
	must(q.Offer(ctx, "x.1", []byte("one")))
	must(other.Offer(ctx, "x.1", []byte("one"))) // is there
	must(q.Offer(ctx, "x.2", []byte("two")))
	one := take(other, "one")
	two := take(q, "two")
	must(q.Offer(ctx, "x.2", []byte("two"))) // is taken
	must(two.Done())
	none(q)
	must(one.Return())
	one = take(q, "one")
	must(one.Done())
	none(other)
	must(q.Offer(ctx, "x.1", []byte("one"))) // was done
	_ = take(other, "one")                   // and nobody works at it
	one = take(q, "one")
	for begun := time.Now(); time.Since(begun) < 2*again; time.Sleep(again / 20) {
		must(one.Working())
	}
	must(one.Done())

	if got, err := q.Kept(ctx, "x.1"); got != nil || err != nil {
		t.Fatalf("kept %q, %v; want nothing", got, err)
	}
	long := bytes.Repeat([]byte("a long result\n"), 300_000)
	must(other.Keep(ctx, "x.1", []byte("first")))
	must(other.Keep(ctx, "x.1", long))
	if got, err := q.Kept(ctx, "x.1"); !bytes.Equal(got, long) || err != nil {
		t.Fatalf("kept %d bytes, %v; want %d", len(got), err, len(long))
	}
	must(q.Drop(ctx, "x.1"))
	must(q.Drop(ctx, "x.1"))
	if got, err := other.Kept(ctx, "x.1"); got != nil || err != nil {
		t.Fatalf("kept %d bytes, %v; want nothing", len(got), err)
	}

	heard, err := q.Hear(ctx)
	must(err)
	for i := 0; ; i++ { // some may be lost
		must(other.Tell(fmt.Append(nil, "told ", i)))
		select {
		case text := <-heard:
			if !bytes.HasPrefix(text, []byte("told ")) {
				t.Fatalf("heard %q", text)
			}
		case <-time.After(100 * time.Millisecond):
			continue
		case <-ctx.Done():
			t.Fatal("nothing was heard")
		}
		break
	}
}
