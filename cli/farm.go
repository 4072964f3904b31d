package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockstep/cli/frame"
	"lockstep/explore"
	"lockstep/explore/spread"
	"lockstep/explore/strategy"
	"lockstep/internal/foreign"
	"lockstep/internal/quantity"
	"lockstep/sim"
)

// The folders in the folder of a farm.
const (
	farmCampaign = "campaign" // the same files as explore --out writes
	farmQueue    = "queue"    // the data of the queue, if this program keeps it
)

// QueueFlags are the options of a farm that say where and how it plays.
type QueueFlags struct {
	Dir, queue, listen string
	Workers, Ahead     int
	Limit, patience    time.Duration
}

// Declare declares the options.
func (o *QueueFlags) Declare(f *pflag.FlagSet) {
	f.StringVar(&o.Dir, "dir", "", "the folder `DIR` of the farm")
	f.StringVar(&o.queue, "queue", "", "the `URL` of a queue that runs; default: farm starts one")
	f.StringVar(&o.listen, "listen", "127.0.0.1:0", "the `HOST:PORT` at which the own queue listens for workers on other machines")
	frame.WorkersFlag(f, &o.Workers, quantity.Workers)
	frame.Whole(f, &o.Ahead, "ahead", 32, quantity.Ahead, "families in the queue at a time: at least two per worker")
	frame.Duration(f, &o.Limit, "time", "end after this time; failures are made as small as it allows")
	o.patience = time.Minute
	frame.Duration(f, &o.patience, "patience", "end when the queue has failed for this time")
}

// farmFlags are the options of simrun farm.
type farmFlags struct {
	QueueFlags
	plan   explore.Plan
	words  planWords
	asJSON bool
}

// farmCommands returns the command farm, if the program has an engine.
func farmCommands(a *frame.App) []*cobra.Command {
	if a.Farm == nil {
		return nil
	}
	o := farmFlags{plan: explore.Plan{World: sim.Version}}
	c := a.Command(frame.Guide{
		Use: "farm --lock LOCK --dir DIR", OptionsOnly: true, Short: "play a campaign on many machines, through a queue",
		Long: "Farm plays a campaign of drawn runs as explore does, with the same options. It plays no exhaustive search. Its families of runs go to workers through a queue. The workers are in this process, and on any machine on which farm work was started. " +
			"DIR/" + farmCampaign + " becomes the folder that explore --out writes, to the byte. A worker may be killed at any moment. The same command goes on after the coordinator was killed.\n" +
			"Without --queue it starts a queue of its own, which keeps its data in DIR/" + farmQueue + " until everything is played.",
		Examples: []string{
			"farm --lock setnx-cad --faults all --runs 20000 --dir DIR", "farm --lock setnx-cad --faults all --runs 20000 --dir DIR --listen 10.0.0.1:4222",
			"farm work --queue nats://10.0.0.1:4222",
		},
	}, func(in frame.Invocation) (int, error) { return playFarm(a, o) })
	f := c.Flags()
	drawnFlags(f, &o.plan, &o.words)
	frame.OneOf(f, &o.plan.Strategy, "strategy", explore.DefaultStrategy, strategy.Names, "how the runs are chosen, see explore --help: plain, told or tapct")
	o.Declare(f)
	frame.MovedFlag(f, "standing", "go run ./cmd/evidence standing FILE --dir DIR")
	frame.JSONFlag(f, &o.asJSON, "the result as JSON Lines")
	a.QuietFlag(f, "only the totals and the bugs")
	c.AddCommand(farmWorkCommand(a))
	return []*cobra.Command{c}
}

func playFarm(a *frame.App, o farmFlags) (int, error) {
	p, c := o.plan, &explore.Campaign{Of: 1, Jobs: o.Ahead, Dir: o.Dir}
	if o.Dir == "" {
		return 0, frame.Usagef("farm: --dir is missing, the folder of the farm")
	}
	if err := planned(&p, c, o.words, ""); err != nil {
		return 0, frame.Usage(fmt.Errorf("farm: %w", err))
	}
	c.Plan, c.Dir = p, filepath.Join(o.Dir, farmCampaign)
	if err := c.Fits(); err != nil {
		return 0, frame.Usage(fmt.Errorf("farm: %w", err))
	}
	_, absent := os.Stat(o.Dir)
	release, err := FarmFolder(a, o.Dir)
	if err != nil {
		return 0, frame.Usage(fmt.Errorf("farm: %w", err))
	}
	defer release()
	_, err = os.Stat(c.Dir)
	begins := errors.Is(err, fs.ErrNotExist)
	if begins {
		if err := removeQueue(o.Dir); err != nil {
			return 0, err
		}
	}
	// A queue beside a campaign belongs to the farm, so the campaign comes first.
	releaseCampaign, err := a.FolderOf("--dir", c.Dir)
	if err != nil {
		return 0, frame.Usage(fmt.Errorf("farm: %w", err))
	}
	defer releaseCampaign()
	if err := c.Claim(); err != nil {
		return 0, err
	}
	page := NewFarmPage(o.Dir, p.Lock, nil)
	writing, end := context.WithCancel(context.Background())
	wait := func() {}
	code, err := playCampaign(a, campaigning{
		Campaign: c, out: c.Dir, limit: o.Limit, jobs: max(o.Workers, 1), asJSON: o.asJSON, cleanup: func() {}, watch: page.Row(p, farmCampaign),
		begin: func(playing context.Context, fail func(error)) (func(bool), error) {
			q, err := OpenFarm(a, playing, o.QueueFlags, fail)
			if err != nil {
				return nil, err
			}
			c.Family = q.Coordinator.Family(playing, p)
			page.Workers = q.Coordinator.Workers
			wait = page.Keep(writing, fail)
			return q.Close, nil
		},
	})
	end()
	wait()
	if err == nil {
		err = page.End()
	} else if _, refused := errors.AsType[frame.UsageError](err); refused && begins && c.Disclaim() == nil && absent != nil {
		_ = os.Remove(o.Dir)
	}
	return code, err
}

