package memcached_test

import (
	"context"
	"errors"
	"testing"

	"github.com/bradfitz/gomemcache/memcache"

	"lockstep/locktest"
	"lockstep/locktest/drawntest"
	"lockstep/peers/memcached/server"
)

type written struct{ *memcache.Client }

func (c written) ForLock(string) drawntest.Replacer { return c }

func (c written) Read(_ context.Context, key string) (string, uint64, error) {
	item, err := c.Get(key)
	if errors.Is(err, memcache.ErrCacheMiss) {
		return "", 0, nil
	}
	if err != nil {
		return "", 0, err
	}
	return string(item.Value), item.CasID, nil
}

func (c written) Replace(_ context.Context, key, value string, version uint64) (bool, error) {
	item := &memcache.Item{Key: key, Value: []byte(value), CasID: version}
	write := c.CompareAndSwap
	if version == 0 {
		write = c.Add
	}
	err := write(item)
	if errors.Is(err, memcache.ErrNotStored) || errors.Is(err, memcache.ErrCASConflict) || errors.Is(err, memcache.ErrCacheMiss) {
		return false, nil
	}
	return err == nil, err
}

// A hold may end at an instant of the wall clock that its value has.
func TestAHoldWhoseEndIsInAValue(t *testing.T) {
	drawntest.Written{
		Servers: server.Servers(1),
		Get: func(s locktest.Snapshot, key string) string {
			if st := server.Value(s, key); st != nil {
				return st.Owner
			}
			return ""
		},
		Open: func(p *locktest.Process) (drawntest.WrittenClient, error) {
			c := memcache.New(p.Addr(0))
			c.DialContext = p.DialContext
			return written{c}, nil
		},
	}.Ends(t)
}
