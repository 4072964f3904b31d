//go:build linux

package live

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"lockstep/live/topology"
	"lockstep/lockimpl/redisserver"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
	"lockstep/sim"
	simredis "lockstep/sim/redis"
)

// program is the server that this package starts.
const program = "redis-server"

// oldest is the oldest major version of redis-server whose state the parent can read.
const oldest = 7

// redisKind is the kind of redis-server. It implements Kind.
type redisKind struct{}

// Name implements Kind.
func (redisKind) Name() string { return program }

// Models implements Kind.
func (redisKind) Models(s sim.Server) bool {
	_, ok := s.(*simredis.Server)
	return ok
}

// Ready implements Kind.
func (redisKind) Ready() error {
	path, err := Needed{program, program}.Find()
	if err == nil {
		err = newEnough(path)
	}
	return err
}

// Lacks implements Kind.
func (redisKind) Lacks(sc *scenarios.Scenario, l *subject.Subject) string {
	if n := l.Servers.Count(); sc.Server.Replicas > 0 && n > 1 {
		return fmt.Sprintf("the scenario has replicas, and %s is on %d servers", l.Name, n)
	}
	return ""
}

// LacksFault implements Kind.
func (redisKind) LacksFault(f model.FaultSpec) string {
	if f.Server == model.ServerIsolate {
		return "servers of Redis that know nothing of one another cannot be isolated"
	}
	return ""
}

// Start implements Kind.
func (redisKind) Start(o StartOptions) ([]Server, error) {
	if o.Scenario.Server.Replicas > 0 {
		s, err := startReplicas(o)
		if err != nil {
			return nil, err
		}
		return []Server{s}, nil
	}
	n := o.Lock.Servers.Count()
	return StartEach(n, func(i int) (Server, error) {
		dir := o.Dir
		if n > 1 {
			dir = filepath.Join(dir, strconv.Itoa(i+1))
			if err := os.Mkdir(dir, 0o755); err != nil {
				return nil, err
			}
		}
		return startServer(dir, o.Free)
	})
}

// redisServer is a redis-server, and the two connections on which the parent looks at it.
type redisServer struct {
	moving  sync.Mutex // guards addr, which a failover changes
	addr    string
	first   time.Duration // the time for its first answer; 0: patience
	version string
	mode    string // how the server serves: "standalone", "cluster" or "sentinel"
	path    string // the path of the program; "" if somebody else runs the server
	dir     string
	log     io.WriteCloser
	cmd     *exec.Cmd
	over    <-chan struct{}
	// replicas has the server, as the master, and its replicas. It is nil if the server has none.
	replicas *topology.Replicas

	clustered bool // it is a node of a cluster

	rdb     *redis.Client
	monitor net.Conn
	lines   chan string
	looks   int
}

// startServer starts a server that works in dir, at an address that free returns.
func startServer(dir string, free func() (string, error)) (*redisServer, error) {
	path, err := Needed{program, program}.Find()
	if err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(dir, program+".log"))
	if err != nil {
		return nil, err
	}
	s := &redisServer{path: path, dir: dir, log: log}
	for range 3 { // another program may take the port before the server does
		if s.addr, err = free(); err != nil {
			return nil, err
		}
		if err = s.launch(); err == nil {
			break
		}
	}
	if err != nil {
		_ = log.Close()
		return nil, unusable{err}
	}
	if err := mayStop(s.cmd.Process.Pid); err != nil {
		s.Stop()
		return nil, err
	}
	if err := s.connect(); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// useServer uses a server that somebody else runs. The server must have no keys.
func useServer(addr string) (*redisServer, error) {
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return nil, unusablef("--address %s: want HOST:PORT", addr)
	}
	s := &redisServer{addr: addr, first: 5 * time.Second}
	if err := answersPing(addr, s.first); err != nil {
		return nil, unusablef("--address %s: %w", addr, otherKind(err))
	}
	if err := s.connect(); err != nil {
		s.Stop()
		return nil, unusablef("--address %s: %w", addr, err)
	}
	if err := s.usable(); err != nil {
		s.Stop()
		return nil, unusablef("--address %s: %w", addr, err)
	}
	return s, nil
}

