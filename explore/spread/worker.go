package spread

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"lockstep/explore"
)

// Beat is the time between two signs of life of a worker.
const Beat = time.Second

// Told is a message in which a worker reports its progress. No result depends on it.
type Told struct {
	Worker string `json:"worker"`
	Lock   string `json:"lock,omitempty"` // the lock of the family that the worker plays; "" while it waits for work
	Family int    `json:"family"`
	// Runs and Families count the runs and the families that the worker has played since it began.
	Runs     int `json:"runs"`
	Families int `json:"families"`
	// Kept is the name of the task whose result the worker has just kept; "" if none.
	Kept string `json:"kept,omitempty"`
	// Trouble says why the queue did not take the last result; "" if it did.
	Trouble string `json:"trouble,omitempty"`
	// Ended reports whether the worker has ended.
	Ended bool `json:"ended,omitempty"`
}

// deaths is how often a run in which the process ended is played again, since the process may have
// been killed from outside.
const deaths = 3

// Worker plays tasks of a queue, one at a time.
type Worker struct {
	Queue Queue
	Name  string // no two workers have the same name
	// Player returns a player of a plan. It must end with ctx.
	Player func(ctx context.Context, p explore.Plan) (explore.Player, error)
	// Beat is the time between two signs of life; 0 means the constant Beat.
	Beat time.Duration
	// Trouble, if not nil, is called with each error of the queue.
	Trouble func(error)

	told     Told
	families explore.Families
	campaign string // of the families
}

// Run plays tasks until ctx ends, and returns nil then. It ends earlier with a RefusedError, if it
// gets a task that this program must not play, or with a BadRunError.
func (w *Worker) Run(ctx context.Context) error {
	w.told = Told{Worker: w.Name}
	w.families = explore.Families{Stop: ctx, Again: deaths}
	defer w.families.Close()
	defer func() {
		w.told.Lock, w.told.Ended = "", true
		w.sendSign("")
	}()
	if w.Beat == 0 {
		w.Beat = Beat
	}
	w.sendSign("")
	for ctx.Err() == nil {
		waiting, end := context.WithTimeout(ctx, w.Beat)
		taken, err := w.Queue.Take(waiting)
		waited := waiting.Err() != nil
		end()
		switch {
		case ctx.Err() != nil:
			if err == nil {
				_ = taken.Return() // without it the task comes again a little later
			}
		case err == nil:
			if err := w.work(ctx, taken); err != nil {
				return err
			}
			continue
		case !waited:
			w.trouble(err)
			w.pause(ctx)
		}
		w.sendSign("")
	}
	return nil
}

// work does a task. It returns an error only if the worker must end.
func (w *Worker) work(ctx context.Context, taken Taken) error {
	t, err := readTask(taken.Task())
	var refused *RefusedError
	switch {
	case errors.As(err, &refused):
		w.trouble(taken.Return())
		return err
	case err != nil:
		w.trouble(err)
		w.trouble(taken.Done()) // no worker could play the task
		return nil
	}
	name := t.Name()
	if old, err := w.Queue.Kept(ctx, name); err == nil && old != nil {
		if _, err := readResult(t, old); err == nil { // another worker was faster
			w.trouble(taken.Done())
			w.sendSign(name)
			return nil
		}
	}
	w.told.Lock, w.told.Family = t.Plan.Lock, t.Family
	defer func() { w.told.Lock = "" }()
	beat := time.NewTicker(w.Beat)
	defer beat.Stop()
	var runs []explore.Run
	played := make(chan error, 1)
	before := w.told.Runs
	progress := make(chan int)
	if w.campaign != t.campaign() {
		w.families.Close()
		w.campaign, w.families.Plan = t.campaign(), t.Plan
		w.families.Player = func() (explore.Player, error) { return w.Player(ctx, t.Plan) }
	}
	go func() {
		played <- w.families.Play(t.Family, nil, func(r explore.Run) error {
			runs = append(runs, r)
			select {
			case progress <- len(runs):
			default: // the worker is sending a sign of life anyway
			}
			return nil
		})
	}()
	for {
		select {
		case n := <-progress:
			w.told.Runs = before + n
		case <-beat.C:
			if err := taken.Working(); err != nil && ctx.Err() == nil {
				w.trouble(err)
			}
			w.sendSign("")
		case err := <-played:
			w.told.Runs = before + len(runs)
			var bad *explore.BadRunError
			switch {
			case err == nil:
				w.told.Families++
				return w.keep(ctx, t, runs, taken)
			case ctx.Err() != nil:
				_ = taken.Return() // without it the task comes again a little later
				return nil
			case errors.As(err, &bad):
				w.trouble(taken.Return())
				return err
			}
			w.trouble(err)
			w.trouble(taken.Return())
			w.pause(ctx)
			return nil
		}
	}
}

// keep keeps the result of a task. If the queue does not take it, another worker plays the task
// again.
func (w *Worker) keep(ctx context.Context, t Task, runs []explore.Run, taken Taken) error {
	text, err := writeResult(t, runs)
	if err != nil {
		return err
	}
	if err := w.Queue.Keep(ctx, t.Name(), text); err != nil {
		if ctx.Err() == nil {
			w.trouble(err)
			w.told.Trouble = err.Error()
			w.sendSign("")
			w.pause(ctx)
		}
		_ = taken.Return() // without it the task comes again a little later
		return nil
	}
	w.told.Trouble = ""
	w.trouble(taken.Done())
	w.sendSign(t.Name())
	return nil
}

func (w *Worker) trouble(err error) {
	if err != nil && w.Trouble != nil {
		w.Trouble(err)
	}
}

// pause waits before the worker calls a queue again that has failed.
func (w *Worker) pause(ctx context.Context) {
	select {
	case <-time.After(w.Beat):
	case <-ctx.Done():
	}
}

// sendSign sends a sign of life. kept is the name of a task whose result was kept, or "".
func (w *Worker) sendSign(kept string) {
	told := w.told
	told.Kept = kept
	text, err := json.Marshal(told)
	if err == nil {
		err = w.Queue.Tell(text)
	}
	_ = err // a coordinator that hears nothing looks for the result itself
}
