package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/bench/measure"
	"lockstep/interop/library"
	"lockstep/lockimpl"
	"lockstep/lockimpl/redisserver"
	"lockstep/lockimpl/redisson"
	"lockstep/lockimpl/reference"
)

// party is a lock on the real server, ours or somebody else's. It times the given
// number of rounds after the warmup. A round is a lock and an unlock of one client,
// or a hand-over if warmup is handOvers.
type party struct {
	name  string
	polls bool
	time  func(addr string, warmup, rounds int) ([]time.Duration, error)
}

// handOvers in place of a warmup asks a party for hand-overs.
const handOvers = -1

// inProcess returns a party that times a lock of this module in this process.
func inProcess(connect func(rdb *redis.Client) (measure.Locker, error)) func(string, int, int) ([]time.Duration, error) {
	return func(addr string, warmup, rounds int) ([]time.Duration, error) {
		var both [2]measure.Locker
		for i := range both {
			rdb := redis.NewClient(redisson.Options(&redis.Options{Addr: addr, DisableIdentity: true}))
			defer func() { _ = rdb.Close() }()
			var err error
			if both[i], err = connect(rdb); err != nil {
				return nil, err
			}
		}
		if warmup < 0 {
			return measure.HandOver(both[0], both[1], rounds)
		}
		return measure.Uncontended(both[0], warmup, rounds)
	}
}

// owned is a lock of this module for one owner.
type owned struct{ lock lockimpl.Lock }

func (o owned) Lock() error {
	return o.lock.Lock(context.Background(), 1, lockimpl.LockOptions{})
}

func (o owned) Unlock() error {
	_, err := o.lock.Unlock(context.Background(), 1)
	return err
}

// pairOfScripts holds the two scripts of a lock and an unlock, with their arguments.
// They are sent through go-redis without a lock.
type pairOfScripts struct {
	rdb             *redis.Client
	acquire, unlock []any
	request         int // index in unlock of the request's id, which must be unique
	sent            int
}

func (p *pairOfScripts) Lock() error { return p.do(p.acquire) }

func (p *pairOfScripts) Unlock() error {
	p.sent++
	p.unlock[p.request] = "request " + strconv.Itoa(p.sent)
	return p.do(p.unlock)
}

func (p *pairOfScripts) do(words []any) error {
	err := p.rdb.Do(context.Background(), words...).Err()
	if errors.Is(err, redis.Nil) {
		err = nil
	}
	return err
}

// scriptsOf records the EVALSHA of one lock and one unlock.
type scriptsOf struct{ words [][]any }

func (s *scriptsOf) DialHook(next redis.DialHook) redis.DialHook { return next }
func (s *scriptsOf) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (s *scriptsOf) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if strings.EqualFold(cmd.Name(), "evalsha") {
			s.words = append(s.words, slices.Clone(cmd.Args()))
		}
		return next(ctx, cmd)
	}
}

func portLock(rdb *redis.Client) (measure.Locker, error) {
	l, err := redisson.NewClient(rdb, redisson.Config{}).GetLock("port")
	return owned{l}, err
}

func referenceLock(rdb *redis.Client) (measure.Locker, error) {
	c, err := reference.NewClient(rdb, reference.Config{})
	if err != nil {
		return nil, err
	}
	l, err := c.GetLock("reference")
	return owned{l}, err
}

// scripts returns a party that sends the port's two scripts without the port.
func scripts(rdb *redis.Client) (measure.Locker, error) {
	noted := redis.NewClient(redisson.Options(rdb.Options()))
	defer func() { _ = noted.Close() }()
	seen := &scriptsOf{}
	noted.AddHook(seen)
	l, err := portLock(noted)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(l.Lock(), l.Unlock()); err != nil {
		return nil, err
	}
	n := len(seen.words)
	if n < 2 {
		return nil, fmt.Errorf("a lock and an unlock sent %d scripts", n)
	}
	p := &pairOfScripts{rdb: rdb, acquire: seen.words[n-2], unlock: seen.words[n-1]}
	p.request = slices.IndexFunc(p.unlock, func(word any) bool {
		key, ok := word.(string)
		return ok && strings.HasPrefix(key, "redisson_unlock_latch")
	})
	if p.request < 0 {
		return nil, errors.New("an unlock without a latch")
	}
	return p, nil
}

// program returns a party that runs another program, which prints nanoseconds.
func program(command func(addr string, warmup, rounds int) *exec.Cmd) func(string, int, int) ([]time.Duration, error) {
	return func(addr string, warmup, rounds int) (took []time.Duration, err error) {
		cmd := command(addr, warmup, rounds)
		var said strings.Builder
		cmd.Stderr = &said
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("%w: %s", err, strings.TrimSpace(said.String()))
		}
		return took, json.Unmarshal(out, &took)
	}
}