// answersPing returns an error if what listens at an address does not answer PING as a Redis server does. The client
// believes each length that an answer announces, and takes memory for it.
func answersPing(addr string, most time.Duration) error {
	c, err := net.DialTimeout("tcp", addr, most)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(most)); err != nil {
		return err
	}
	if _, err := fmt.Fprint(c, "*1\r\n$4\r\nPING\r\n"); err != nil {
		return err
	}
	line, err := bufio.NewReader(io.LimitReader(c, 1<<10)).ReadString('\n')
	if err == nil && line != "+PONG\r\n" && line[0] != '-' {
		err = fmt.Errorf("the answer to PING is %.40q", line)
	}
	return err
}

// otherKind returns the error of a request to a server that somebody else runs, with the kind of the server, where the
// error shows that live has no use for it.
func otherKind(err error) error {
	var answer redis.Error
	var call *net.OpError
	is := func(prefixes ...string) bool {
		return slices.ContainsFunc(prefixes, func(prefix string) bool { return redis.HasErrorPrefix(answer, prefix) })
	}
	switch {
	case errors.As(err, &call) && call.Op == "dial":
	case !errors.As(err, &answer):
		return fmt.Errorf("no Redis server answers there without TLS: %w", err)
	case is("NOAUTH", "WRONGPASS", "NOPERM"):
		return fmt.Errorf("the server wants a password, and live gives none: %w", err)
	}
	return err
}

// usable says why a run cannot use a server that somebody else runs.
func (s *redisServer) usable() error {
	ctx := context.Background()
	n, err := s.rdb.DBSize(ctx).Result()
	switch {
	case err != nil:
		return err
	case n > 0:
		return fmt.Errorf("the server has %d keys; give one that is empty, so that every key of it is the run's", n)
	}
	// A replica, a server that lacks replicas, and one whose disk is full take no writes.
	const key = "lockstep:writable"
	if err := s.rdb.Set(ctx, key, 1, time.Second).Err(); err != nil {
		return fmt.Errorf("the server takes no writes: %w", otherKind(err))
	}
	return s.rdb.Del(ctx, key).Err()
}

// errEnded says that the server ended before it served.
var errEnded = errors.New("it ended before it served")

// launch starts the program at s.addr.
func (s *redisServer) launch() (err error) {
	s.cmd, s.over, err = redisserver.Launch(s.path, s.dir, s.addr, s.log, Spawn, "--dbfilename", "dump.rdb")
	if err == nil && s.cmd == nil {
		err = errEnded
	}
	if err != nil {
		return fmt.Errorf("%s at %s: %w", s.path, s.addr, err)
	}
	return nil
}

// patience is how long the server may take to answer the parent when no fault stalls it. It only
// keeps the parent from waiting for ever.
const patience = 2 * time.Minute

// connect opens the parent's connections.
func (s *redisServer) connect() (err error) {
	s.rdb = redis.NewClient(&redis.Options{
		Addr: s.addr, PoolSize: 1, MaxRetries: -1, Protocol: 2, DisableIdentity: true, ReadTimeout: patience, WriteTimeout: patience, DialTimeout: 5 * time.Second, ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(s.first, patience))
	defer cancel()
	info, err := s.rdb.Info(ctx, "server").Result()
	if err != nil {
		return otherKind(err)
	}
	for _, line := range strings.Split(info, "\r\n") {
		switch name, v, _ := strings.Cut(line, ":"); name {
		case "redis_version":
			s.version = v
		case "redis_mode", "server_mode": // of Redis, of Valkey
			s.mode = v
		}
	}
	if err := checkVersion(s.version); err != nil {
		return err
	}
	switch {
	case s.mode == "cluster" && !s.clustered:
		return errors.New("the server is a node of a cluster, and has some of the keys only; live --servers redis-cluster starts a cluster")
	case s.mode == "sentinel":
		return errors.New("the server is a sentinel, and has no keys; live --servers redis-sentinel starts sentinels and their servers")
	}
	monitor, err := net.DialTimeout("tcp", s.addr, 5*time.Second)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = monitor.Close()
		}
	}()
	if err := monitor.SetReadDeadline(time.Now().Add(cmp.Or(s.first, patience))); err != nil {
		return err
	}
	in := bufio.NewReaderSize(monitor, 1<<20)
	if _, err := fmt.Fprint(monitor, "MONITOR\r\n"); err != nil {
		return err
	}
	if line, err := in.ReadString('\n'); err != nil {
		return fmt.Errorf("the server does not answer MONITOR: %w", err)
	} else if line != "+OK\r\n" {
		return fmt.Errorf("the server refuses MONITOR: %q", strings.TrimSpace(line))
	}
	if err := monitor.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	lines := make(chan string, 1024)
	s.monitor, s.lines = monitor, lines
	go func() {
		defer close(lines)
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				return
			}
			lines <- line
		}
	}()
	return nil
}

