// Simrun is Lockstep's command line with other people's locks beside its own.
package main

import (
	"lockstep/locktest"
	"lockstep/peers/chubby"
	"lockstep/peers/etcd"
	"lockstep/peers/memcached"
	"lockstep/peers/mysql"
	"lockstep/peers/nats"
	"lockstep/peers/redislock"
	"lockstep/peers/redsync"
	"lockstep/peers/rueidislock"
	"lockstep/peers/zookeeper"
)

func main() {
	locktest.Main(redsync.Subject(1), redsync.Subject(5), redislock.Subject, rueidislock.Subject(1), rueidislock.Subject(2),
		memcached.Add, memcached.AddForever, memcached.CAS, zookeeper.Lock, zookeeper.Closing, etcd.Mutex,
		nats.KV, nats.OnTime, nats.Blind, nats.KeyTTL, chubby.Lock, chubby.WithoutDelay,
		mysql.GetLock, mysql.GetLockPool, mysql.RowLock)
}
