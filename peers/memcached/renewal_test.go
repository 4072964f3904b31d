package memcached_test

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"lockstep/locktest"
	"lockstep/locktest/drawntest"
	"lockstep/peers/memcached/server"
)

const (
	lease  = 8 * time.Second
	relies = lease - 1100*time.Millisecond // an item ends up to a second before its expiry
)

// renewed is an item that its holder renews: it reads the item, and stores it again.
type renewed struct {
	*memcache.Client
	*drawntest.Renewals
	name, value string
	touches     bool // it does not compare the number of the item when it prolongs it
}

func (l *renewed) Lock(ctx context.Context) error {
	for {
		sent, value := time.Now(), rand.Text()
		err := l.Add(&memcache.Item{Key: l.name, Value: []byte(value), Expiration: int32(lease / time.Second)})
		if err == nil {
			l.value = value
			l.Renewals = drawntest.Renew(lease/4, relies, sent, func(time.Time) bool { return l.renew(value) })
			return nil
		}
		if !errors.Is(err, memcache.ErrNotStored) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (l *renewed) renew(value string) bool {
	item, err := l.Get(l.name)
	switch {
	case err != nil || string(item.Value) != value:
		return false
	case l.touches:
		return l.Touch(l.name, int32(lease/time.Second)) == nil
	}
	item.Expiration = int32(lease / time.Second)
	return l.CompareAndSwap(item) == nil
}

func (l *renewed) Unlock(context.Context) error {
	if l.value == "" {
		return locktest.ErrNotHeld
	}
	l.End()
	value := l.value
	l.value = ""
	item, err := l.Get(l.name)
	if err == nil && string(item.Value) != value || errors.Is(err, memcache.ErrCacheMiss) {
		return locktest.ErrNotHeld
	}
	if err == nil {
		item.Expiration = -1
		err = l.CompareAndSwap(item)
	}
	return err
}

type renewing struct {
	*memcache.Client
	touches bool
	all     *[]*renewed
}

func (c renewing) Lock(name string) (locktest.Lock, error) {
	l := &renewed{Client: c.Client, name: name, touches: c.touches}
	*c.all = append(*c.all, l)
	return l, nil
}

func (c renewing) Close() error {
	for _, l := range *c.all {
		l.End()
	}
	return c.Client.Close()
}

// A renewal that compares, and then prolongs in another request, may prolong the hold of another by some ticks.
func TestARenewalInTwoRequests(t *testing.T) {
	for _, touches := range []bool{false, true} {
		broken := drawntest.Broken(t, locktest.Subject{
			Name: map[bool]string{false: "compares", true: "touches"}[touches], Servers: server.Servers(1), Lease: lease, Renewed: true, State: server.Value,
			Open: func(p *locktest.Process) (locktest.Client, error) {
				c := memcache.New(p.Addr(0))
				c.DialContext = p.DialContext
				return renewing{c, touches, &[]*renewed{}}, nil
			},
		})
		if !touches && broken != nil {
			t.Errorf("a lock that compares the number breaks %q", broken)
		}
		if found := slices.ContainsFunc(broken, func(b string) bool { return strings.HasSuffix(b, " misdelete") }); found != touches {
			t.Errorf("a lock that touches: %t, breaks %q", touches, broken)
		}
	}
}