// disconnect closes the parent's connections.
func (s *redisServer) disconnect() {
	if s.rdb != nil {
		_ = s.rdb.Close()
		s.rdb = nil
	}
	if s.monitor != nil {
		_ = s.monitor.Close()
		for range s.lines { // until the reader of its lines has ended
		}
		s.monitor = nil
	}
}

// Restart implements Server.
func (s *redisServer) Restart(keepData bool) error {
	if s.replicas != nil {
		s.disconnect()
		if err := s.replicas.Restart(context.Background(), keepData); err != nil {
			return err
		}
		return s.connect()
	}
	dump := filepath.Join(s.dir, "dump.rdb")
	if keepData {
		if err := s.rdb.Save(context.Background()).Err(); err != nil {
			return fmt.Errorf("the server does not save its data: %w", err)
		}
	}
	s.disconnect()
	_ = s.cmd.Process.Kill()
	<-s.over
	if !keepData {
		if err := os.Remove(dump); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	if err := s.launch(); err != nil {
		return err
	}
	return s.connect()
}

// Addr implements Server.
func (s *redisServer) Addr() string {
	s.moving.Lock()
	defer s.moving.Unlock()
	return s.addr
}

// Version implements Server.
func (s *redisServer) Version() string { return program + " " + s.version }

// Pid implements Server.
func (s *redisServer) Pid() int {
	if s.replicas != nil {
		return s.replicas.Master().Pid()
	}
	if s.cmd == nil {
		return 0
	}
	return s.cmd.Process.Pid
}

// Stop implements Server. A server of somebody else goes on.
func (s *redisServer) Stop() {
	s.disconnect()
	if s.replicas != nil {
		s.replicas.Stop()
	}
	if s.cmd != nil {
		_ = s.cmd.Process.Signal(syscall.SIGKILL) // SIGKILL also ends a process that is stopped
		<-s.over
	}
	if s.log != nil {
		_ = s.log.Close()
	}
}

// lookScript reads all keys at one instant of the server's clock. Its argument marks it in the
// log of MONITOR.
const lookScript = `
local mark, out = ARGV[1], {}
for _, key in ipairs(redis.call('KEYS', ARGV[2])) do
  local kind = redis.call('TYPE', key)['ok']
  local value = {}
  if kind == 'string' then value = {redis.call('GET', key)}
  elseif kind == 'hash' then value = redis.call('HGETALL', key)
  elseif kind == 'list' then value = redis.call('LRANGE', key, 0, -1)
  elseif kind == 'set' then value = redis.call('SORT', key, 'ALPHA')
  elseif kind == 'zset' then value = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES') end
  out[#out + 1] = {key, kind, redis.call('PEXPIRETIME', key), value}
end
return out`

// look reads the keys that match a glob, and returns the commands that MONITOR showed since the
// last look. wallNs is when the server read the keys, by its wall clock.
func (s *redisServer) look(glob string) (keys map[string]key, seen []watched, wallNs int64, err error) {
	s.looks++
	mark := "lockstep look " + strconv.Itoa(s.looks)
	var read *redis.Cmd
	// Each command has its own error.
	_, _ = s.rdb.Pipelined(context.Background(), func(p redis.Pipeliner) error {
		if s.clustered {
			p.Do(context.Background(), "ASKING") // for the keys of a slot that moves here
		}
		read = p.Eval(context.Background(), lookScript, nil, mark, glob)
		return nil
	})
	found, err := read.Slice()
	if err != nil {
		return nil, nil, 0, fmt.Errorf("the server does not answer the parent: %w", err)
	}
	keys = map[string]key{}
	for _, x := range found {
		part := x.([]any)
		k := key{kind: part[1].(string), endMs: part[2].(int64)}
		for _, v := range part[3].([]any) {
			text, _ := v.(string)
			k.value = append(k.value, text)
		}
		keys[part[0].(string)] = k
	}
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		select {
		case line, ok := <-s.lines:
			if !ok {
				return nil, nil, 0, errors.New("the server closed the connection of MONITOR")
			}
			w, ok := parseMonitor(line)
			switch {
			case !ok:
			case len(w.words) > 3 && w.words[3] == mark:
				// The script itself runs the commands that follow.
				return keys, seen, w.wallNs, nil
			default:
				seen = append(seen, w)
			}
		case <-limit.C:
			return nil, nil, 0, errors.New("MONITOR fell behind")
		}
	}
}

