package server

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"

	"lockstep/internal/longtest"
	"lockstep/sim"
)

// listen lets the server of the world serve connections outside any world, in real time. It returns
// its address.
func listen(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	s, start := New(), time.Now()
	s.Start(sim.Setup{Start: start})
	var mu sync.Mutex // the server has no mutex of its own
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				o, b := &ours{s: s}, make([]byte, 64<<10)
				for !o.closed {
					n, err := c.Read(b)
					if err != nil {
						return
					}
					mu.Lock()
					answer := o.send(int64(time.Since(start)), string(b[:n]))
					mu.Unlock()
					if _, err := c.Write([]byte(answer)); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

// user is a program that uses gomemcache.
type user struct {
	*memcache.Client
	items map[string]*memcache.Item // as the user read them last, with their ids
}

func newUser(addr string) *user {
	c := memcache.New(addr)
	c.Timeout = 10 * time.Second
	return &user{c, map[string]*memcache.Item{}}
}

// saying writes an item and an error that the client returned.
func saying(it *memcache.Item, err error) string {
	if it == nil {
		return fmt.Sprint(err)
	}
	return fmt.Sprintf("%q flags %d id %d, %v", it.Value, it.Flags, it.CasID, err)
}

// do makes a call of the client and writes its result.
func (u *user) do(call, key, value string, flags uint32, expiration int32, by uint64) string {
	it := &memcache.Item{Key: key, Value: []byte(value), Flags: flags, Expiration: expiration}
	switch call {
	case "get":
		got, err := u.Get(key)
		if err == nil {
			u.items[key] = got
		}
		return saying(got, err)
	case "get-and-touch":
		got, err := u.GetAndTouch(key, expiration)
		return saying(got, err)
	case "get-multi":
		got, err := u.GetMulti([]string{"a", "b", "c", key})
		text := fmt.Sprint(len(got), err)
		for _, k := range []string{"a", "b", "c", key} {
			text += " " + k + ": " + saying(got[k], nil)
		}
		return text
	case "set":
		return saying(nil, u.Set(it))
	case "add":
		return saying(nil, u.Add(it))
	case "replace":
		return saying(nil, u.Replace(it))
	case "append":
		return saying(nil, u.Append(it))
	case "prepend":
		return saying(nil, u.Prepend(it))
	case "cas":
		old := u.items[key]
		if old == nil {
			return "nothing was read"
		}
		changed := *old
		changed.Value, changed.Expiration = []byte(value), expiration
		return saying(nil, u.CompareAndSwap(&changed))
	case "delete":
		return saying(nil, u.Delete(key))
	case "touch":
		return saying(nil, u.Touch(key, expiration))
	case "increment":
		n, err := u.Increment(key, by)
		return fmt.Sprint(n, err)
	case "decrement":
		n, err := u.Decrement(key, by)
		return fmt.Sprint(n, err)
	case "flush":
		return saying(nil, u.FlushAll())
	}
	return saying(nil, u.Ping())
}

// For drawn sequences of calls by two users, the client of the locks returns the same on both
// servers. The calls use the ids of the items that the users read.
func TestGomemcacheIsToldTheSame(t *testing.T) {
	calls := []string{
		"get", "get", "get", "get-and-touch", "get-multi", "set", "set", "add", "add", "add", "replace", "append", "prepend",
		"cas", "cas", "cas", "delete", "delete", "touch", "increment", "decrement", "flush", "ping",
	}
	there, here := memcached(t), listen(t)
	n := 0
	sequences := longtest.Size(t, 1000, 5000)
	var real, world [2]*user
	for i := range real {
		real[i], world[i] = newUser(there), newUser(here)
	}
	for sequence := range sequences {
		r := rand.New(rand.NewPCG(uint64(sequence), 2))
		one := func(of ...string) string { return of[r.IntN(len(of))] }
		var log []string
		for _, u := range append(real[:], world[:]...) {
			clear(u.items)
		}
		for range 5 + r.IntN(25) {
			i, call := r.IntN(2), one(calls...)
			key := one("a", "b", "c", "lock", "lock", strings.Repeat("k", 249+r.IntN(3)), "a key")
			// No sequence counts to 2^63: from there on memcached looks for a minus sign after the
			// number, even in memory that an earlier item left behind.
			value := one("", "owner-1", "owner-2", "7", "9223372036854775000", "two\r\nlines")
			flags, expiration, by := uint32(r.IntN(3)), []int32{0, 0, 1000, -1}[r.IntN(4)], uint64(r.IntN(20))
			want := real[i].do(call, key, value, flags, expiration, by)
			got := world[i].do(call, key, value, flags, expiration, by)
			n++
			log = append(log, fmt.Sprintf("%d: %s %.20q %q %d %d %d\n   memcached %s\n   here      %s", i, call, key, value, flags, expiration, by, want, got))
			if got != want {
				t.Fatalf("sequence %d:\n%s", sequence, strings.Join(log, "\n"))
			}
		}
	}
	t.Logf("%d sequences, %d calls", sequences, n)
}
