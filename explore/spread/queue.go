package spread

import "context"

// An Engine is a program that provides queues.
type Engine interface {
	// Start starts the engine on this machine. It keeps its data in the folder dir; stop does not
	// remove it. It listens at an address of the form HOST:PORT, where port 0 means any free port.
	// Start returns the url to pass to Open.
	Start(dir, listen string) (url string, stop func(), err error)
	// Open connects to an engine. The error says what to do if there is none. It is a RefusedError
	// if the url or its user is wrong. It has no password of the url.
	Open(ctx context.Context, url string) (Queue, error)
}

// A Queue carries tasks to workers and results back. Its methods may be called at the same time.
// Names are letters, digits and dots.
type Queue interface {
	// Offer puts a task into the queue. It does nothing if the queue has a task of this name
	// that is not done.
	Offer(ctx context.Context, name string, task []byte) error
	// Take waits for a task, and returns the error of ctx when that has ended. Take returns a task
	// again if the worker that took it stops giving signs of life before it is done.
	Take(ctx context.Context) (Taken, error)
	// Keep keeps the result of a task, in place of an earlier one.
	Keep(ctx context.Context, name string, result []byte) error
	// Kept returns the result of a task, or nil if there is none.
	Kept(ctx context.Context, name string) ([]byte, error)
	// Drop removes the result of a task, if there is one.
	Drop(ctx context.Context, name string) error
	// Tell sends a text to everybody who called Hear before.
	Tell(text []byte) error
	// Hear returns the texts that are told from now on, until ctx ends. Some may be lost.
	Hear(ctx context.Context) (<-chan []byte, error)
	// Close ends the connection.
	Close()
}

// Taken is a task in the hands of a worker.
type Taken interface {
	Task() []byte
	// Working says that the worker still works at the task. The worker calls it every Beat.
	Working() error
	// Done says that the result of the task is kept, or that the task needs none.
	Done() error
	// Return gives the task to another worker.
	Return() error
}
