// Package known lists the known defects of the locks of this module. docs/peers.md and
// docs/servers.md explain their causes.
package known

import (
	"slices"

	"lockstep/known/defect"
	"lockstep/model"
	"lockstep/scenarios/subject"
)

// since is the version of the list of defects at which most of these were added, wider the one at
// which causes were added to some of them, and newest the one at which the last were added.
const (
	since  = 6
	wider  = 8
	newest = 9
)

// among returns a function that reports whether a lock has one of these names. The program that
// registers the list has these locks, and refuses other locks with the same names.
func among(names ...string) func(*subject.Subject) bool {
	return func(l *subject.Subject) bool { return slices.Contains(names, l.Unplanted().Name) }
}

var (
	etcdLocks  = []string{"etcd-mutex", "etcd-mutex-one-session", "valkeyrie-etcd"}
	natsLocks  = []string{"nats-kv", "nats-kv-on-time", "nats-kv-blind", "nats-kv-key-ttl"}
	zookeepers = []string{"zookeeper", "zookeeper-closing"}
	anyZK      = append([]string{"valkeyrie-zookeeper"}, zookeepers...)
)

// onHold are the judges that notice when a hold ends before its owner gives it up. onServer are the
// judges that notice when the server keeps the lock, or a place in the queue, for an owner that
// does not know it.
var (
	onHold   = []string{model.JudgeMutualExclusion, model.JudgeMisdelete, model.JudgeLinearizable, model.JudgeWorkload}
	onServer = []string{model.JudgeTidy, model.JudgeLiveness, model.JudgeLinearizable, model.JudgeLease}
)

