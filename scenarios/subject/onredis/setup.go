package onredis

import (
	"github.com/redis/go-redis/v9"

	"lockstep/scenarios/subject"
	"lockstep/sim"
	"lockstep/sim/goredis"
)

// The setups of Redis servers that know of one another, for subject.Options.Setup.
const (
	// Sentinel is a master with replicas. Addrs are sentinels, which know the master as MasterName.
	Sentinel = "redis-sentinel"
	// Cluster is a Redis Cluster. Addrs are its nodes.
	Cluster = "redis-cluster"
)

// MasterName is the name by which sentinels know the master.
const MasterName = "lockstep"

// NewClient makes the go-redis client of a process: for one server, for the master that sentinels
// name, or for a cluster. ro are Options, which the caller may have changed.
func NewClient(p *sim.Process, o subject.Options, ro *redis.Options) redis.UniversalClient {
	switch o.Setup {
	case Sentinel:
		return goredis.NewFailoverClient(p, ro, MasterName, o.Addrs)
	case Cluster:
		return goredis.NewClusterClient(p, ro, o.Addrs)
	}
	return goredis.NewClient(p, ro)
}
