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
	name, value      string
	touches          bool // it does not compare the number of the item when it prolongs it
	stop, over, lost chan struct{}
}

func (l *renewed) Lock(ctx context.Context) error {
	for {
		sent, value := time.Now(), rand.Text()
		err := l.Add(&memcache.Item{Key: l.name, Value: []byte(value), Expiration: int32(lease / time.Second)})
		if err == nil {
			l.value, l.stop, l.over, l.lost = value, make(chan struct{}), make(chan struct{}), make(chan struct{})
			go l.renew(value, sent.Add(relies))
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

func (l *renewed) renew(value string, until time.Time) {
	defer close(l.over)
	for {
		select {
		case <-l.stop:
			return
		case <-time.After(min(lease/4, time.Until(until))):
		}
		sent := time.Now()
		if !sent.Before(until) {
			close(l.lost)
			return
		}
		item, err := l.Get(l.name)
		switch {
		case err != nil || string(item.Value) != value:
			continue
		case l.touches:
			err = l.Touch(l.name, int32(lease/time.Second))
		default:
			item.Expiration = int32(lease / time.Second)
			err = l.CompareAndSwap(item)
		}
		if err == nil {
			until = sent.Add(relies)
		}
	}
}

func (l *renewed) Lost() <-chan struct{} { return l.lost }

func (l *renewed) end() {
	if l.stop == nil {
		return
	}
	close(l.stop)
	<-l.over
	l.stop = nil
}

func (l *renewed) Unlock(context.Context) error {
	if l.value == "" {
		return locktest.ErrNotHeld
	}
	l.end()
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
		l.end()
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