// Defects are the known defects. Where a record has the causes of several, the first of them
// names a finding.
var Defects = []defect.Defect{

	// Memcached.
	{
		ID:      "MEMCACHED-misdelete",
		Title:   "an unlock deletes whatever hold is there",
		Story:   "delete names a key and no value. If the hold of the caller is over, because its expiry has ended or the key was evicted, the unlock removes the hold of the next owner. The protocol has no delete that compares, and this lock does without gets and cas: the lock is to blame. memcached-cas compares.",
		Judges:  onHold,
		Applies: among("memcached-add", "memcached-add-forever"),
		Cause:   misdeleted,
		Since:   wider,
	},
	{
		ID:      "MEMCACHED-late-unlock",
		Title:   "an unlock of unknown outcome arrives late and deletes a later hold of its own thread",
		Story:   "The client gives a delete up that is still on its way, and the caller locks anew. The delete arrives and removes the new hold, since it compares nothing. The lock is to blame, as in MEMCACHED-misdelete.",
		Judges:  onHold,
		Applies: among("memcached-add", "memcached-add-forever"),
		Cause:   (*defect.Case).LateUnlock,
		Since:   wider,
	},
	{
		ID:      "MEMCACHED-last-second",
		Title:   "a hold ends up to a second before its expiry is over",
		Story:   "The clock of memcached shows whole seconds, so that an item of 8 s may end after 7 s (doc/protocol.txt, section Expiration times). A holder that relies on the whole expiry meets another in its last second, without any fault. The lock is to blame. memcached-cas tells its holder a second before.",
		Judges:  []string{model.JudgeMutualExclusion, model.JudgeWorkload},
		Applies: among("memcached-add"),
		Cause:   endedBeforeLease,
		Since:   since,
	},

	// NATS.
	{
		ID:      "NATS-create-finds-deleted",
		Title:   "Create says that a key exists that was deleted",
		Story:   "The first request of Create is refused if the key was there before and was deleted, or ended with a time to live of its own. Create then asks for the last message, and writes again if that marks a deletion. If the second request has no answer, since the time of the caller is over or the connection is lost, Create returns the error of the first one: ErrKeyExists. It does so, too, if the time to live of the mark ends between its requests. The client library is to blame. Nothing is left behind.",
		Judges:  []string{model.JudgeLinearizable},
		Applies: among(natsLocks...),
		Cause:   foundDeleted,
		Since:   newest,
	},
	{
		ID:      "NATS-revision-again",
		Title:   "a server that lost its data gives revisions away again",
		Story:   "The server counts revisions from 1 after it has lost its data. An earlier holder may then have the same revision as the next owner: its renewal overwrites the key of the next owner, and its delete removes it, or succeeds on a key that is deleted already. The lock is to blame for a bucket that may lose its data. nats-kv-on-time begins to count with the time.",
		Judges:  append([]string{model.JudgeLease}, onHold...),
		Applies: among("nats-kv", "nats-kv-key-ttl"),
		Cause:   cameAgain(false),
		Since:   wider,
	},
	{
		ID:      "NATS-blind-revision-again",
		Title:   "a server that lost its data gives revisions away again, and a renewal takes the hold of another",
		Story:   "As in NATS-revision-again, a renewal of an earlier holder overwrites the key of the next owner. The unlock of this lock names no revision: what it removes is NATS-blind-delete.",
		Judges:  append([]string{model.JudgeLease}, onHold...),
		Applies: among("nats-kv-blind"),
		Cause:   cameAgain(true),
		Since:   wider,
	},
	{
		ID:      "NATS-blind-delete",
		Title:   "an unlock without a revision removes whatever hold is there",
		Story:   "The lock deletes its key without the revision that it wrote last. If its hold is over, the delete removes the hold of the next owner. The lock is to blame: LastRevision is an option of Delete.",
		Judges:  onHold,
		Applies: among("nats-kv-blind"),
		Cause:   misdeleted,
		Since:   wider,
	},
	{
		ID:      "NATS-blind-answer",
		Title:   "an unlock without a revision says that it has released a lock that is free",
		Story:   "A delete without a revision succeeds whether there is a key or not. The caller is told that it gave the lock up, although its hold was over before. The lock is to blame, as in NATS-blind-delete.",
		Judges:  []string{model.JudgeLinearizable},
		Applies: among("nats-kv-blind"),
		Cause:   deletedNothing,
		Since:   since,
	},
	{
		ID:      "NATS-renews-after-ttl",
		Title:   "a renewal succeeds although the time to live is over",
		Story:   "The store looks for entries that have ended every 250 ms, by a clock that shows tenths of a second. Until it removes an entry, a renewal finds it and prolongs the hold, although its holder was told that the hold is gone. Nobody else had the lock in between, but everybody waits for another time to live. The server is to blame.",
		Judges:  []string{model.JudgeLiveness},
		Applies: among("nats-kv", "nats-kv-on-time", "nats-kv-blind"),
		Cause:   renewedLate,
		Since:   wider,
	},
	{
		ID:      "NATS-lost-hold-stays",
		Title:   "the key of a hold that its holder counts as lost stays until its time to live is over",
		Story:   "The holder counts its time from before the request that took or prolonged the hold, and the server from its arrival. If that request was late, and no later renewal arrives, the holder is told that the hold is lost while the server still has the key. Its unlock deletes nothing, since another hold might have the revision. The lock is to blame: everybody waits for the rest of the time to live.",
		Judges:  []string{model.JudgeLiveness},
		Applies: among("nats-kv", "nats-kv-on-time", "nats-kv-key-ttl"),
		Cause:   unaskedUnlock,
		Since:   newest,
	},
	{
		ID:      "NATS-update-takes-ttl",
		Title:   "an update takes the time to live of a key away",
		Story:   "KeyTTL is an option of Create only. An update writes the key anew without it, although the comment of Update says that it resets the time to live. A holder that renews once and then dies holds the lock for ever, and a renewal succeeds however late it is. The lock is to blame, which renews a key with a time to live of its own, and the comment.",
		Judges:  []string{model.JudgeLease, model.JudgeLiveness, model.JudgeTidy},
		Applies: among("nats-kv-key-ttl"),
		Cause:   endless,
		Since:   wider,
	},

	// redsync.
	{
		ID:      "REDSYNC-late-clean-up",
		Title:   "the clean-up of one try deletes the hold of a later try of the same call",
		Story:   "LockContext draws one value for all its tries. After a try that failed it deletes the key if it has that value. If this deletion arrives late, it finds the key of a later try, and deletes the hold that its caller was just given. The library is to blame: a new value for each try would prevent it.",
		Judges:  []string{model.JudgeLease, model.JudgeMutualExclusion, model.JudgeLinearizable, model.JudgeWorkload},
		Applies: among("redsync-1", "redsync-5", "redsync-5-set-on-extend"),
		Cause:   cleanedUpLate,
		Since:   since,
	},
	{
		ID:      "REDSYNC-interrupted-try",
		Title:   "an interrupted try leaves its keys until their lease ends",
		Story:   "After a try that failed, LockContext deletes its keys with a context that it derives from the caller's. If that has ended, nothing is sent, and the keys stay on their servers. Two such tries can hold a majority together, so that nobody gets the lock. The library is to blame: the clean-up needs a context of its own. With one server, a try that set its key either succeeded or has an unknown outcome.",
		Judges:  []string{model.JudgeLinearizable, model.JudgeLiveness, model.JudgeTidy},
		Applies: among("redsync-5", "redsync-5-set-on-extend"),
		Cause:   interruptedTry,
		Since:   since,
	},
	{
		ID:      "REDSYNC-set-on-extend",
		Title:   "with WithSetNXOnExtend an extension sets the keys of a hold that is lost",
		Story:   "With this option an extension sets the keys that are gone. If the lease of a holder has ended, and nobody has a majority of the keys, the holder is told that its hold is extended, whoever had the lock in between. An extension whose answer is lost sets the keys, too, and they refuse everybody until their lease ends. The option of the library is to blame, and the caller that extends late.",
		Row:     "extend-after-the-hold-is-lost",
		Judges:  []string{model.JudgeLinearizable, model.JudgeMutualExclusion, model.JudgeWorkload},
		Applies: among("redsync-5-set-on-extend"),
		Cause:   extendsLost,
		Since:   wider,
	},
	{
		ID:      "REDSYNC-asks-often",
		Title:   "a waiter sends each server up to 22 commands a second",
		Story:   "A try that failed is a SET and a deletion, and the next try comes after 50 to 250 ms. The library intends this. It matters when there are many waiters.",
		Judges:  []string{model.JudgeTraffic},
		Applies: among("redsync-1", "redsync-5", "redsync-5-set-on-extend"),
		Cause:   asksAgain,
		Since:   wider,
	},

	// rueidislock.
	{
		ID:      "RUEIDISLOCK-own-key",
		Title:   "the client sends a lost acquire again, and takes its own key for that of another",
		Story:   "The answer to the acquire is lost, and the client sends it again. The script finds the key that the first one left, does not look whose it is, and answers nil. The caller is told that the lock is taken, and the key stays until its lease ends. The library is to blame: the script must recognize its own value.",
		Row:     "answer-to-the-acquire-lost",
		Judges:  []string{model.JudgeLinearizable, model.JudgeLiveness, model.JudgeMutualExclusion},
		Applies: among("rueidislock-1", "rueidislock-2", "rueidislock-patient"),
		Cause:   ownKey,
		Since:   wider,
	},
	{
		ID:      "RUEIDISLOCK-gives-a-try-up",
		Title:   "a waiter whose try is given up waits for a free lock",
		Story:   "A try is given up after TryNextAfter, 20 ms by default, or when the server refuses it. That includes the time in which the client connects. The try leaves no key behind, so no key changes, and nothing wakes the waiter, not even a connection that comes up later. On a network whose round trip takes 20 ms, or after a connection that was lost or late, it waits for ever for a free lock. The library is to blame. A longer TryNextAfter avoids it.",
		Row:     "free-lock-on-a-slow-network",
		Judges:  []string{model.JudgeLiveness},
		Applies: among("rueidislock-1", "rueidislock-2", "rueidislock-patient"),
		Cause:   givenUp,
		Since:   wider,
	},
	{
		ID:      "RUEIDISLOCK-one-key",
		Title:   "one key that is left is enough to refuse a try, although the majority is free",
		Story:   "A try takes the keys one after another, and ends at the first key that is taken: it counts the keys behind that one as taken, too. So one key of three that nobody needs any more refuses everybody until its lease ends. A client that crashes in a try leaves such a key, and so does an unlock if the server refuses one of its deletions, which the caller is not told. The library is to blame: it must ask for the other keys.",
		Judges:  []string{model.JudgeLinearizable, model.JudgeLiveness},
		Applies: among("rueidislock-2"),
		Cause:   behindOneKey,
		Since:   wider,
	},
	{
		ID:      "RUEIDISLOCK-deletes-first",
		Title:   "the keys are deleted before the holder is told",
		Story:   "A renewal that the server refuses, or that has no answer, ends the hold: the locker deletes the keys, and then ends the context of the hold. A waiter that comes between the two gets the lock while its holder still works. The library is to blame: it must tell the holder first.",
		Row:     "keys-deleted-before-the-holder-is-told",
		Judges:  []string{model.JudgeMutualExclusion, model.JudgeLinearizable, model.JudgeWorkload},
		Applies: among("rueidislock-1", "rueidislock-2", "rueidislock-patient"),
		Cause:   deletedBefore,
		Since:   since,
	},
	{
		ID:      "RUEIDISLOCK-told-late",
		Title:   "a holder whose extension is held up is told after its lease",
		Story:   "An extension may wait for its answer until the end of the lease that it asks for (rueidis 1.0.79, rueidislock/lock.go, function script). The lease that the holder has ends half a KeyValidity earlier. So a holder that is cut off, or whose extension or its answer is late, works on while another has the lock. The library is to blame: it must end the context of the hold with the lease that it has, counted from the sending.",
		Judges:  []string{model.JudgeMutualExclusion, model.JudgeLease, model.JudgeWorkload},
		Applies: among("rueidislock-1", "rueidislock-2", "rueidislock-patient"),
		Cause:   toldLate,
		Since:   newest,
	},
	{
		ID:      "RUEIDISLOCK-connects-in-a-try",
		Title:   "a single try that finds its connection broken makes a new one, and is late",
		Story:   "A try has its time bounded by that of its caller, but not the connection that it makes: some five round trips. The library is to blame for the little that it is.",
		Judges:  []string{model.JudgeWaitBound},
		Applies: among("rueidislock-1", "rueidislock-2", "rueidislock-patient"),
		Cause:   connects,
		Since:   since,
	},

	// etcd.
	{
		ID:      "ETCD-unchecked-unlock",
		Title:   "an unlock after the end of the lease returns no error",
		Story:   "Mutex.Unlock deletes its key and does not look whether there was one. The caller is told that it gave the lock up, although its lease had ended before. The library is to blame.",
		Judges:  []string{model.JudgeLinearizable},
		Applies: among(etcdLocks...),
		Cause:   deletedNothing,
		Since:   newest,
	},
	{
		ID:      "ETCD-key-stays",
		Title:   "an acquire that is given up in its transaction leaves its key",
		Story:   "If Lock or TryLock is given up while its transaction is under way, the key may be written, and is not deleted: Mutex.Lock cleans up after a wait that failed, and not after a transaction that failed. Everybody waits behind the key until its session is over. The library is to blame.",
		Judges:  onServer,
		Applies: among(etcdLocks...),
		Cause:   leftBehind,
		Since:   newest,
	},
	{
		ID:      "ETCD-shared-session",
		Title:   "threads that share a session both get the lock, and one unlocks for the other",
		Story:   "The key of a Mutex has the name of its session. A second Lock or TryLock in the session that has the lock finds that key and is granted, and Unlock of either deletes it. A TryLock that is refused deletes the key with which another thread of the session waits. The documents say that two calls with one lease are a single acquisition, so the lock is to blame: its threads must ask one by one, or have a session each.",
		Judges:  []string{model.JudgeMutualExclusion, model.JudgeLinearizable, model.JudgeMisdelete, model.JudgeFencing, model.JudgeLease, model.JudgeWorkload},
		Applies: among("etcd-mutex-one-session"),
		Cause:   sharedPlace,
		Since:   newest,
	},
	{
		ID:      "ETCD-told-late",
		Title:   "a holder that is cut off is told after its lease",
		Story:   "The client counts the lease from the answer to a keepalive, and looks only now and then whether it is over (client/v3 3.7.3, lease.go, functions recvKeepAlive and deadlineLoop). The server counts it from the request. So the channel Done of a session whose keepalives are held up is closed up to a second after the lease, and another may have the lock. The library is to blame: it must count from the sending.",
		Judges:  []string{model.JudgeMutualExclusion, model.JudgeLease, model.JudgeWorkload},
		Applies: among(etcdLocks...),
		Cause:   toldLate,
		Since:   newest,
	},

	// ZooKeeper.
	{
		ID:      "ZK-server-behind",
		Title:   "a client that has seen more than the server never comes back",
		Story:   "A server that has lost its data refuses a client that has seen a later transaction. The client connects again every second, and neither ends its session nor tells its callers. The administrator is to blame for the loss, and the client library for a wait without an end: newer clients of other languages do the same.",
		Judges:  []string{model.JudgeLiveness, model.JudgeWorkload},
		Applies: among(anyZK...),
		Cause:   newerThanServer,
		Since:   wider,
	},
	{
		ID:      "ZK-229",
		Title:   "the node of a Lock that failed stays (issue 229)",
		Story:   "If a request of Lock after the one that creates the node fails, Lock returns the error and forgets the node. The session goes on, and with it the node: everybody waits behind it, the session itself among them. The library is to blame; the repair, pull request 237, is open.",
		Row:     "answer-to-getchildren-lost",
		Issues:  []int{229},
		Judges:  append([]string{model.JudgeWorkload}, onServer...),
		Applies: among("zookeeper"),
		Cause:   leftBehind,
		Since:   since,
	},
	{
		ID:      "ZK-close-unsent",
		Title:   "a session that is closed without a connection ends with its timeout",
		Story:   "The caller closes the session after a Lock that failed. If the failure was the loss of the connection, the library has none to send the close on, and does not make one. The node stays until the timeout of the session. The library is to blame for the wait of 10 to 12 s.",
		Judges:  onServer,
		Applies: among("zookeeper-closing", "valkeyrie-zookeeper"),
		Cause:   leftBehind,
		Since:   since,
	},
	{
		ID:      "ZK-unlock-forgotten",
		Title:   "the node of an unlock that failed stays, and its session is renewed",
		Story:   "An unlock whose request or answer is lost returns an error. The node stays, and the session that goes on keeps it: nobody gets the lock until the caller unlocks again or closes the session. The caller is to blame, and the library, which says nothing of it. zookeeper-closing closes the session.",
		Judges:  append([]string{model.JudgeWorkload}, onServer...),
		Applies: among(zookeepers...),
		Cause:   unlockedInVain,
		Since:   since,
	},

	{
		ID:      "ZK-own-node",
		Title:   "a Lock whose node was deleted is granted without a node",
		Story:   "Lock waits until no child has a lower number than its own node, and never looks whether its own node is among the children. If an operator deletes the queue while it waits, it is granted as soon as the nodes before its own are gone. The server keeps nothing for this hold, so that others get the lock beside it. The library is to blame: it must look for its own node, as etcd's concurrency.Mutex does.",
		Judges:  []string{model.JudgeMutualExclusion, model.JudgeLinearizable, model.JudgeWorkload},
		Applies: among(anyZK...),
		Cause:   grantedWithoutPlace,
		Since:   newest,
	},

	// MySQL.
	{
		ID:      "MYSQL-unlock-elsewhere",
		Title:   "an unlock through the pool goes to another connection, and the lock stays with the first",
		Story:   "A user lock belongs to a session. The pool gives each statement any connection, so RELEASE_LOCK may ask a session that does not have the lock. It is answered 0, and the lock stays until the first connection ends. The lock is to blame: raystack/frontier issue 1918, jackc/tern issue 146.",
		Row:     "unlock-through-the-pool",
		Judges:  append([]string{model.JudgeWorkload}, onServer...),
		Applies: among("mysql-get-lock-pool"),
		Cause:   unlockedElsewhere,
		Since:   since,
	},
	{
		ID:      "MYSQL-shared-session",
		Title:   "the pool gives two threads one session: both get the lock, and one unlocks for the other",
		Story:   "GET_LOCK in the session that has the lock succeeds, and so does RELEASE_LOCK. The pool gives a connection that is idle, such as the one that has the lock, to another thread. The lock is to blame: it must keep the connection for the hold.",
		Judges:  []string{model.JudgeMutualExclusion, model.JudgeLinearizable, model.JudgeMisdelete, model.JudgeWorkload},
		Applies: among("mysql-get-lock-pool"),
		Cause:   sharedSession,
		Since:   since,
	},
	{
		ID:      "MYSQL-wait-goes-on",
		Title:   "a wait for a user lock that was given up goes on",
		Story:   "When the caller gives up, the driver closes the connection. The server goes on with GET_LOCK for up to a second: the lock asks for a second at a time, and MariaDB looks once a second whether the client of a longer statement is still there. The server is to blame.",
		Judges:  onServer,
		Applies: among("mysql-get-lock", "mysql-get-lock-pool"),
		Cause:   leftBehind,
		Since:   since,
	},
}
