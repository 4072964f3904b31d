package sim

import (
	"slices"
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
