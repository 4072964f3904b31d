package explore

// story is what a reader is told of a known defect: what happens and who is to
// blame, and the row of the track record that it is, "" for none.
type story struct{ text, row string }

// stories are those of knownDefects, by name.
var stories = map[string]story{
	"DEL takes whatever hold is there when it arrives, and what follows from it": {
		text: "A holder works past its lease, the key goes to another, and the holder's DEL removes that one's key: the misdelete. A comparison before it does not help when the lease ends between GET and DEL. The lock is to blame: compare and delete must be one script."},
	"a SET that the client sends again finds the key that the first one left, and its caller is told that the lock is busy": {
		text: "The answer to SET NX is late or lost, and go-redis sends the command again, as it does three times unless told otherwise. The second finds the key that the first one left and is answered nil: the caller is told that another has the lock, and nobody gives it up before its lease ends. The lock is to blame: what is sent again must be known again, by the value that it left."},
	"a SET that the client sends again takes the lock anew when the hold that the first one took has ended unheard": {
		text: "The first SET NX takes the lock and its answer is late; a force unlock, or the end of the lease, ends that hold before the second SET arrives, which takes it again. One call held the lock twice, and who ended the first hold finds the lock taken by a call that began before. The lock is to blame, which sends again what it cannot tell from a new one; the force unlock is the caller's."},
	"an unlock that the client sends again finds the key gone that the first one deleted, and its caller is told that it did not hold the lock": {
		text: "The answer to the unlock is late or lost, and go-redis sends it again. The second finds nothing to delete, and the caller, whose lock was released in order, is told that it had lost it: it may undo what it did. The lock is to blame, as Redisson was (4871)."},
	"one string has no room to count a second entry": {
		text: "A second entry overwrites the first in the one string that the key holds, and the first unlock gives up both. The lock's form of data is to blame."},

	"a free lock can be unlocked by anyone (2018)": {row: "unlock-of-a-free-lock",
		text: "The unlock script answers success when the key is missing, without looking for the caller in it, and publishes. The release is to blame."},
	"a free fair lock can be unlocked by anyone (by design)": {row: "fair-unlock-of-a-free-lock",
		text: "The fair lock's unlock answers success when the key is missing, to anybody, and wakes the head of the queue. The library means it so; a caller who asks whether it still held the lock is told wrong."},
	"a try of the fair lock whose time is over stands in the queue until it has left, and others are refused meanwhile although the lock is free": {
		text: "A timed try of the fair lock is queued, finds that its time is over, and leaves with a second command. Until that has arrived it stands in front of the others: tries that come meanwhile are refused though the lock is free, and stand in the way of more in their turn. The release is to blame, which cannot ask without queueing."},
	"a force_unlock that is sent again ends the next owner's hold too, or answers that there was none": {
		text: "The answer to a force unlock is lost, the executor sends it again, and a thread that had got the lock in between loses it. The release is to blame: a force unlock leaves no mark by which its second run could be told."},
	"an unlock that is sent again takes two levels, or finds nothing and is an error (4871)": {row: "unlock-reply-lost",
		text: "The unlock runs, its reply is lost, and the executor sends it again. The second run takes another level, so that another thread enters while the owner believes to hold; or, at the last level, it finds nothing, and the true owner is told that it did not hold the lock. The release is to blame, which sends again what is not idempotent."},
	"an unlock that was given up as unknown arrives later and takes a level of a later hold of its thread (an owner is client and thread, not one acquisition)": {
		text: "An unlock that no answer came to is still on its way when the thread locks anew; then it arrives and ends the new hold. Owners are named by client and thread and not by acquisition, in every release and in most locks of this kind: the form is to blame, and a caller who locks again after an unknown outcome."},

	"an acquire that is sent again is granted twice, and one unlock leaves a level (6025, 7367)": {row: "acquire-reply-lost",
		text: "The acquire runs, its reply is lost, and its second run is taken for a re-entry: the count is 2, one unlock leaves 1, and others wait until that lease ends. The release is to blame; where scripts are followed by WAIT also the later ones, whose path forgets what must not be sent again."},
	"an acquire that was sent again arrives when its tryLock has answered false, and holds the lock for nobody (6025, 7367)": {
		text: "A tryLock is over, or a lock() has ended with an error, when another run of its acquire reaches the server and is granted. Nobody knows of the hold, and it lasts for its lease. The release is to blame."},
	"a tryLock whose answer does not come in time answers false, and its acquire may hold the lock all the same (7223, 7224)": {
		text: "Since 4.7.0 a tryLock that gets no answer in time answers false in place of an error, although the outcome is unknown: the lock may be held, for nobody, until its lease ends. The release is to blame for saying more than it knows."},

	"an unlock that failed leaves the renewal running (1602)": {row: "failed-unlock-renewed-forever",
		text: "An unlock fails on the network, the caller goes on, and the watchdog renews the hold as long as the process lives. The release is to blame."},
	"an unlock that is interrupted goes on, and the renewal goes on until it is answered": {
		text: "A thread is interrupted while its unlock is under way, and told that the outcome is unknown. The renewal is cancelled by the answer to the unlock, and not by the call: until it comes, or the client has given up sending it again, the watchdog renews a hold that its owner has given up. The release is to blame."},
	"the level that an acquire of unknown outcome leaves is renewed for ever: only the release of the last level ends the renewal": {
		text: "An acquire whose outcome the caller never learned has added a level. The unlocks that the caller knows of leave one, and the watchdog goes on renewing it. The release is to blame: it ends the renewal by what the server counts and not by what the caller holds."},
	"a renewal under way when the unlock is answered sets the timer again": {
		text: "The unlock cancels the timer while a renewal is on its way; its answer sets the timer again, and a lock that nobody holds is renewed if somebody of that name takes it. Where the thread has locked again before the answer, there are two timers then, of which its unlock ends one. The release is to blame."},
	"a renewal that found nothing is answered when a thread of its client has locked again, and the timer of the new hold is forgotten, which no unlock ends then": {
		text: "The answer to a renewal forgets whichever timer of the lock there is. One that finds the hold gone, and is answered when the thread, or another of its client, has locked anew, forgets the timer of that hold, which runs all the same: the unlock finds none to end, or ends one that entering again has set. The release is to blame: an answer is taken for whatever hold is there when it comes."},
	"an unlock that found nothing leaves the renewal running (2515)": {
		text: "An unlock that is refused because the hold was lost does not cancel the renewal, which goes on asking and renews the thread's next hold with the old timer. The release is to blame."},
	"an unlock that failed stops the renewal although the hold stays (since 3.8.1)": {
		text: "An unlock fails before it reached the server, or its error says so; the hold stays, but its renewal was cancelled, and the lock is lost one lease later while the owner may still work. The mirror of 1602, made by its fix: the release is to blame, and a caller who works on after a failed unlock."},
	"a force_unlock ends the renewal of its client's hold before it is sent, and the hold stays when it fails": {
		text: "The first thing that a force unlock does is to cancel the renewal of the lock in its own client. When its command is lost, the hold stays and is renewed no longer: it ends with its lease while its owner works. The release is to blame, and whoever forces open what another thread of the same process holds."},
	"one renewal that fails ends them (5698)": {row: "one-failed-renewal-ends-it",
		text: "One renewal is answered with an error or not at all, and none follows: the lease ends while the owner works, and another enters. The release is to blame."},
	"an attempt on a lock object, a failed one too, changes the lease and the period of the renewals of the hold that it waits for (up to 3.12.4)": {
		text: "The lock object keeps the lease of its last attempt, whosever it was and whatever came of it, and the watchdog's renewals take lease and period from there. A thread holds, another of its client asks with a lease of a second: the next renewal asks for a second only, and the one after it comes too late, or the hold gets longer than anybody asked. The releases are to blame, where threads share a lock object and leases are mixed."},
	"an unlock that is answered when another thread of its client has got the lock ends the renewal of that hold: a client has one timer a lock": {
		text: "A thread unlocks, its own hold or a lock that is free, which the earliest of these releases answer with success too. Before the answer comes another thread of the client has got the lock, and the answer cancels the one timer that the client has for that lock: the new hold is not renewed, ends with its lease, and a third thread enters beside its owner. The releases are to blame; it needs nothing but two threads of one process that use one lock and an unlock that is answered a little late."},
	"a renewal that fails or finds nothing leaves the entry behind, and no later hold is renewed (3194, 3712)": {row: "key-removed-then-never-renewed",
		text: "A renewal fails, or finds the key gone, and its entry stays in the client's map without a timer. A later hold of that lock finds the entry and sets no timer: it is never renewed. The release is to blame."},
	"a re-entered hold leaves its thread in the watchdog's queue after the last unlock (3.37.0 to 3.43.0)": {
		text: "Each entry queues the thread once more with the watchdog, and the last unlock takes it out once. The rest keeps asking for a hold that is over. The release is to blame."},
	"a renewal that was lost, late or could not leave, or had to ask for replicas first, is sent, or arrives, when the lock was unlocked meanwhile": {
		text: "A renewal is under way, or waits to be sent again, when its lock is unlocked, and reaches the server after that. It finds nothing, or the thread's next hold, which it may give another lease. All releases do so; it is harmless but where the next hold has a shorter lease of its own."},

	"a hold without lease starts with the lease that its lock object was last given, and may end before the first renewal (4818)": {
		text: "The lock object keeps the lease of an earlier call; a later lock without one starts with that. A short one is over before the watchdog's first renewal. The release is to blame, where a lock object is used with and without leases."},
	"entering again with a lease gives the whole hold that lease, and a level without lease ends with it": {
		text: "A thread that holds under the watchdog enters again with a short lease: the key has one time to live, so the outer level ends with the inner one's lease. By the form of data, in all releases; the caller mixes leases."},
	"a partial unlock after another gives the hold the watchdog's lease (5623)": {row: "partial-unlock-stretches-the-lease",
		text: "A lock entered several times with a lease is given up level by level; from the second unlock on the hold gets the watchdog's 30 s in place of its lease, because the lock object forgot it. The release is to blame."},
	"an unlock that leaves levels gives the hold the lease that its lock object keeps: the watchdog's, where the object is another one or was released meanwhile": {
		text: "An unlock that leaves levels starts the lease anew, with what the lock object at hand keeps. Through another object of the same name, or after a release by another thread of the process, that is the watchdog's lease: a hold with a short lease lasts longer than granted, and one with a long lease is over before its time. In all releases; a relative of 5623."},
	"an unlock that found nothing takes one level off the watchdog, which goes on renewing what was entered more than once": {
		text: "The hold was lost, the unlock is refused, and takes one level off the watchdog's count, which had more: the watchdog goes on for a hold that is over. The release is to blame."},
	"a hold that others ended leaves its levels with the watchdog, which renews the thread's next hold, whatever its lease, and when it is given up": {
		text: "A force unlock or an operator ended a hold of several levels, of which the watchdog keeps count. The thread's next hold is renewed although it has a lease of its own, and the renewals go on when it was given up. The release is to blame."},
	"a timer that was set while the lock object kept a longer lease fires past the end of the hold (up to 3.12.4)": {
		text: "An attempt with a lease, a failed one too, leaves that lease in the lock object, and a timer of the watchdog that is set then waits for a third of it. A client has one timer a lock, so that a later hold without a lease, which lasts as long as the watchdog's, may be over before that timer fires. The release is to blame, where leases are mixed."},
	"a hold that others ended leaves its timer, which renews the thread's next hold, whatever its lease": {
		text: "A force unlock or an operator ended a hold. The timer of its renewals, one for a lock and a client, hears of that with the next renewal only; when the thread has locked again by then, with a lease of its own, that hold is renewed and does not end. The release is to blame: a timer is of a name, and not of a hold."},
	"a level with a lease is renewed when one without was entered above it and released: only the release of the last level ends the renewal": {
		text: "A thread enters with a lease and again without one, and unlocks once. What is left is the level with the lease, which the caller may well leave to end by itself; but the renewal that the other level began goes on, and others wait as long as the process lives. The release is to blame, where leases are mixed."},
	"a renewal that found nothing is answered when the thread has locked again, and ends the renewal of the new hold": {
		text: "A renewal finds the hold gone; before its answer comes the thread has locked anew. The answer ends the renewal of the new hold, which is over one lease later while its owner works. The release is to blame: an answer is taken for whatever hold is there when it comes."},
	"no renewal is sent before the one before has its answer, so that a lost one costs the response timeout, which a short watchdog timeout does not outlast": {
		text: "The watchdog sends no renewal while one is under way. When its message is lost the client waits for the response timeout, and with a watchdog timeout of a few seconds the hold is over by then. The release is to blame, and whoever sets a watchdog timeout that is not several response timeouts long."},
	"a lock() that is interrupted while it waits returns as if it had the lock (1593)": {row: "interrupted-lock-returns-unlocked",
		text: "The form of lock() that cannot be interrupted notes an interrupt and leaves its wait, without an error and without the lock. Two threads work at once, and the unlock of the second is refused. The release is to blame."},
	"an interrupted acquire that is granted all the same is renewed for nobody (2714, 4368)": {row: "interrupted-trylock-renewed-forever",
		text: "A caller is interrupted while its acquire is under way, and told that it has no lock. The grant comes, the watchdog takes it up, and renews it as long as the process lives. The release is to blame."},
	"the watchdog asks for the first thread of a client only: one whose hold others had ended keeps it from renewing the next": {
		text: "Of a client's threads that hold or held a lock the watchdog asks for the first. When that one's hold was ended by others, the answer is no, and the next thread's hold, which is real, goes without its renewal. The release is to blame."},
	"an unlock of a level with a lease takes a level off the watchdog, which renews the levels without one no longer": {
		text: "A thread enters without a lease and again with one, and unlocks once. The watchdog counted one level, and that is gone now: the hold that is left is not renewed. The release is to blame, where leases are mixed."},
	"an attempt without a lease takes the one that its lock object was last given, also a longer one than the watchdog's (4818)": {
		text: "The lock object keeps the lease of an earlier call, and a later one without a lease is granted that: a crash then blocks the others for that lease, and not for the watchdog's. The release is to blame, where a lock object is used with and without leases."},
	"a waiter asks for nothing until its subscription is confirmed, however free the lock is": {
		text: "The answer to a SUBSCRIBE is late or lost. The waiter waits for it, 7.5 s long or, in a timed try, until its time is over, and does not look at the lock meanwhile, which may have been given up at once. The release is to blame: it could ask again without a subscription."},
	"a waiter sleeps on the time to live that it was told, although that hold was given up or its lease cut short: an unlock wakes one thread of a client, and the end of a lease nobody": {
		text: "A waiter sleeps for the time to live that its last try was told. An unlock wakes one waiter of each client, and a lease that ends wakes none, so that the lock can be free and the waiter asleep until that time is over. In all releases; it ends by itself."},

	"an interrupt of a lock() that takes none makes it sleep its whole time anew, past the end of the hold": {
		text: "A thread waits in lock(), which takes no interrupts, and is interrupted. It swallows that, and begins the sleep that it was in once more, with the whole time that it was told before: the hold ends meanwhile, and the waiter, and on the fair lock those behind it, wait for the rest. The release is to blame."},
	"a waiter hears how long to wait when replicas have answered, up to a second later, and sleeps so long from then on": {
		text: "WAIT follows the script that tells a waiter how long the present hold has to live. The client takes both answers together, up to a second later when replicas are behind, and sleeps the whole time from then on: the lock is free meanwhile, and the end of a lease wakes nobody. The release is to blame, where replicas lag."},

	"a grant that no replica had in time is given back, and its caller has no place in the queue until it asks again": {
		text: "A replica is behind, so that WAIT counts none; the client gives the grant back and asks again later. A grant takes its thread out of the queue, and giving it back puts it nowhere: who came later goes first. The releases that give back are to blame; the caller waits on, and does not know that it has lost its place."},
	"a try is told that the lock is held while it is for a grant that is given back, since no replica had it in time": {
		text: "While a client waits for replicas, the lock is held on the server, and a try of another is told so. Then the grant is given back, and nobody is ever told that he had the lock: the try was refused for nothing. The releases that give back are to blame, where replicas lag."},
	"a waiter is thrown out of the queue while its client waits to send again what it had no answer to in time": {
		text: "The answer to a waiter's acquire comes later than the response timeout, because the way there and back is longer. The client has stopped listening and sends it again after a delay, and meanwhile the waiter's deadline passes: the next one that asks throws it out and goes first. The release is to blame, and a response timeout that is shorter than a round trip."},
	"who stands first in the queue waits to send again what its client had no answer to in time, and holds up those behind it": {
		text: "The answer to an acquire comes later than the response timeout, because a message or the replicas are slow. The client has stopped listening, and sends it again after a delay; its place at the head of the queue stays, and the lock is free meanwhile. The release is to blame, and a response timeout that is shorter than a round trip and the wait for replicas."},
	"lock() that ends with an error keeps its place in the queue, and its thread comes back to it (acquireFailed is not called)": {
		text: "A lock() of the fair lock ends with an error, and does not leave the queue as a tryLock does. Its place stands in the way of others until its deadline, and the thread finds it again when it comes back. The release is to blame."},
	"an acquire arrives when its call is over, and queues for nobody": {row: "fair-ghost-after-reply-timeout",
		text: "A call of the fair lock gives up without an answer and leaves the queue; its acquire reaches the server after that, and queues a thread that no longer waits. Others wait for its deadline. The release is to blame, which names a place by owner and not by call."},
	"no acquire takes its wait off the deadlines behind it, so that a dead waiter stands in the way for the waits of those before it too (2099)": {row: "fair-third-waiter-shares-deadline",
		text: "Deadlines in the queue add up wait on wait, or share one, and nothing takes them back when somebody enters: who waits behind a dead waiter waits for the waits of all that were before it too. The release is to blame."},
	"a dead waiter's place is kept for the time to live that the hold had when it came, however soon that was given up, and for its wait besides": {
		text: "A waiter's deadline is the hold's time to live when it came, and its wait. It dies, the hold is given up at once, and those behind it wait for a deadline that counts with a hold which is over. The release is to blame; nothing takes the rest of a hold off the deadlines when it ends."},
	"the head sleeps until its own deadline, past the end of the hold (4705)": {row: "fair-head-sleeps-past-expiry",
		text: "The first in the queue is told its own deadline in place of the hold's time to live, and sleeps past the end of a lease that nobody unlocks. The release is to blame."},
	"a waiter whose deadline is nearer than its wait is told a negative time and sleeps without bound": {
		text: "The queueing script answers the deadline less the wait less the time now, which is negative for one who asks a little early; the client takes a negative time for no bound and sleeps until a message comes. The release is to blame."},
	"a waiter sleeps on what it was told before others acquired, which took their waits off its deadline, and is thrown out of the queue": {
		text: "Every acquire takes its wait off the deadlines behind it, while the waiters sleep on what they were told before. One that sleeps past its new deadline is taken for dead and thrown out; it comes back at the end of the queue. The release is to blame."},
	"a tryLock in seconds without a lease is queued for as many milliseconds (4743)": {row: "fair-trylock-unit-mismatch",
		text: "The time of a tryLock that has no lease goes into the queue without its unit: who says 10 seconds has a place for 10 ms, and is taken for dead and thrown out when the next one looks. Who came later goes first. The release is to blame."},
	"each head that leaves takes its wait off all deadlines behind it, which are one wait apart at most: a waiter is thrown out while it sleeps on what it was told (1104, 2099)": {
		text: "All waiters behind the first share one deadline, and each that leaves the head of the queue takes its whole wait off it. After two have left the deadline of the rest is past, while they sleep on what they were told before: they are taken for dead, and come back behind those who came later. The release is to blame."},
	"a waiter sleeps on what it was told past its own deadline, where a hold outlasts the wait of its place, and is thrown out of the queue": {
		text: "A waiter is told the time to live of the hold, which is longer than the wait that its place is kept for. It sleeps past its deadline, is taken for dead, and loses its place to who came later. The release is to blame."},
	"a waiter that was thrown out of the queue while it slept is woken by no unlock, and sleeps on what it was told": {
		text: "A waiter lost its place while it slept; unlocks publish to the head's own channel, so none reaches it, and with nobody else in the queue the lock is free while it sleeps. It ends with what it was told. The release is to blame."},
	"an acquire that arrives when its lock() has ended with an error takes the turn of its thread, and the place of the call that waits by then": {
		text: "A lock() of the fair lock ends with an error, since its acquire is late; its thread calls again and waits in its turn. Then the late acquire arrives, finds its owner at the head of a free lock and takes it, and the place with it, for a call that is over. Who waits in the second call has a hold that it does not know of, and when that ends, those who came later go first. The release is to blame, which names holds and places by owner and not by call."},
	"who stands in the queue without a score is never thrown out of it (4153, 5989)": {row: "fair-waiter-without-score",
		text: "The set of deadlines was removed and the queue stayed, so that a waiter has a place and no deadline. Scripts that look at it fail, or take it for one that is not over: nobody behind it ever enters. The release is to blame, which keeps one truth under two keys."},
	"who has a deadline and no place in the queue is not queued again, and no unlock wakes it": {
		text: "The queue was removed and the set of deadlines stayed, so that waiters have a deadline and no place. The script that finds a deadline queues nobody, so they stay without; an unlock finds no head to wake, and they sleep on what they were told. The mirror of the waiter without a score: the release is to blame, which keeps one truth under two keys."},
	"a waiter that was thrown out of the queue and queues again is told the deadline of the one before it, and sleeps so long, past the end of the hold": {
		text: "A waiter lost its place, asks, and is queued again at the end, with the deadline of the one before it as its answer. It sleeps until then, though the lock may be free much earlier and unlocks wake the head only. The release is to blame."},
	"behind a dead waiter of a free lock the next one is told to wait 0 ms, and asks again at once, until that one's deadline (since 3.32.0)": {
		text: "The lock is free and a dead waiter is first in the queue. The next one is told the hold's time to live, of which there is none, so it asks again at once, some hundred times a second, until the dead one's deadline. The release is to blame."},
	"a waiter that asks in the last millisecond of what it waits for is told 0 ms, and asks again at once until that millisecond is over": {
		text: "A waiter wakes when a hold, or its own place in the fair queue, has less than a millisecond left. The answer is in whole milliseconds, 0, and a wait of 0 ms is none: it asks again at once, and again, until the millisecond is over. On a network of 20 us that is some thirty commands, on one of 1 ms it is one. The release is to blame, mildly: it ends by itself."},
	"a waiter sleeps on the time to live of a hold that was given up (scenario fair-sleeps-on-an-old-lease)": {
		text: "The head was told the time to live of a long hold and sleeps on it. The hold is given up before the head listens, or when another stands first who does not listen any more and leaves, or a short one follows and ends by its lease, of which nobody is told: the lock is free, and the head asleep. In all releases; it ends by itself."},
}

// outOfReach says of rows of the track record why no campaign names them.
var outOfReach = map[string]string{
	"fair-dead-waiters-add-up":   "it is a limit and no defect: liveness with a crash, below",
	"fair-deadline-drift":        "three processes must try for half a second each for half a minute, and two of them die in the queue; drawn calls are few and far between",
	"fair-trylock-unit-mismatch": "it needs the profile full on a fair lock from 3.21.3 on: a tryLock in seconds, without a lease, behind a hold that lasts longer",
	"fair-waiter-without-score":  "it needs an operator who removes the one key of a fair lock that has the deadlines while somebody waits",
}
