// Simrun is Lockstep's command line with other people's locks beside its own.
package main

import (
	"lockstep/locktest"
	"lockstep/peers/etcd"
	"lockstep/peers/memcached"
	"lockstep/peers/mysql"
	"lockstep/peers/redislock"
	"lockstep/peers/redsync"
	"lockstep/peers/rueidislock"
	"lockstep/peers/zookeeper"
)

func main() {
	locktest.Main(redsync.Subject(1), redsync.Subject(5), redislock.Subject, rueidislock.Subject(1), rueidislock.Subject(2),
		memcached.Add, memcached.AddForever, memcached.CAS, zookeeper.Lock, zookeeper.Closing, etcd.Mutex,
		mysql.GetLock, mysql.GetLockPool, mysql.RowLock)
}
