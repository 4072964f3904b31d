//go:build interop

package interop

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"lockstep/internal/realtime"
	"lockstep/lockimpl/redisson"
)

// The library tells each story as it did when testdata/timed was written. With -record
// what it tells twice is written.
func TestLibraryTellsAsKept(t *testing.T) {
	for _, rel := range releases(t) {
		t.Run(rel.Version, func(t *testing.T) {
			t.Parallel()
			server := StartServer(t)
			version, err := server.Version()
			if err != nil {
				t.Fatal(err)
			}
			lib := StartLibrary(t, rel.Version)
			fresh := timedRecording{Format: timedFormat, WrittenBy: timedCommand, Redisson: rel.Version, RedisServer: version}
			kept := fresh
			if !*recordFlag {
				if kept, err = readTimed(rel.Version); err != nil {
					t.Fatal(err)
				}
			}
			for i, kind := range []string{plain, fair} { // a first use of the library's classes takes long
				if _, err := tellByLibrary(lib, server, rel, kind, timedStories[0], fmt.Sprint("warm", i)); err != nil {
					t.Fatal(err)
				}
			}
			enough := make(chan bool, 30)
			var telling sync.WaitGroup
			n := 0
			eachTimed(func(timedStory, string) { n++ })
			fresh.tellings = make([]timedTelling, n)
			n = 0
			eachTimed(func(s timedStory, kind string) {
				tag := fmt.Sprint("story", n)
				place := n
				n++
				want := timedTelling{}
				if !*recordFlag {
					want = kept.find(t, s, kind)
				}
				telling.Go(func() {
					enough <- true
					defer func() { <-enough }()
					realtime.Case(t, fmt.Sprintf("redisson %s, %s lock, %s", rel.Version, kind, s.name), func(try int) string {
						got, err := tellByLibrary(lib, server, rel, kind, s, fmt.Sprint(tag, "try", try))
						if err != nil {
							return err.Error()
						}
						if got.agrees(want) {
							fresh.tellings[place] = got
							return ""
						}
						before := want
						if *recordFlag {
							want = got
						}
						return fmt.Sprintf("  before:\n%v  now:\n%v", before, got)
					})
				})
			})
			telling.Wait()
			if t.Failed() {
				return
			}
			if *recordFlag {
				if err := fresh.write(); err != nil {
					t.Fatal(err)
				}
			}
			t.Logf("redisson %s: %d stories told", rel.Version, n)
		})
	}
}

func tellByLibrary(l *Library, server *Server, rel *redisson.Release, kind string, s timedStory, tag string) (timedTelling, error) {
	x := timedTelling{Story: s.name, Kind: kind, WatchdogMS: timedWatchdog(rel, s)}
	n := names{owners: map[string]string{}, prefix: tag + "."}
	party := theLibrary{l, tag}
	for _, c := range clientNames {
		if _, err := l.Ask("client", Fields{"client", party.client(c), "address", server.Addr, "watchdog", s.watchdog.Milliseconds()}); err != nil {
			return x, err
		}
		for _, thread := range threadIDs {
			a, err := l.Ask("thread", Fields{"client", party.client(c), "thread", thread})
			if err != nil {
				return x, err
			}
			n.owners[a.Owner()] = fmt.Sprintf("%s:%d", c, thread)
		}
	}
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr, Protocol: 2})
	defer func() { _ = rdb.Close() }()
	var err error
	x.Told, err = tellTimed(party, rdb, n, kind, s)
	return x, err
}

func (r timedRecording) write() error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return err
	}
	for _, x := range r.tellings {
		for _, a := range x.Told {
			a.State.round()
		}
		if err := e.Encode(x); err != nil {
			return err
		}
	}
	path := timedPath(r.Redisson)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", b.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
