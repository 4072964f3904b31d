package scenarios

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl"
	"lockstep/lockimpl/planted"
)

// PlantedPrefix begins the name of a lock with a planted bug. FindLock knows
// these locks; Locks does not, since nobody is to choose one by chance.
const PlantedPrefix = "planted/"

// PlantedBug is a row of the table of lockimpl/planted.
type PlantedBug = planted.Bug

// PlantedBugs is that table.
func PlantedBugs() []*PlantedBug { return planted.Bugs }

// planting is the bug in a lock that is wrong on purpose; a nil *planting
// changes nothing.
type planting struct {
	bug     *planted.Bug
	base    *Lock
	texts   map[string]string // the base's scripts, with what they are for
	instead map[string]string // what takes the place of some of them
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
	l := *base
	l.Name, l.About = PlantedPrefix+b.Name, b.What
	p := &planting{bug: b, base: base, texts: map[string]string{}}
	for _, text := range base.scripts() {
		p.texts[text] = base.commands[text].Script
	}
	if b.Edit != nil {
		var err error
		if p.instead, err = b.Edit.Apply(p.texts); err != nil {
			return nil, fmt.Errorf("planted bug %s: %w", b.Name, err)
		}
	}
	l.commands = maps.Clone(base.commands)
	for was, is := range p.instead {
		l.commands[is], l.commands[planted.SHA(is)] = base.commands[was], base.commands[was]
	}
	if b.Release != nil {
		rel := *base.rel
		b.Release(&rel)
		l.rel = &rel
	}
	l.planted = p
	return &l, nil
}

// Unplanted is the lock in which the bug of l is planted; l itself where there
// is none.
func (l *Lock) Unplanted() *Lock {
	if l.planted == nil {
		return l
	}
	return l.planted.base
}

// promises is the name of the lock whose promises this one makes.
func (l *Lock) promises() string { return l.Unplanted().Name }

// scripts are the texts that are sent, whichever of them is.
func (p *planting) scripts() []string {
	texts := slices.Collect(maps.Keys(p.texts))
	return slices.Sorted(slices.Values(append(texts, slices.Collect(maps.Values(p.instead))...)))
}

func (p *planting) server(rdb redis.UniversalClient) redis.UniversalClient {
	if p == nil {
		return rdb
	}
	return p.bug.Server(rdb, p.texts, p.instead)
}

func (p *planting) client(c lockimpl.Client) lockimpl.Client {
	if p == nil {
		return c
	}
	return plantedClient{c, p.bug}
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