// OpenedFarm is a queue with a coordinator and the workers of this process.
type OpenedFarm struct {
	Coordinator *spread.Coordinator
	// Close ends the workers and the queue. If everything was played, it also removes the data of a
	// queue that this process started.
	Close func(complete bool)
}

// OpenFarm opens the queue of a farm and starts workers, which end with ctx. If a worker cannot go
// on, it calls fail with the reason.
func OpenFarm(a *frame.App, ctx context.Context, o QueueFlags, fail func(error)) (OpenedFarm, error) {
	url, stop := o.queue, func() {}
	if url == "" {
		var err error
		if url, stop, err = startQueue(ctx, filepath.Join(o.Dir, farmQueue), o.listen, fail); err != nil {
			return OpenedFarm{}, err
		}
		a.Say("the queue is at %s; more workers: %s farm work --queue %s", url, frame.Simrun(), url)
	}
	q, err := a.Farm.Open(ctx, url)
	if err != nil {
		stop()
		if refused := queueRefused(err); refused != nil {
			return OpenedFarm{}, refused
		}
		return OpenedFarm{}, &spread.QueueError{Err: err}
	}
	hearing, deaf := context.WithCancel(ctx)
	coordinator, err := spread.NewCoordinator(hearing, q, o.patience, time.Now)
	if err != nil {
		deaf()
		q.Close()
		stop()
		return OpenedFarm{}, err
	}
	working, end := context.WithCancel(ctx)
	wait := startWorkers(a, working, q, o.Workers, fail)
	return OpenedFarm{coordinator, func(complete bool) {
		end()
		wait()
		deaf()
		q.Close()
		stop()
		if complete && o.queue == "" {
			_ = os.RemoveAll(filepath.Join(o.Dir, farmQueue)) // it is no longer needed
		}
	}}, nil
}

// startWorkers starts workers of a queue, which end with ctx. If a worker cannot go on, it calls fail
// with the reason.
func startWorkers(a *frame.App, ctx context.Context, q spread.Queue, n int, fail func(error)) (wait func()) {
	host, err := os.Hostname()
	if err != nil {
		host = "somewhere"
	}
	var all sync.WaitGroup
	var mu sync.Mutex
	last := "" // do not repeat the same message
	for i := range n {
		w := &spread.Worker{
			Queue: q, Name: fmt.Sprintf("%s, process %d, worker %d", host, os.Getpid(), i+1),
			Player: func(ctx context.Context, p explore.Plan) (explore.Player, error) { return Player(ctx, p) },
			Trouble: func(err error) {
				mu.Lock()
				defer mu.Unlock()
				if text := err.Error(); text != last {
					last = text
					a.Warn("a worker has trouble with the queue: %s", text)
				}
			},
		}
		all.Go(func() {
			if err := w.Run(ctx); err != nil {
				var refused *spread.RefusedError
				if errors.As(err, &refused) {
					err = frame.Usage(fmt.Errorf("farm: %w", err))
				}
				fail(err)
			}
		})
	}
	return all.Wait
}

func farmWorkCommand(a *frame.App) *cobra.Command {
	url, workers := "", 0
	c := a.Command(frame.Guide{
		Use: "work --queue URL", OptionsOnly: true, Short: "play for a farm on another machine",
		Long:     "Work plays what a farm has in its queue, until it is interrupted. It may be started before the farm, and outlives it. It refuses work of another version of the program.",
		Examples: []string{"farm work --queue nats://10.0.0.1:4222"},
	}, func(in frame.Invocation) (int, error) { return farmWork(a, url, workers) })
	f := c.Flags()
	f.StringVar(&url, "queue", "", "the `URL` of the queue")
	frame.WorkersFlag(f, &workers, quantity.Jobs)
	return c
}

// knock is the time after which a worker looks again for a queue that does not exist yet.
const knock = time.Second

// queueRefused returns the error of a call that named a queue which will never open, or nil.
func queueRefused(err error) error {
	if _, ok := errors.AsType[*spread.RefusedError](err); ok {
		return frame.Usagef("--queue: %v", err)
	}
	return nil
}

func farmWork(a *frame.App, url string, workers int) (int, error) {
	if url == "" {
		return 0, frame.Usagef("farm work: --queue is missing, the URL of the queue")
	}
	stop, release := a.Interruptible()
	defer release()
	ctx, fail := context.WithCancelCause(stop)
	defer fail(nil)
	var q spread.Queue
	for said := ""; q == nil; {
		var err error
		if q, err = a.Farm.Open(ctx, url); err == nil {
			break
		}
		if refused := queueRefused(err); refused != nil {
			return 0, refused
		}
		if text := err.Error(); text != said && ctx.Err() == nil {
			said = text
			a.Warn("waiting for the queue: %s", text)
		}
		select {
		case <-time.After(knock):
		case <-ctx.Done():
			return frame.ExitOK, nil
		}
	}
	defer q.Close()
	a.Say("%d workers play what is in the queue at %s; interrupt this command to end them", workers, foreign.URLs(url))
	startWorkers(a, ctx, q, workers, fail)()
	if why := context.Cause(ctx); !errors.Is(why, ctx.Err()) {
		return 0, why
	}
	return frame.ExitOK, nil
}
