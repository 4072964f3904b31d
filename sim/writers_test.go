package sim

import (
	"slices"
	"strings"
	"testing"
)

// A user who asks why two runs differ needs the functions of the lock, whatever path this module
// has.
func TestWritersAreOfOtherPackages(t *testing.T) {
	outer := func(f func()) { f() }
	outer(func() {
		outer(func() {
			if list := writers(); len(list) != 0 {
				t.Errorf("functions of this package and of the standard library are named: %v", list)
			}
		})
	})
}

// The code of the lock's author is named, and not the client library or the world around it.
func TestTheWritersOfTheMainModule(t *testing.T) {
	all := []string{
		"github.com/redis/go-redis/v9.(*baseClient)._process", here + "/goredis.noteHook.ProcessHook.func1",
		"example.com/shop/lock.(*Mutex).renew", "example.com/shopping.Other", "example.com/shop.Run",
	}
	for _, c := range []struct {
		module string
		want   []string
	}{
		{"example.com/shop", []string{"example.com/shop/lock.(*Mutex).renew", "example.com/shop.Run"}},
		{"example.org/none", nil},
		{"", nil},
	} {
		if got := ownWriters(all, c.module); !slices.Equal(got, c.want) {
			t.Errorf("module %q: %q, want %q", c.module, got, c.want)
		}
	}
	if got := ownWriters([]string{here + ".Run"}, here); got != nil {
		t.Errorf("the world itself: %q", got)
	}
}

// The lines of a lock are shown, and neither those of the client library, of the world, nor of the packages that play a run.
func TestTheSitesOfALock(t *testing.T) {
	at := func(function string) Site { return Site{Function: function} }
	module := strings.TrimSuffix(here, "/sim")
	modules := []string{"example.com/shop", "example.com/mutex", "example.com/client", "example.com/client/v9", module}
	client := []Site{at("example.com/client/v9/pool.Write"), at("example.com/client/v9.(*Client).process"), at(here + "/goredis.hook")}
	play := []Site{at(module + "/locktest.client.Lock"), at(module + "/scenarios/play.Run")}
	for name, c := range map[string]struct{ stack, want []Site }{
		"a lock in the program, with its helper":    {[]Site{at("example.com/shop.release"), at("example.com/shop.Lock.Unlock")}, []Site{at("example.com/shop.release"), at("example.com/shop.Lock.Unlock")}},
		"a library and its adapter":                 {[]Site{at("example.com/mutex.eval"), at("example.com/mutex.Unlock"), at("example.com/shop.adapter")}, []Site{at("example.com/mutex.eval"), at("example.com/shop.adapter")}},
		"a client that writes in its own goroutine": {nil, nil},
	} {
		if got := lockSites(slices.Concat(client, c.stack, play), modules); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if threads, client := []Site{client[0], at("example.com/shop.release"), play[1]}, client; !OfThread(threads) || OfThread(client) {
		t.Error("a thread is not told from a goroutine of the client")
	}
	if got := lockSites([]Site{at("example.com/shop.send"), at("example.com/shop.Unlock")}, modules); len(got) != 2 {
		t.Errorf("a lock that writes to the connection itself: %v", got)
	}
	if got := moduleOf("example.com/client/v9/pool", modules); got != "example.com/client/v9" {
		t.Errorf("the module of a package is %s", got)
	}
	if got := moduleOf("github.com/redis/go-redis/v9/internal/pool", modules); got != "github.com/redis/go-redis" {
		t.Errorf("the module of a package of which the program does not know the module is %s", got)
	}
	if got := moduleOf("example.com/shopping", modules); got != "example.com/shopping" {
		t.Errorf("a package with a longer name belongs to %s", got)
	}
}

// In a binary that was built without paths the files of the main module count as its own, whatever its name.
func TestFilesOfTheStandardLibrary(t *testing.T) {
	for file, want := range map[string]bool{
		"strings/strings.go": true, "net/http/server.go": true, "shop/orders_test.go": false, "shop/cmd/main.go": false, "shopping/x.go": true,
		"example.org/shop/x.go": false, "github.com/redis/go-redis/v9@v9.7.0/redis.go": false, "lockstep@v0.0.0-00010101000000-000000000000/sim/host.go": false,
	} {
		if got := standardFile(file, "shop"); got != want {
			t.Errorf("%s: %v, want %v", file, got, want)
		}
	}
}
