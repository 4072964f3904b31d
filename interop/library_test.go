//go:build interop

package interop

import (
	"testing"

	"lockstep/lockimpl/redisson"
)

// The driver runs every release: each thread is an owner, and several calls may be under way at
// once.
func TestDriverRunsEveryRelease(t *testing.T) {
	t.Parallel()
	server := StartServer(t)
	for _, rel := range redisson.Releases {
		t.Run(rel.Version, func(t *testing.T) {
			l := StartLibrary(t, rel.Version)
			ask := func(do string, f Fields) Answer {
				t.Helper()
				a, err := l.Ask(do, f)
				if err != nil {
					t.Fatal(err)
				}
				return a
			}
			ask("client", Fields{"client", "a", "address", server.Addr})
			one := ask("thread", Fields{"client", "a", "thread", 1})
			two := ask("thread", Fields{"client", "a", "thread", 2})
			if one.Owner() == two.Owner() {
				t.Errorf("two threads are one owner, %s", one.Owner())
			}
			for _, kind := range []string{"plain", "fair"} {
				call := func(thread int, op string) Fields {
					return Fields{"client", "a", "thread", thread, "op", op, "kind", kind, "lock", rel.Version + kind}
				}
				ask("call", call(1, "lock"))
				waiting := l.Send("call", call(2, "lock"))
				if a := <-l.Send("call", call(1, "unlock")); a.Err() != nil || a.Owner() != one.Owner() {
					t.Errorf("%s: unlock by its holder: %v", kind, a)
				}
				if a := <-waiting; a.Err() != nil || a.Owner() != two.Owner() {
					t.Errorf("%s: lock by the next: %v", kind, a)
				}
				if a := ask("call", call(2, "hold_count")); a.Value() != "1" {
					t.Errorf("%s: hold count of the next: %v", kind, a)
				}
				ask("call", call(2, "unlock"))
				if kind == "plain" {
					if a := <-l.Send("call", append(call(1, "lock_interruptibly"), "lease", 20)); a.Err() != nil {
						t.Error(a)
					}
				}
			}
			ask("close", Fields{"client", "a"})
		})
	}
}
