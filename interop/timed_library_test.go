//go:build interop

package interop

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/internal/realtime"
	"lockstep/lockimpl/redisson"
)

// The library plays each story as it did when testdata/timed was written. With -record the test
// writes the records that it got twice.
func TestLibraryTellsAsKept(t *testing.T) {
	t.Parallel()
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
				if kept, err = readTimed(timedPath(rel.Version), rel.Version); err != nil {
					t.Fatal(err)
				}
			}
			for i, kind := range []string{plain, fair} { // a first use of the library's classes takes long
				if _, _, err := tellByLibrary(lib, server, rel, kind, timedStories[0], fmt.Sprint("warm", i), nil); err != nil {
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
						got, _, err := tellByLibrary(lib, server, rel, kind, s, fmt.Sprint(tag, "try", try), nil)
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
				for _, x := range fresh.tellings {
					for _, a := range x.Told {
						a.State.round()
					}
				}
				if err := fresh.write(timedPath(rel.Version)); err != nil {
					t.Fatal(err)
				}
			}
			t.Logf("redisson %s: %d stories told", rel.Version, n)
		})
	}
}

// tellByLibrary plays a story on the library, with new clients. The names of these clients and
// of their locks begin with tag. The lateness includes that of the pace, unless the pace is nil.
func tellByLibrary(l *Library, server *Server, rel *redisson.Release, kind string, s timedStory, tag string, p *pace) (x timedTelling, late lateness, err error) {
	x = timedTelling{Story: s.name, Kind: kind, WatchdogMS: timedWatchdog(rel, s)}
	n := names{owners: map[string]string{}, prefix: tag + "."}
	party := timedLibrary{theLibrary{l, tag}, map[string]*Proxy{}}
	for _, c := range clientNames {
		address := server.Addr
		if s.crashes(c) {
			via, err := startProxy(server.Addr)
			if err != nil {
				return x, late, err
			}
			defer via.Close()
			party.via[c], address = via, via.Addr
		}
		if _, err := l.Ask("client", Fields{"client", party.client(c), "address", address, "watchdog", s.watchdog.Milliseconds()}); err != nil {
			return x, late, err
		}
		defer l.Send("close", Fields{"client", party.client(c)})
		for _, thread := range threadIDs {
			a, err := l.Ask("thread", Fields{"client", party.client(c), "thread", thread})
			if err != nil {
				return x, late, err
			}
			n.owners[a.Owner()] = fmt.Sprintf("%s:%d", c, thread)
		}
	}
	// On a busy machine an answer may come late, which disturbs the record.
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr, Protocol: 2, ReadTimeout: time.Minute, WriteTimeout: time.Minute})
	defer func() { _ = rdb.Close() }()
	var scripts []*seenScript
	if p != nil {
		p.begin(n.prefix)
	}
	came, err := tellTimed(party, rdb, n, kind, s, nil)
	if p != nil {
		scripts = p.end(n.prefix)
	}
	if err != nil {
		return x, late, err
	}
	late = came.stall
	if p != nil {
		p.judge(n, came, scripts, &late)
	}
	x.Told = came.told
	return x, late, letGo(rdb, n, came)
}

// crashes reports whether the client crashes in the story.
func (s timedStory) crashes(client string) bool {
	return slices.ContainsFunc(s.acts, func(a act) bool { return a.op.Do == doCrash && a.op.Client == client })
}

// letGo removes the locks of a story and wakes the calls that still wait for them, so that
// their threads end.
func letGo(rdb redis.UniversalClient, n names, came outcome) error {
	ctx := context.Background()
	for range 5 {
		keys, err := rdb.Keys(ctx, "*"+n.prefix+"*").Result()
		if err == nil && len(keys) > 0 {
			err = rdb.Del(ctx, keys...).Err()
		}
		if err != nil || len(came.under) == 0 {
			return err
		}
		for owner, thread := range n.owners {
			op, waits := came.under[thread]
			if !waits {
				continue
			}
			for _, channel := range []string{redisson.ChannelName(n.prefix + op.Lock), redisson.WaiterChannel(n.prefix+op.Lock, owner)} {
				if err := rdb.Publish(ctx, channel, "0").Err(); err != nil {
					return err
				}
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
	return nil
}

// timedLibrary is the library as a party whose clients can crash. Each client that will crash is
// behind a proxy of its own, which ends its connections.
type timedLibrary struct {
	theLibrary
	via map[string]*Proxy
}

func (p timedLibrary) interruptNow(op Op) error {
	_, err := p.l.Ask("interrupt", Fields{"client", p.client(op.Client), "thread", op.Thread, "where", "now"})
	return err
}

func (p timedLibrary) crash(client string) error {
	p.via[client].Sever()
	return nil
}

func (r timedRecording) write(path string) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return err
	}
	for _, x := range r.tellings {
		if err := e.Encode(x); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path+".new", b.Bytes(), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
