// Package programs has what the programs of this module have beside their commands.
package programs

import (
	"io/fs"

	"lockstep/live"
	"lockstep/lockmain"
	"lockstep/locktest"
	"lockstep/peers/blpop"
	"lockstep/peers/chubby"
	"lockstep/peers/etcd"
	"lockstep/peers/farm"
	"lockstep/peers/memcached"
	"lockstep/peers/mysql"
	"lockstep/peers/nats"
	"lockstep/peers/redislock"
	"lockstep/peers/redsync"
	"lockstep/peers/retold"
	"lockstep/peers/rueidislock"
	"lockstep/peers/zookeeper"
)

// Options returns the locks of this module with their scenarios, the live runs, and JetStream for
// farms.
func Options() lockmain.Options {
	return lockmain.Options{Locks: Locks(), Scenarios: stories(), Live: live.Player(), Farm: farm.JetStream{}}
}

// stories returns the scenarios of each package, which are a collection with its name.
func stories() (all []lockmain.Collection) {
	for _, s := range []struct {
		name  string
		files fs.FS
	}{
		{"redsync", redsync.Stories}, {"memcached", memcached.Stories}, {"zookeeper", zookeeper.Stories}, {"etcd", etcd.Stories},
		{"nats", nats.Stories}, {"chubby", chubby.Stories}, {"mysql", mysql.Stories},
		{"redislock", redislock.Stories}, {"rueidislock", rueidislock.Stories},
	} {
		all = append(all, lockmain.Collection{Name: s.name, Files: s.files})
	}
	return all
}

// Locks returns the locks of this module. Each has an advice when to take it, for the survey.
func Locks() []locktest.Subject {
	return []locktest.Subject{
		advise(redsync.Subject(1), "Take it where a second owner after a long pause costs time and not data, and few clients wait. "+
			"Do not take it for work that may outlast its lease, since nothing renews it, or where many wait, since each sends up to 22 commands a second."),
		advise(redsync.Subject(5), "Take it where one Redis server may be lost and a second owner costs time and not data. "+
			"Do not take it where a second owner costs data: a pause or a clock that jumps gives two, and it has no fencing token."),
		advise(redsync.SetOnExtend, "Do not take it with Extend by hand after a pause: a hold that has ended is extended if nobody has the lock then, whoever had it in between. "+
			"Take it where servers that keep nothing restart often and each holder extends long before its lease ends."),
		advise(redislock.Subject, "Take it for short work on one Redis server whose callers renew the lease themselves. "+
			"Do not take it where a second owner costs data, since it has no fencing token, or where a waiter must be served in order."),
		advise(rueidislock.Subject(1), "Take it with rueidis, where a holder is to be told of the end of its hold and the lease is to be renewed for it. "+
			"Do not take it on a slow network: a waiter whose try is given up after 20 ms may never ask again."),
		advise(rueidislock.Subject(2), "It has three keys on one server, and so no advantage over one key there. "+
			"Do not take it on a slow network, for the same reason as with one key."),
		advise(rueidislock.Patient, "Take it with rueidis as rueidislock-1, on a network of any speed. "+
			"Do not take it where a lost answer may not block the lock for its lease, or where a second owner costs data."),
		advise(memcached.Add, "Never take it: an unlock that comes after the end of its expiry deletes the hold of the next owner."),
		advise(memcached.AddForever, "Never take it: a holder that crashes holds the lock for ever."),
		advise(memcached.CAS, "Take it where a second owner costs time and not data, on a cache that evicts nothing. "+
			"Do not take it otherwise: an eviction or a restart frees the lock, and nobody is told."),
		advise(zookeeper.Lock, "Take it where waiters must be served in order and a dead holder may block others for a session. "+
			"Do not go on with its session after Lock has failed: the session may wait behind its own node for ever."),
		advise(zookeeper.Closing, "Take it where waiters must be served in order and a dead holder may block others for a session. "+
			"Stop the work when the connection is lost, and let the guarded resource check a token if a pause may outlast the session."),
		advise(etcd.Mutex, "Take it where waiters must be served in order and a crashed holder may block others for a session. "+
			"Check the revision at whatever the lock guards: a pause gives two owners."),
		advise(etcd.OneSession, "Take it where at most one goroutine of a process asks for a lock, or where a local mutex lets them ask one by one. "+
			"Do not take it where two goroutines may ask: the session is the owner, so that both have the lock, and one unlocks for the other."),
		advise(nats.KV, "Take it where NATS is there anyway, and check the revision at whatever the lock guards. "+
			"Do not take it in a bucket that may lose its data: a revision then comes again, and an old holder overwrites the hold of the next."),
		advise(nats.OnTime, "Take it where NATS is there anyway, and check the revision at whatever the lock guards. "+
			"Do not take it where a waiter must be served in order or at once: waiters ask every 250 ms."),
		advise(nats.Blind, "Never take it: its unlock deletes whatever hold is there."),
		advise(nats.KeyTTL, "Do not take it: the first renewal takes the time to live from the key, and a holder that dies then holds the lock for ever."),
		advise(chubby.Lock, "Nobody can take it, since it is written after a paper and exists only here. Its kind suits locks that are held for minutes or longer and that a fail-over must not cost. "+
			"It does not suit a lock that must be free soon after a crash: the lock-delay keeps everybody off for a minute."),
		advise(chubby.WithoutDelay, "Nobody can take it, since it is written after a paper and exists only here. Its kind suits locks that a fail-over must not cost, if whatever they guard checks the sequencer. "+
			"Without that check a late request of a dead holder does harm."),
		advise(mysql.GetLock, "Take it where the work is done on the very connection that holds the lock, so that both end together. "+
			"Do not take it where the work is elsewhere: a connection that is lost frees the lock, and its holder is not told."),
		advise(mysql.GetLockPool, "Never take it: the unlock may go to another connection of the pool, and the lock stays with the first."),
		advise(mysql.RowLock, "Take it for jobs of minutes on a database that is there anyway, and check the token at whatever it guards. "+
			"Do not take it where a waiter must be served soon or in order: waiters ask five times a second."),
		advise(blpop.Subject, "Take it for short work on one Redis server where a waiter must be served at once after an unlock. "+
			"Do not take it where a hold may end without an unlock: waiters then block for up to another lease."),
		advise(retold.ValkeyrieEtcd, "Take it with valkeyrie on etcd as etcd-mutex, and look at the channel of Lock, which is nil after a Lock that was cancelled. "+
			"Do not take it where a second owner costs data, since the library gives no token."),
		advise(retold.ValkeyrieZooKeeper, "Take it with valkeyrie on ZooKeeper where a dead holder may block others for a session. "+
			"Do not take it where a second owner costs data: a holder that is cut off hears of it when it is connected again, and the library gives no token."),
	}
}

func advise(s locktest.Subject, advice string) locktest.Subject {
	s.Advice = advice
	return s
}
