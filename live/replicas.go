//go:build linux

package live

import (
	"context"
	"fmt"

	"lockstep/live/topology"
)

// startReplicas starts a redis-server with the replicas of the scenario.
func startReplicas(o StartOptions) (*redisServer, error) {
	path, err := Needed{program, program}.Find()
	if err != nil {
		return nil, err
	}
	r, err := topology.StartReplicas(context.Background(), topology.Options{Path: path, Dir: o.Dir, Start: o.Spawn}, o.Scenario.Server.Replicas)
	if err != nil {
		return nil, unusable{err}
	}
	r.Lag(o.Scenario.Server.Lag.Min, o.Scenario.Server.Lag.Max)
	s := &redisServer{addr: r.Master().Addr(), path: path, dir: o.Dir, replicas: r}
	if err := mayStop(s.Pid()); err != nil {
		s.Stop()
		return nil, err
	}
	if err := s.connect(); err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

// failover ends the master, and promotes the replica with the most writes. text says what happened.
// Afterwards the address of the server is the address of the new master.
func (s *redisServer) failover() (text string, err error) {
	s.disconnect()
	lacks, err := s.replicas.Failover(context.Background())
	if err != nil {
		return "", err
	}
	s.moving.Lock()
	s.addr = s.replicas.Master().Addr()
	s.moving.Unlock()
	return failoverText(s.replicas.Master().Name, lacks), s.connect()
}

// failoverText says to which server a failover led.
func failoverText(name string, lacks int64) string {
	if lacks <= 0 {
		return fmt.Sprintf("failover to %s, which has every write", name)
	}
	return fmt.Sprintf("failover to %s, which lacks the last %d bytes of replication", name, lacks)
}