// parties returns the locks with which the port is compared. It builds the other
// programs first, if they can be built.
func (b *bench) parties(dir string) (all []party, missing []string) {
	all = []party{
		{name: "two scripts through go-redis", time: inProcess(scripts)},
		{name: plainLock + ", this port", time: inProcess(portLock)},
		{name: "reference", time: inProcess(referenceLock)},
	}
	peers := filepath.Join(dir, "peers")
	build := exec.Command("go", "build", "-o", peers, "./bench")
	build.Dir = filepath.Join(b.Root, "peers")
	if out, err := build.CombinedOutput(); err != nil {
		missing = append(missing, fmt.Sprintf("redsync and redislock were not measured: building peers/bench: %v %s", err, firstOf(out)))
	} else {
		for _, p := range []struct{ name, flag string }{
			{"redsync, polling as it does by itself (50 to 250 ms)", "redsync"}, {"redsync, polling every ms", "redsync-1ms"},
			{"redislock, polling every 100 ms", "redislock"}, {"redislock, polling every ms", "redislock-1ms"},
		} {
			all = append(all, party{name: p.name, polls: true, time: program(func(addr string, warmup, rounds int) *exec.Cmd {
				return exec.Command(peers, addr, p.flag, strconv.Itoa(warmup), strconv.Itoa(rounds))
			})})
		}
	}
	java, err := exec.LookPath("java")
	classpath := ""
	if err == nil {
		classpath, err = library.Classpath(strings.TrimPrefix(plainLock, "redisson@"))
	}
	if err != nil {
		return all, append(missing, fmt.Sprintf("the Java library was not measured: %v", err))
	}
	return append(all, party{name: plainLock + ", the Java library", time: program(func(addr string, warmup, rounds int) *exec.Cmd {
		if warmup > 0 {
			warmup *= 10 // until it is compiled
		}
		return exec.Command(java, "-Xmx512m", "-cp", classpath, "lockstep.interop.Bench", addr, strconv.Itoa(warmup), strconv.Itoa(rounds))
	})}), missing
}

func firstOf(out []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line
}

// roundTrip returns the median of n EVALSHA of the port's acquire script by
// redis-benchmark, on one connection, in nanoseconds.
func roundTrip(addr string, n int) (float64, error) {
	rel, err := redisson.Find("")
	if err != nil {
		return 0, err
	}
	rdb := redis.NewClient(&redis.Options{Addr: addr, DisableIdentity: true})
	defer func() { _ = rdb.Close() }()
	if err := rdb.ScriptLoad(context.Background(), rel.Acquire.Text).Err(); err != nil {
		return 0, err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return 0, err
	}
	out, err := exec.Command("redis-benchmark", "-h", host, "-p", port, "-c", "1", "-n", strconv.Itoa(n), "--csv", "--precision", "3",
		"EVALSHA", rel.Acquire.SHA, "1", "floor", "30000", "owner:1").Output()
	if err != nil {
		return 0, fmt.Errorf("redis-benchmark: %w", err)
	}
	return p50Of(string(out))
}

// p50Of returns the median latency in the output of redis-benchmark --csv, in nanoseconds.
func p50Of(csv string) (float64, error) {
	lines := strings.Split(strings.TrimSpace(csv), "\n")
	if len(lines) != 2 {
		return 0, fmt.Errorf("redis-benchmark said %q", csv)
	}
	at := slices.Index(strings.Split(lines[0], ","), `"p50_latency_ms"`)
	fields := strings.Split(lines[1], `","`) // a command may have commas in it
	head := strings.Split(lines[0], ",")
	if at < 0 || len(fields) != len(head) {
		return 0, fmt.Errorf("redis-benchmark said %q", csv)
	}
	ms, err := strconv.ParseFloat(strings.Trim(fields[at], `"`), 64)
	return ms * 1e6, err
}

// percentile returns a percentile of sorted samples.
func percentile(sorted []time.Duration, of int) float64 {
	return float64(sorted[min(len(sorted)-1, len(sorted)*of/100)])
}

// startServer starts a redis-server, and returns its folder. server is nil if
// redis-server is not installed.
func startServer() (dir string, server *redisserver.Server, stop func(), err error) {
	dir, err = os.MkdirTemp("", "lockstep-bench-")
	if err != nil {
		return "", nil, nil, err
	}
	server, end, err := redisserver.New("redis-server", dir)
	if err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			err = nil
		}
		return "", nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return dir, server, func() {
		end()
		_ = os.RemoveAll(dir)
	}, nil
}

