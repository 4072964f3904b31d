//go:build linux

package topology

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"lockstep/lockimpl/redisserver"
)

// MasterName is the name by which clients ask sentinels for the address of the master.
const MasterName = "lockstep"

// DownAfter is the time after which a sentinel takes a master that does not answer for dead. It is
// longer than a busy machine may stand still.
const DownAfter = 2 * time.Second

// The number of sentinels, and how many of them must agree that the master is dead.
const (
	sentinels = 3
	quorum    = 2
)

// Sentinels is a master with replicas under three sentinels. The sentinels notice that the
// master is dead, and promote a replica.
type Sentinels struct {
	*Replicas
	watchers []*sentinel
}

// sentinel is a redis-server that runs as a sentinel.
type sentinel struct {
	name, addr string
	cmd        *exec.Cmd
	over       chan struct{}
	rdb        *redis.Client
}

// StartSentinels starts a master with n replicas and three sentinels, and waits until the sentinels
// know them all and one another. The caller calls Stop.
func StartSentinels(ctx context.Context, o Options, n int) (*Sentinels, error) {
	r, err := StartReplicas(ctx, o, n)
	if err != nil {
		return nil, err
	}
	s := &Sentinels{Replicas: r}
	for i := range sentinels {
		w, err := startSentinel(o, fmt.Sprintf("sentinel-%d", i+1), r.Master().Announced())
		if err != nil {
			s.Stop()
			return nil, err
		}
		s.watchers = append(s.watchers, w)
	}
	if err := s.Ready(ctx); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// startSentinel starts a sentinel that watches the master at an address.
func startSentinel(o Options, name, master string) (*sentinel, error) {
	host, port, err := net.SplitHostPort(master)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(o.Dir, name)
	if err := os.Mkdir(dir, 0o777); err != nil {
		return nil, err
	}
	s := &sentinel{name: name}
	for range 3 { // another program may take the port before the sentinel does
		if s.addr, err = redisserver.FreeAddr(); err != nil {
			return nil, err
		}
		_, own, _ := net.SplitHostPort(s.addr)
		config := filepath.Join(dir, "sentinel.conf")
		text := fmt.Sprintf("port %[1]s\nbind 127.0.0.1\ndir %[2]q\nsentinel monitor %[3]s %[4]s %[5]s %[6]d\n"+
			"sentinel down-after-milliseconds %[3]s %[7]d\nsentinel failover-timeout %[3]s 10000\nsentinel parallel-syncs %[3]s 2\n",
			own, dir, MasterName, host, port, quorum, DownAfter.Milliseconds())
		if err := os.WriteFile(config, []byte(text), 0o666); err != nil {
			return nil, err
		}
		if err = s.launch(o, config, filepath.Join(dir, "sentinel.log")); err == nil {
			return s, nil
		}
	}
	return nil, err
}

// launch runs the program, and returns when it says that it is a sentinel.
func (s *sentinel) launch(o Options, config, log string) error {
	file, err := os.Create(log)
	if err != nil {
		return err
	}
	cmd := exec.Command(o.Path, config, "--sentinel")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = o.Start(cmd)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	lines := bufio.NewScanner(out)
	serves := false
	for !serves && lines.Scan() {
		_, _ = fmt.Fprintln(file, lines.Text())
		serves = strings.Contains(lines.Text(), "Sentinel ID is")
	}
	if !serves {
		_ = cmd.Wait()
		_ = file.Close()
		return fmt.Errorf("%s --sentinel at %s: %w", o.Path, s.addr, errEnded)
	}
	s.cmd, s.over = cmd, make(chan struct{})
	go func() {
		defer close(s.over)
		for lines.Scan() {
			_, _ = fmt.Fprintln(file, lines.Text())
		}
		_ = cmd.Wait()
		_ = file.Close()
	}()
	s.rdb = newClient(s.addr)
	return nil
}

func (s *sentinel) stop() {
	_ = s.rdb.Close()
	_ = s.cmd.Process.Kill()
	<-s.over
}

// Addrs are the addresses of the sentinels.
func (s *Sentinels) Addrs() []string {
	var addrs []string
	for _, w := range s.watchers {
		addrs = append(addrs, w.addr)
	}
	return addrs
}

// Stop ends all servers.
func (s *Sentinels) Stop() {
	for _, w := range s.watchers {
		w.stop()
	}
	s.Replicas.Stop()
}

// Ready waits until the replicas have all data, and each sentinel knows the master, its replicas
// and the other sentinels. Meanwhile there is no lag.
func (s *Sentinels) Ready(ctx context.Context) error {
	if err := s.Replicas.Ready(ctx); err != nil {
		return err
	}
	return await(ctx, func(ctx context.Context) (string, error) {
		for _, w := range s.watchers {
			m, err := w.rdb.Do(ctx, "SENTINEL", "MASTER", MasterName).StringSlice()
			if err != nil {
				return "", fmt.Errorf("%s: %w", w.name, err)
			}
			got := pairs(m)
			switch {
			case net.JoinHostPort(got["ip"], got["port"]) != s.Master().Announced():
				return fmt.Sprintf("%s takes %s:%s for the master, which is at %s", w.name, got["ip"], got["port"], s.Master().Announced()), nil
			case got["flags"] != "master":
				return fmt.Sprintf("%s gives the master the flags %s", w.name, got["flags"]), nil
			case got["num-slaves"] != fmt.Sprint(len(s.Nodes)-1), got["num-other-sentinels"] != fmt.Sprint(sentinels-1):
				return fmt.Sprintf("%s knows %s of %d replicas, and %s of %d other sentinels", w.name, got["num-slaves"], len(s.Nodes)-1, got["num-other-sentinels"], sentinels-1), nil
			}
			replicas, err := w.rdb.Do(ctx, "SENTINEL", "REPLICAS", MasterName).Slice()
			if err != nil {
				return "", fmt.Errorf("%s: %w", w.name, err)
			}
			for _, r := range replicas {
				if text := fieldsOfReplica(r); text["flags"] != "slave" || text["master-link-status"] != "ok" {
					return fmt.Sprintf("%s gives the replica %s the flags %s, and its link to the master the state %s", w.name, text["name"], text["flags"], text["master-link-status"]), nil
				}
			}
		}
		return "", nil
	})
}

func fieldsOfReplica(r any) map[string]string {
	list, _ := r.([]any)
	var words []string
	for _, x := range list {
		words = append(words, fmt.Sprint(x))
	}
	return pairs(words)
}

// pairs reads a list of names and values.
func pairs(words []string) map[string]string {
	m := map[string]string{}
	for i := 0; i+1 < len(words); i += 2 {
		m[words[i]] = words[i+1]
	}
	return m
}

// Failover ends the master, waits until the sentinels have promoted a replica, and starts the old
// master again without data, as a replica.
func (s *Sentinels) Failover(ctx context.Context, tell Failing) error {
	old := s.Master()
	info, err := old.info(ctx, "replication")
	if err != nil {
		return err
	}
	wrote := number(info["master_repl_offset"])
	old.Kill()
	tell.killed()
	s.lag(0, 0) // until all is ready
	has := map[string]int64{}
	for _, n := range s.Nodes {
		if n == old {
			continue
		}
		info, err := n.info(ctx, "replication")
		if err != nil {
			return err
		}
		has[n.Name] = number(info["slave_repl_offset"])
	}
	if err := await(ctx, func(ctx context.Context) (string, error) {
		for i, n := range s.Nodes {
			if n == old {
				continue
			}
			info, err := n.info(ctx, "replication")
			if err != nil {
				return "", err
			}
			if info["role"] == "master" {
				s.master = i
				return "", nil
			}
		}
		return "no replica was promoted", nil
	}); err != nil {
		return err
	}
	tell.promoted(s.Master(), wrote-has[s.Master().Name])
	// The sentinels order the other replica to follow the new master.
	if err := await(ctx, func(ctx context.Context) (string, error) {
		for _, w := range s.watchers {
			at, err := w.rdb.Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", MasterName).StringSlice()
			if err != nil {
				return "", err
			}
			if len(at) != 2 || net.JoinHostPort(at[0], at[1]) != s.Master().Announced() {
				return fmt.Sprintf("%s takes %s for the master, which is at %s", w.name, strings.Join(at, ":"), s.Master().Announced()), nil
			}
		}
		return "", nil
	}); err != nil {
		return err
	}
	if err := old.Forget(); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(s.Master().Announced())
	if err != nil {
		return err
	}
	if err := old.Launch("--replicaof", host+" "+port); err != nil {
		return err
	}
	return s.Ready(ctx)
}
