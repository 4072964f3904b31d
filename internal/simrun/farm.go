package simrun

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

	"lockstep/explore"
	"lockstep/explore/spread"
	"lockstep/explore/strategy"
	"lockstep/sim"
)

// engine spreads the campaigns of the command farm; nil: the program has no such command.
var engine spread.Engine

// RegisterFarm gives the program the command farm. It panics if the program has it.
func RegisterFarm(e spread.Engine) {
	if engine != nil {
		panic("simrun: a second engine for the command farm")
	}
	engine = e
}

// The folders in the folder of a farm.
const (
	farmCampaign = "campaign" // the same files as explore --out writes
	farmQueue    = "queue"    // the data of the queue, if this program keeps it
)

// farmFlags are the options of simrun farm.
type farmFlags struct {
	plan               explore.Plan
	words              planWords
	standing           string
	dir, queue, listen string
	workers, ahead     int
	limit, patience    time.Duration
	asJSON             bool
}

// farmCommands returns the command farm, if the program has an engine.
func (a *app) farmCommands() []*cobra.Command {
	if engine == nil {
		return nil
	}
	o := farmFlags{plan: explore.Plan{World: sim.Version}}
	c := a.command(guide{
		use: "farm --lock LOCK --dir DIR", optionsOnly: true, short: "play a campaign on many machines, through a queue",
		long: "Farm plays a campaign of drawn runs as explore does, with the same options. It plays no exhaustive search. Its families of runs go to workers through a queue. The workers are in this process, and on any machine on which farm work was started. " +
			"DIR/" + farmCampaign + " becomes the folder that explore --out writes, to the byte. A worker may be killed at any moment. The same command goes on after the coordinator was killed.\n" +
			"Without --queue it starts a queue of its own, which keeps its data in DIR/" + farmQueue + " until everything is played.",
		examples: []string{
			"farm --lock setnx-cad --faults all --runs 20000 --dir DIR", "farm --lock setnx-cad --faults all --runs 20000 --dir DIR --listen 10.0.0.1:4222",
			"farm work --queue nats://10.0.0.1:4222",
		},
	}, func(in invocation) (int, error) { return a.farm(o, in.given) })
	f := c.Flags()
	drawnFlags(f, &o.plan, &o.words)
	oneOf(f, &o.plan.Strategy, "strategy", explore.DefaultStrategy, strategy.Names, "how the runs are chosen, see explore --help: plain, told, aimed or tapct")
	f.StringVar(&o.dir, "dir", "", "the folder `DIR` of the farm")
	f.StringVar(&o.standing, "standing", "", "in place of a plan: the `FILE` of campaigns that are played in turn until somebody stops them")
	f.StringVar(&o.queue, "queue", "", "the `URL` of a queue that runs; default: farm starts one")
	f.StringVar(&o.listen, "listen", "127.0.0.1:0", "the `HOST:PORT` at which the own queue listens for workers on other machines")
	workersFlag(f, &o.workers, 0)
	whole(f, &o.ahead, "ahead", 32, bounds{1, 1 << 16}, "families in the queue at a time: at least two per worker")
	f.Var(length{&o.limit}, "time", "end after this time; failures are made as small as it allows")
	o.patience = time.Minute
	f.Var(length{&o.patience}, "patience", "end when the queue has failed for this time")
	jsonFlag(f, &o.asJSON, "the result as JSON Lines")
	a.quietFlag(f, "only the totals and the bugs")
	c.AddCommand(a.farmWorkCommand())
	return []*cobra.Command{c}
}

func (a *app) farm(o farmFlags, given *pflag.FlagSet) (int, error) {
	p, c := o.plan, &explore.Campaign{Of: 1, Jobs: o.ahead, Dir: o.dir}
	if o.standing != "" && o.dir != "" {
		return a.standing(o, given)
	}
	if o.dir == "" {
		return 0, usagef("farm: --dir is missing, the folder of the farm")
	}
	if err := planned(&p, c, o.words, ""); err != nil {
		return 0, usageError{fmt.Errorf("farm: %w", err)}
	}
	c.Plan, c.Dir = p, filepath.Join(o.dir, farmCampaign)
	if err := c.Fits(); err != nil {
		return 0, usageError{fmt.Errorf("farm: %w", err)}
	}
	release, err := a.farmFolder(o.dir)
	if err != nil {
		return 0, usageError{fmt.Errorf("farm: %w", err)}
	}
	defer release()
	if _, err := os.Stat(c.Dir); errors.Is(err, fs.ErrNotExist) {
		if err := removeQueue(o.dir); err != nil {
			return 0, err
		}
	}
	page := &farmPage{dir: o.dir, title: farmTitle + p.Lock, now: time.Now}
	writing, end := context.WithCancel(context.Background())
	wait := func() {}
	code, err := a.campaign(campaigning{
		Campaign: c, out: c.Dir, limit: o.limit, jobs: max(o.workers, 1), asJSON: o.asJSON, cleanup: func() {}, watch: page.row(p, farmCampaign),
		begin: func(playing context.Context, fail func(error)) (func(bool), error) {
			q, err := a.openFarm(playing, o, fail)
			if err != nil {
				return nil, err
			}
			c.Family = q.coordinator.Family(playing, p)
			page.workers = q.coordinator.Workers
			wait = page.keep(writing, fail)
			return q.close, nil
		},
	})
	end()
	wait()
	if err == nil {
		err = page.end()
	}
	return code, err
}