// watched is a command as MONITOR shows it.
type watched struct {
	wallNs   int64 // the server's wall clock, since 1970
	database string
	from     string
	script   bool // a script ran it
	words    []string
}

// parseMonitor reads a line of MONITOR: +SECONDS.MICROSECONDS [DATABASE ADDRESS] "WORD" ...
func parseMonitor(line string) (w watched, ok bool) {
	at, rest, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "+"), " [")
	if !ok {
		return w, false
	}
	seconds, micros, ok1 := strings.Cut(at, ".")
	sec, err1 := strconv.ParseInt(seconds, 10, 64)
	usec, err2 := strconv.ParseInt(micros, 10, 64)
	where, words, ok2 := strings.Cut(rest, "] ")
	if !ok1 || !ok2 || err1 != nil || err2 != nil {
		return w, false
	}
	w.database, w.from, _ = strings.Cut(where, " ")
	w.script = w.from == "lua"
	w.wallNs = sec*1e9 + usec*1e3
	for words != "" {
		quoted, err := strconv.QuotedPrefix(words)
		if err != nil {
			return w, false
		}
		word, err := strconv.Unquote(quoted)
		if err != nil {
			return w, false
		}
		w.words = append(w.words, word)
		words = strings.TrimPrefix(words[len(quoted):], " ")
	}
	return w, len(w.words) > 0
}

// key is a key of the server with its value.
type key struct {
	kind  string
	endMs int64 // PEXPIRETIME: the last millisecond, since 1970, in which the key exists; -1 if it does not expire
	value []string
}

// keyspace gives the keys of a look to the reader of a lock's state.
type keyspace struct {
	keys    map[string]key
	startMs int64 // since 1970
}

func (k keyspace) values(name, kind string) []string {
	if x, ok := k.keys[name]; ok && x.kind == kind {
		return x.value
	}
	return nil
}

func (k keyspace) String(name string) (string, bool) {
	v := k.values(name, "string")
	if len(v) == 0 {
		return "", false
	}
	return v[0], true
}

func (k keyspace) Hash(name string) map[string]string {
	v := k.values(name, "hash")
	if v == nil {
		return nil
	}
	h := map[string]string{}
	for i := 0; i+1 < len(v); i += 2 {
		h[v[i]] = v[i+1]
	}
	return h
}

func (k keyspace) List(name string) []string { return k.values(name, "list") }

func (k keyspace) Set(name string) []string { return k.values(name, "set") }

func (k keyspace) SortedSet(name string) map[string]float64 {
	v := k.values(name, "zset")
	if v == nil {
		return nil
	}
	z := map[string]float64{}
	for i := 0; i+1 < len(v); i += 2 {
		z[v[i]], _ = strconv.ParseFloat(v[i+1], 64)
	}
	return z
}

func (k keyspace) ExpiresMs(name string) int64 {
	x, ok := k.keys[name]
	switch {
	case !ok:
		return -2
	case x.endMs < 0:
		return -1
	}
	return x.endMs - k.startMs
}

func (k keyspace) StartMs() int64 { return k.startMs }

// strikeKeys deletes the keys that match a glob, or lets them expire, as do says. It returns their
// names.
func (s *redisServer) strikeKeys(glob, do string, keys map[string]key) (gone []string, err error) {
	for name := range keys {
		if !sim.Match(glob, name) {
			continue
		}
		gone = append(gone, name)
		if do == "expire" {
			err = errors.Join(err, s.rdb.PExpireAt(context.Background(), name, time.UnixMilli(1)).Err())
		} else {
			err = errors.Join(err, s.rdb.Del(context.Background(), name).Err())
		}
	}
	return gone, err
}
