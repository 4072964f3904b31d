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
	// CleansBlindly: the clean-up of an acquire that failed deletes without comparing.
	CleansBlindly Mutation = "cleans-blindly"
	// TurnKept: the threads of a process wait for one whose hold is over until it unlocks.
	TurnKept Mutation = "turn-kept"
	// ForgottenAfterError: an unlock whose request failed forgets the hold, so that the next one says that there is none.
	ForgottenAfterError Mutation = "forgotten-after-error"
	// LostAtHalf: the channel that tells of the end of the hold closes at half of the lease.
	LostAtHalf Mutation = "lost-at-half"
)

// A change says to which plumbings a mutation belongs.
type change struct {
	Mutation
	breaks  string // the promise that it breaks
	applies func(p Plumbing) bool
}

func renewing(p Plumbing) bool  { return p.Renewal != Never }
func renewable(p Plumbing) bool { return p.Renewal != Never || p.Extends }
func leased(p Plumbing) bool    { return p.Wake != Head }
func onOne(p Plumbing) bool     { return p.Servers == 1 }

// plainKey reports whether the key of a lock is a string with the value alone, and whoever finds it absent writes it.
func plainKey(p Plumbing) bool {
	return p.Release != Member && p.Levels != Counted && p.Wake != HandOver && p.Wake != Head
}

// changes are all mutations.
var changes = []change{
	{ConstantValue, "misdelete", func(p Plumbing) bool { return p.Wake != HandOver && p.Wake != Head }},
	{ValueKept, "misdelete", func(p Plumbing) bool { return p.Value != Fresh }},
	{ReleasesBlindly, "misdelete", func(p Plumbing) bool { return p.Release != Watch && leased(p) }},
	{ReleasesInTwo, "misdelete", func(p Plumbing) bool { return p.Release == Script && p.Wake != List && plainKey(p) }},
	{WatchesWithoutMulti, "misdelete", func(p Plumbing) bool { return p.Release == Watch }},
	{AlwaysReleased, "linearizable", func(p Plumbing) bool { return true }},
	{NotHeldAfterRetry, "linearizable", func(p Plumbing) bool { return p.Retry != Once }},
	{RenewsBlindly, "misdelete", renewable},
	{RenewsInTwo, "misdelete", func(p Plumbing) bool { return renewable(p) && plainKey(p) && p.Renewal != Pipeline }},
	{RenewsUntilError, "lease", renewing},
	{RenewalGoesOn, "lease", renewing},
	{LeaseGrows, "lease", renewable},
	{LeaseFromReply, "lease", func(p Plumbing) bool { return p.Lost }},
	{DriftIgnored, "mutual-exclusion", func(p Plumbing) bool { return p.Servers > 1 && p.Lost }},
	{NoLease, "lease", func(p Plumbing) bool { return plainKey(p) && !p.Fenced && p.Renewal != Hook }},
	{TakesInTwo, "lease", func(p Plumbing) bool { return plainKey(p) && !p.Fenced && p.Renewal != Hook }},
	{TokenBeforeTake, "fencing", func(p Plumbing) bool { return p.Fenced }},
	{BusyAfterError, "linearizable", func(p Plumbing) bool { return leased(p) && onOne(p) && p.Retry != ByLock }},
	{RetriedTakeRefused, "linearizable", func(p Plumbing) bool { return p.Retry != Once && p.Levels == Flat && leased(p) && p.Wake != HandOver }},
	{LostNever, "lease", func(p Plumbing) bool { return p.Lost }},
	{LostAtHalf, "lease", func(p Plumbing) bool { return p.Lost }},
	{SubscribesUnchecked, "liveness", func(p Plumbing) bool { return p.Wake == Publish }},
	{WaitsForMessages, "liveness", func(p Plumbing) bool { return p.Wake == Publish }},
	{PublishesFirst, "liveness", func(p Plumbing) bool { return p.Wake == Publish }},
	{PollsAtOnce, "traffic", func(p Plumbing) bool { return p.Wake == Poll }},
	{LeaverStays, "tidy", func(p Plumbing) bool { return p.Wake == HandOver || p.Wake == Head }},
	{WakesTheLast, "fifo", func(p Plumbing) bool { return p.Wake == HandOver }},
	{LevelsForgotten, "hold-count", func(p Plumbing) bool { return p.Levels == Counted }},
	{LevelsNotCounted, "hold-count", func(p Plumbing) bool { return p.Levels == Counted }},
	{MinoritySuffices, "mutual-exclusion", func(p Plumbing) bool { return p.Servers > 1 }},
	{PartsLeft, "tidy", func(p Plumbing) bool { return p.Servers > 1 }},
	{CleansBlindly, "misdelete", func(p Plumbing) bool { return p.Taking == CleansUp }},
	{TurnKept, "liveness", func(p Plumbing) bool { return p.Value == Process }},
	{ForgottenAfterError, "linearizable", func(p Plumbing) bool { return true }},
}

// Mutations returns the mutations that a plumbing can have.
func (p Plumbing) Mutations() (mutations []Mutation) {
	for _, c := range changes {
		if c.applies(p) {
			mutations = append(mutations, c.Mutation)
		}
	}
	return mutations
}
