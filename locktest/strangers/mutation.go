package strangers

// Mutation is one change of a right lock, which breaks a promise of it.
type Mutation string

const (
	// Unchanged is the right lock.
	Unchanged Mutation = ""
	// ConstantValue: each hold has the same value, so that any unlock deletes any hold.
	ConstantValue Mutation = "constant-value"
	// ValueKept: the value of a handle or a process is not drawn anew, so that an unlock that arrives late
	// deletes the next hold.
	ValueKept Mutation = "value-kept"
	// ReleasesBlindly: the unlock deletes without comparing.
	ReleasesBlindly Mutation = "releases-blindly"
	// ReleasesInTwo: the unlock compares, and deletes in another request.
	ReleasesInTwo Mutation = "releases-in-two"
	// WatchesWithoutMulti: the unlock deletes after WATCH and GET, outside of a transaction.
	WatchesWithoutMulti Mutation = "watches-without-multi"
	// AlwaysReleased: an unlock that found no hold says that it ended one.
	AlwaysReleased Mutation = "always-released"
	// NotHeldAfterRetry: an unlock whose first try may have ended the hold says that it ended none.
	NotHeldAfterRetry Mutation = "not-held-after-retry"
	// RenewsBlindly: the renewal prolongs without comparing.
	RenewsBlindly Mutation = "renews-blindly"
	// RenewsInTwo: the renewal compares, and prolongs in another request.
	RenewsInTwo Mutation = "renews-in-two"
	// RenewsUntilError: one renewal that fails ends the renewals.
	RenewsUntilError Mutation = "renews-until-error"
	// RenewalGoesOn: the renewals do not end with the unlock.
	RenewalGoesOn Mutation = "renewal-goes-on"
	// LeaseGrows: a renewal adds a lease to what is left of it.
	LeaseGrows Mutation = "lease-grows"
	// LeaseFromReply: the lease counts from the reply.
	LeaseFromReply Mutation = "lease-from-reply"
	// DriftIgnored: the lease on several servers has no margin.
	DriftIgnored Mutation = "drift-ignored"
	// NoLease: a hold has no end.
	NoLease Mutation = "no-lease"
	// TakesInTwo: the lease is set in a request after the one that takes the lock.
	TakesInTwo Mutation = "takes-in-two"
	// TokenBeforeTake: the token is drawn in a request before the one that takes the lock.
	TokenBeforeTake Mutation = "token-before-take"
	// BusyAfterError: an acquire whose request failed says that the lock is busy.
	BusyAfterError Mutation = "busy-after-error"
	// RetriedTakeRefused: an acquire that is sent again does not know the value of its first try.
	RetriedTakeRefused Mutation = "retried-take-refused"
	// LostNever: the channel that tells of the end of the hold never closes.
	LostNever Mutation = "lost-never"
	// SubscribesUnchecked: a waiter does not ask again once it has subscribed, and then waits for a message.
	SubscribesUnchecked Mutation = "subscribes-unchecked"
	// WaitsForMessages: a waiter asks again only after a message.
	WaitsForMessages Mutation = "waits-for-messages"
	// PublishesFirst: the release publishes before it deletes, and a waiter asks again only after a message.
	PublishesFirst Mutation = "publishes-first"
	// PollsAtOnce: a waiter asks again after some milliseconds.
	PollsAtOnce Mutation = "polls-at-once"
	// LeaverStays: a waiter that gives up stays in the queue.
	LeaverStays Mutation = "leaver-stays"
	// WakesTheLast: the release hands the lock to the last waiter.
	WakesTheLast Mutation = "wakes-the-last"
	// LevelsForgotten: an unlock gives up all levels.
	LevelsForgotten Mutation = "levels-forgotten"
	// LevelsNotCounted: a Lock of the holder adds no level.
	LevelsNotCounted Mutation = "levels-not-counted"
	// MinoritySuffices: one of three servers makes a hold.
	MinoritySuffices Mutation = "minority-suffices"
	// PartsLeft: an acquire that got no majority leaves its parts.
	PartsLeft Mutation = "parts-left"
)
