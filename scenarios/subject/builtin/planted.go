package builtin

import (
	"fmt"

	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl"
	"lockstep/lockimpl/planted"
	"lockstep/model"
	"lockstep/scenarios/subject"
	"lockstep/scenarios/subject/onredis"
	"lockstep/sim"
)

// through puts a layer between a lock and the server. A nil through adds no layer.
type through func(redis.UniversalClient) redis.UniversalClient

func (t through) on(rdb redis.UniversalClient) redis.UniversalClient {
	if t == nil {
		return rdb
	}
	return t(rdb)
}

// plant returns the lock in which a bug is planted.
func plant(b *planted.Bug) (*subject.Subject, error) {
	base, err := subject.Find(b.Base)
	if err != nil {
		return nil, fmt.Errorf("planted bug %s: %w", b.Name, err)
	}
	l := originals[base.Name]
	if l == nil {
		return nil, fmt.Errorf("planted bug %s: nothing can stand between %s and the server", b.Name, base.Name)
	}
	texts := map[string]string{}
	for text, role := range scriptsOf(base) {
		texts[text] = string(role)
	}
	var instead map[string]string // the changed texts, by the texts of the base's scripts
	if b.Edit != nil {
		if instead, err = b.Edit.Apply(texts); err != nil {
			return nil, fmt.Errorf("planted bug %s: %w", b.Name, err)
		}
	}
	if of, ok := l.(redissonLock); ok && b.Release != nil {
		l = of.withChange(b.Release)
	}
	s := l.behind(func(rdb redis.UniversalClient) redis.UniversalClient { return b.Server(rdb, texts, instead) }).subject()
	s.Name, s.About = subject.PlantedPrefix+b.Name, b.What
	s.Planted = &subject.PlantedBug{Name: b.Name, Base: b.Base, What: b.What, Judge: b.Judge, Faults: b.Faults, Profile: b.Profile, Runs: b.Runs, Seed: b.Seed}
	s.Base, s.Unlisted, s.Control, s.Handles = base, true, false, ""
	for was, is := range instead {
		scriptsOf(s)[is] = model.Role(texts[was]) // both texts have the role, since either may be sent
	}
	open := s.Open
	s.Open = func(p *sim.Process, o subject.Options) (lockimpl.Client, error) {
		c, err := open(p, o)
		if err != nil {
			return nil, err
		}
		return plantedClient{c, b}, nil
	}
	return s, nil
}

// A plantedClient plants a bug in the locks of another client.
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

// scriptsOf returns the scripts of a lock of this package, each with its role.
func scriptsOf(s *subject.Subject) map[string]model.Role {
	return s.Servers.(*onredis.Protocol).Scripts
}
