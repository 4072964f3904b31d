package scenarios

import (
	"fmt"
	"maps"
	"sync"

	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl"
	"lockstep/lockimpl/planted"
	"lockstep/model"
	"lockstep/sim"
)

// PlantedPrefix begins the name of a lock with a planted bug. FindLock knows
// these locks; Locks does not, since nobody is to choose one by chance.
const PlantedPrefix = "planted/"

// PlantedBug is a row of the table of lockimpl/planted.
type PlantedBug = planted.Bug

// PlantedBugs is that table.
func PlantedBugs() []*PlantedBug { return planted.Bugs }

// plantedKind is a lock that is wrong on purpose: another, with a bug.
type plantedKind struct {
	kind
	bug     *planted.Bug
	base    *Lock
	instead map[string]string // what takes the place of some of the base's scripts
}

// through stands between a lock and the server; nil: nothing does.
type through func(redis.UniversalClient) redis.UniversalClient

func (t through) on(rdb redis.UniversalClient) redis.UniversalClient {
	if t == nil {
		return rdb
	}
	return t(rdb)
}

// plantedLocks are the locks with a planted bug, by name.
var plantedLocks = sync.OnceValue(func() map[string]*Lock {
	all := map[string]*Lock{}
	for _, b := range planted.Bugs {
		l, err := plant(b)
		if err != nil {
			panic("scenarios: " + err.Error())
		}
		all[l.Name] = l
	}
	return all
})

// plant gives the lock in which a bug is planted.
func plant(b *planted.Bug) (*Lock, error) {
	base := registered(b.Base)
	if base == nil {
		return nil, fmt.Errorf("planted bug %s: unknown lock %q", b.Name, b.Base)
	}
	k := plantedKind{bug: b, base: base}
	texts := base.kind.scripts()
	if b.Edit != nil {
		var err error
		if k.instead, err = b.Edit.Apply(texts); err != nil {
			return nil, fmt.Errorf("planted bug %s: %w", b.Name, err)
		}
	}
	l := *base
	l.Name, l.About = PlantedPrefix+b.Name, b.What
	server := func(rdb redis.UniversalClient) redis.UniversalClient { return b.Server(rdb, texts, k.instead) }
	switch of := base.kind.(type) {
	case redissonKind:
		of.through = server
		if b.Release != nil {
			rel := *base.rel
			b.Release(&rel)
			of.rel, l.rel = &rel, &rel
			l.timing = func(watchdog Duration) model.Timing { return redissonTiming(&rel, watchdog) }
		}
		k.kind = of
	case referenceKind:
		of.through = server
		k.kind = of
	default:
		return nil, fmt.Errorf("planted bug %s: nothing can stand between %s and the server", b.Name, base.Name)
	}
	l.kind = k
	l.readScripts()
	return &l, nil
}

// Unplanted is the lock in which the bug of l is planted; l itself where there
// is none.
func (l *Lock) Unplanted() *Lock {
	if k, ok := l.kind.(plantedKind); ok {
		return k.base
	}
	return l
}

// scripts are the texts that are sent, whichever of them is.
func (k plantedKind) scripts() map[string]string {
	texts := maps.Clone(k.kind.scripts())
	for was, is := range k.instead {
		texts[is] = texts[was]
	}
	return texts
}

func (k plantedKind) client(p *sim.Process, sc *Scenario, opt ClientOptions) lockimpl.Client {
	return plantedClient{k.kind.client(p, sc, opt), k.bug}
}

// plantedClient makes the locks of another client, with a bug.
type plantedClient struct {
	lockimpl.Client
	bug *planted.Bug
}

// GetLock implements lockimpl.Client.
func (c plantedClient) GetLock(name string) (lockimpl.Lock, error) {
	l, err := c.Client.GetLock(name)
	if err != nil {
		return nil, err
	}
	return c.bug.Lock(l), nil
}