func (b *bench) lock() (section, error) {
	s := section{
		Title: "Lock and unlock on a real server",
		Text: []string{"By the clock, on a redis-server on loopback. One client: a lock and an unlock, with nobody else there. Hand-over: one client waits while the other holds for 5 to 14 ms; " +
			"from the call of its unlock to the return of the other's lock. The floor is two EVALSHA round trips of the port's acquire script by redis-benchmark on one connection."},
		Head: []string{"", "p50", "p90", "p99", "pairs a second", "p50 of the floor's", "hand-over p50", "p90", "p99"},
	}
	dir, server, stop, err := startServer()
	if server == nil {
		return s.unmeasured("there is no redis-server here"), err
	}
	defer stop()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU())) // as for a user of the locks
	parties, missing := b.parties(dir)
	for _, m := range missing {
		s.After = append(s.After, m+".")
	}
	times, floors, noFloor, err := b.lockTimes(server.Addr, parties)
	if err != nil {
		return s, err
	}
	if noFloor != nil {
		s.After = append(s.After, "There is nothing to compare with: "+noFloor.Error()+".")
	} else {
		floor := median(floors, func(x float64) float64 { return x })
		s.row("two EVALSHA by redis-benchmark", span(floor), "", "", digits(1e9/floor), "1", "", "", "")
	}
	var port ratio
	var portOver, bestPoll float64
	for i, p := range parties {
		t := times[i]
		sum := time.Duration(0)
		for _, d := range t.alone {
			sum += d
		}
		cells := []string{p.name, span(percentile(t.alone, 50)), span(percentile(t.alone, 90)), span(percentile(t.alone, 99)),
			digits(float64(len(t.alone)) / sum.Seconds()), "", "", "", ""}
		var r ratio
		if noFloor == nil {
			r = ratioIn(t.medians, floors)
			cells[5] = r.String()
		}
		if len(t.handed) > 0 {
			over := percentile(t.handed, 50)
			copy(cells[6:], []string{span(over), span(percentile(t.handed, 90)), span(percentile(t.handed, 99))})
			switch {
			case strings.HasSuffix(p.name, "this port"):
				port, portOver = r, over
			case p.polls && (bestPoll == 0 || over < bestPoll):
				bestPoll = over
			}
		}
		s.row(cells...)
	}
	if noFloor == nil {
		s.Goals = append(s.Goals, atMost("lock and unlock, uncontended, against the floor", 1.15, port.median, "", port.String(),
			"Two scripts through go-redis, the second line of the table, are what the port cannot go below; the rest is a goroutine for each command, as the library's executor has it, and the latch of an unlock, which is deleted behind the caller's back."))
	}
	if i := slices.IndexFunc(parties, func(p party) bool { return p.name == "reference" }); i >= 0 {
		r := ratioIn(times[i].medians, times[0].medians)
		s.Goals = append(s.Goals, atMost("lock and unlock of reference, uncontended, against two scripts through go-redis", 1.15, r.median, "", r.String(),
			"Its scripts do more than the port's, with which they are compared: they keep a memory of each owner."))
	}
	if bestPoll > 0 {
		s.Goals = append(s.Goals, atMost("hand-over (p50) against the fastest peer that polls", 1, portOver/bestPoll, "", digits(portOver/bestPoll),
			"That peer asks a thousand times a second, and finds the lock free within a millisecond."))
	}
	return s, nil
}

// lockTimes are the measurements of a party, sorted, and the median of the pairs in each round.
type lockTimes struct {
	alone, handed []time.Duration
	medians       []float64
}

// lockTimes measures the parties, and the floor in each round. noFloor says why there is none.
func (b *bench) lockTimes(addr string, parties []party) (times []lockTimes, floors []float64, noFloor, err error) {
	pairs, overs, warmup := b.count(2000), b.count(60), b.count(500)
	times = make([]lockTimes, len(parties))
	for range b.Rounds {
		if noFloor == nil {
			var trip float64
			trip, noFloor = roundTrip(addr, 5*pairs)
			floors = append(floors, 2*trip)
		}
		for i, p := range parties {
			t := &times[i]
			took, err := p.time(addr, warmup, pairs)
			if err != nil {
				return nil, nil, nil, fmt.Errorf("%s: %w", p.name, err)
			}
			t.alone = append(t.alone, took...)
			slices.Sort(took)
			t.medians = append(t.medians, percentile(took, 50))
			if i == 0 {
				continue // it makes no waiters wait
			}
			took, err = p.time(addr, handOvers, overs)
			if err != nil {
				return nil, nil, nil, fmt.Errorf("%s, handed over: %w", p.name, err)
			}
			t.handed = append(t.handed, took...)
		}
	}
	for _, t := range times {
		slices.Sort(t.alone)
		slices.Sort(t.handed)
	}
	return times, floors, noFloor, nil
}