// openedFarm is a queue with a coordinator and the workers of this process.
type openedFarm struct {
	coordinator *spread.Coordinator
	// close ends the workers and the queue. If everything was played, it also removes the data of a
	// queue that this process started.
	close func(complete bool)
}

// openFarm opens the queue of a farm and starts workers, which end with ctx. If a worker cannot go
// on, it calls fail with the reason.
func (a *app) openFarm(ctx context.Context, o farmFlags, fail func(error)) (openedFarm, error) {
	url, stop := o.queue, func() {}
	if url == "" {
		var err error
		if url, stop, err = startQueue(ctx, filepath.Join(o.dir, farmQueue), o.listen, fail); err != nil {
			return openedFarm{}, err
		}
		a.say("the queue is at %s; more workers: %s farm work --queue %s", url, program(), url)
	}
	q, err := engine.Open(ctx, url)
	if err != nil {
		stop()
		return openedFarm{}, &spread.QueueError{Err: err}
	}
	hearing, deaf := context.WithCancel(ctx)
	coordinator, err := spread.NewCoordinator(hearing, q, o.patience, time.Now)
	if err != nil {
		deaf()
		q.Close()
		stop()
		return openedFarm{}, err
	}
	working, end := context.WithCancel(ctx)
	wait := a.workers(working, q, o.workers, fail)
	return openedFarm{coordinator, func(complete bool) {
		end()
		wait()
		deaf()
		q.Close()
		stop()
		if complete && o.queue == "" {
			_ = os.RemoveAll(filepath.Join(o.dir, farmQueue)) // it is no longer needed
		}
	}}, nil
}

// workers starts workers of a queue, which end with ctx. If a worker cannot go on, it calls fail
// with the reason.
func (a *app) workers(ctx context.Context, q spread.Queue, n int, fail func(error)) (wait func()) {
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
			Player: func(ctx context.Context, p explore.Plan) (explore.Player, error) { return player(ctx, p) },
			Trouble: func(err error) {
				mu.Lock()
				defer mu.Unlock()
				if text := err.Error(); text != last {
					last = text
					a.say("simrun: a worker has trouble with the queue: %s", text)
				}
			},
		}
		all.Go(func() {
			if err := w.Run(ctx); err != nil {
				var refused *spread.RefusedError
				if errors.As(err, &refused) {
					err = usageError{fmt.Errorf("farm: %w", err)}
				}
				fail(err)
			}
		})
	}
	return all.Wait
}

func (a *app) farmWorkCommand() *cobra.Command {
	url, workers := "", 0
	c := a.command(guide{
		use: "work --queue URL", optionsOnly: true, short: "play for a farm on another machine",
		long:     "Work plays what a farm has in its queue, until it is interrupted. It may be started before the farm, and outlives it. It refuses work of another version of the program.",
		examples: []string{"farm work --queue nats://10.0.0.1:4222"},
	}, func(in invocation) (int, error) { return a.farmWork(url, workers) })
	f := c.Flags()
	f.StringVar(&url, "queue", "", "the `URL` of the queue")
	workersFlag(f, &workers, 1)
	return c
}

// knock is the time after which a worker looks again for a queue that does not exist yet.
const knock = time.Second

func (a *app) farmWork(url string, workers int) (int, error) {
	if url == "" {
		return 0, usagef("farm work: --queue is missing, the URL of the queue")
	}
	stop, release := a.interruptible()
	defer release()
	ctx, fail := context.WithCancelCause(stop)
	defer fail(nil)
	var q spread.Queue
	for said := ""; q == nil; {
		var err error
		if q, err = engine.Open(ctx, url); err == nil {
			break
		}
		if text := err.Error(); text != said && ctx.Err() == nil {
			said = text
			a.say("simrun: waiting for the queue: %s", text)
		}
		select {
		case <-time.After(knock):
		case <-ctx.Done():
			return exitOK, nil
		}
	}
	defer q.Close()
	a.say("%d workers play what is in the queue at %s; interrupt this command to end them", workers, url)
	a.workers(ctx, q, workers, fail)()
	if why := context.Cause(ctx); !errors.Is(why, ctx.Err()) {
		return 0, why
	}
	return exitOK, nil
}
