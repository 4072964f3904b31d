package defect

// Kind says what is wrong with the commands, the call or the fault of a cause.
type Kind string

// The kinds of causes.
const (
	// Commands that are sent again, late or unheard.
	RanTwice       Kind = "ran-twice"
	GrantedUnheard Kind = "granted-unheard"
	UnansweredTry  Kind = "unanswered-try"
	FoundItself    Kind = "found-itself"
	LateUnlock     Kind = "late-unlock"
	LateQueueing   Kind = "late-queueing"
	LateTurn       Kind = "late-turn"
	GivenBack      Kind = "given-back"

	// Calls.
	FreeUnlock       Kind = "free-unlock"
	ReturnedUnlocked Kind = "returned-unlocked"
	InterruptedGrant Kind = "interrupted-grant"
	EndlessUnlock    Kind = "endless-unlock"
	RefusedByLeaver  Kind = "refused-by-leaver"
	SecondEntry      Kind = "second-entry"
	EndedOthersHold  Kind = "ended-others-hold"

	// The watchdog.
	UnlockFailed    Kind = "unlock-failed"
	UnlockFoundNone Kind = "unlock-found-none"
	UnlockLeft      Kind = "unlock-left-levels"
	UnknownLevel    Kind = "unknown-level"
	ForcedInVain    Kind = "forced-in-vain"
	RenewalAcross   Kind = "renewal-across-unlock"
	RenewalUnderWay Kind = "renewal-under-way"
	RenewalFailed   Kind = "renewal-failed"
	RenewalPending  Kind = "renewal-pending"
	RenewalOfLast   Kind = "renewal-of-last-hold"
	RenewalOfOther  Kind = "renewal-of-other"
	RenewalOfRest   Kind = "renewal-of-rest"
	StoppedByOther  Kind = "stopped-by-other"
	EnteredAgain    Kind = "entered-again"
	LevelsLost      Kind = "levels-lost"
	LevelsMiscount  Kind = "levels-miscounted"

	// Leases.
	OtherLease     Kind = "other-lease"
	ShortLease     Kind = "short-lease"
	LongLease      Kind = "long-lease"
	LeaseCut       Kind = "lease-cut"
	LeaseStretched Kind = "lease-stretched"
	LongTimer      Kind = "long-timer"

	// Waiting.
	Unconfirmed      Kind = "unconfirmed"
	UnsubscribedTry  Kind = "unsubscribed-try"
	SleptAnew        Kind = "slept-anew"
	SleptLate        Kind = "slept-late"
	SleepsOn         Kind = "sleeps-on"
	SleepsOnDeadline Kind = "sleeps-on-deadline"
	SleepsForever    Kind = "sleeps-forever"
	SleepsUnqueued   Kind = "sleeps-unqueued"
	SendsAgain       Kind = "sends-again"
	ToldZero         Kind = "told-zero"
	ClockStepped     Kind = "clock-stepped"
	ClockDrifts      Kind = "clock-drifts"

	// The queue.
	KeptPlace    Kind = "kept-place"
	NoDeadline   Kind = "no-deadline"
	NoPlace      Kind = "no-place"
	TwoPlaces    Kind = "two-places"
	DeadHead     Kind = "dead-head"
	Drift        Kind = "deadline-drift"
	ThrownAsleep Kind = "thrown-out-asleep"
	ThrownByUnit Kind = "thrown-out-by-unit"
	ThrownUnsent Kind = "thrown-out-unanswered"
)

// NewKind makes a kind for a list of another module. text describes it for people, as those
// here do: a clause without a capital and without an end. Call it while the program starts. It panics
// if there is a kind of that name.
func NewKind(name, text string) Kind {
	k := Kind(name)
	if texts[k] != "" {
		panic("there is a kind of causes already that is called " + name)
	}
	texts[k] = text
	return k
}

// texts describes each kind for people.
var texts = map[Kind]string{
	RanTwice:       "the command of one call ran twice",
	GrantedUnheard: "the command was granted, and its call came back without the lock",
	UnansweredTry:  "the attempt had no answer, and its call came back as busy before its time was over",
	FoundItself:    "the command found the hold that the same call had taken",
	LateUnlock:     "the unlock ran when its call had returned, and took a level",
	LateQueueing:   "the attempt ran when its call had returned, and queued its thread",
	LateTurn:       "the attempt ran when its call had returned, and took the lock and the place of its thread",
	GivenBack:      "the grant was given back, since no replica had it in time",

	FreeUnlock:       "the unlock found the lock free and was answered as if it had held it",
	ReturnedUnlocked: "lock() returned as granted, and no command of it took the lock",
	InterruptedGrant: "the command was granted to a call that was interrupted",
	EndlessUnlock:    "the call of the unlock was interrupted, and its command was still without an answer",
	RefusedByLeaver:  "the attempt found the lock free, and a thread in front that was about to leave",
	SecondEntry:      "the owner entered again, and the value has no room for a second level",
	EndedOthersHold:  "the command ended a hold of another owner",

	UnlockFailed:    "the unlock failed or stayed without an answer",
	UnlockFoundNone: "the unlock found that its thread did not hold the lock",
	UnlockLeft:      "the unlock left levels, or came after one that did",
	UnknownLevel:    "the command took a level for a call whose outcome stayed unknown",
	ForcedInVain:    "the force_unlock ended nothing",
	RenewalAcross:   "the renewal was under way when the unlock returned",
	RenewalUnderWay: "the renewal had failed or was under way when the lock was unlocked",
	RenewalFailed:   "the renewal failed or could not leave",
	RenewalPending:  "the renewal had no answer when the hold ended",
	RenewalOfLast:   "the renewal of an earlier hold was answered during this one",
	RenewalOfOther:  "the renewal asked for another thread of the client",
	RenewalOfRest:   "the renewal prolonged the levels that an unlock had left",
	StoppedByOther:  "the unlock of another thread of the client was answered during this hold",
	EnteredAgain:    "the thread entered again without a lease",
	LevelsLost:      "the hold ended by another hand, with levels that the watchdog counts",
	LevelsMiscount:  "the unlock of a level with a lease was counted as one without",

	OtherLease:     "the command gave the hold another lease than the watchdog's, or asked for a longer one",
	ShortLease:     "the command asked for no lease and got a shorter one than the watchdog's",
	LongLease:      "the command asked for no lease and got a longer one than the watchdog's",
	LeaseCut:       "the command entered again and cut the lease of the hold",
	LeaseStretched: "the unlock left levels and changed the lease of the hold",
	LongTimer:      "the answer set a timer for a third of a longer lease than the watchdog's",

	Unconfirmed:      "the subscription was without confirmation, and its waiter asked for nothing",
	UnsubscribedTry:  "the subscription had no confirmation in time, and its call left the queue and came back as busy before its time was over",
	SleptAnew:        "the interrupt made a waiter begin its sleep anew",
	SleptLate:        "the answer came when replicas had answered, and its waiter slept from then on",
	SleepsOn:         "the answer told the time to live of a hold that ended sooner",
	SleepsOnDeadline: "the answer told a longer time than the hold had to live",
	SleepsForever:    "the answer told a negative time",
	SleepsUnqueued:   "the attempt queued its thread, which lost its place while it slept on the answer",
	SendsAgain:       "the attempt had no answer in time, and its client waits to send it again",
	ClockStepped:     "the wall clock that measures the wait stepped",
	ClockDrifts:      "the wall clock that measures the wait runs slowly",
	ToldZero:         "the answers, from the first to the last of these, told to wait 0 ms",

	KeptPlace:    "the call ended without a grant, and its thread stayed in the queue",
	NoDeadline:   "the deadline of a thread in the queue was gone",
	NoPlace:      "the place of a thread with a deadline was gone",
	TwoPlaces:    "a thread with a place and no deadline was queued a second time",
	DeadHead:     "the process of the thread in front died",
	Drift:        "the head left the queue, and the deadlines behind it kept its wait",
	ThrownAsleep: "the second command threw a waiter out of the queue that slept on the answer to the first",
	ThrownByUnit: "the second command threw a waiter out of the queue whose wait was taken for milliseconds",
	ThrownUnsent: "the second command threw a waiter out of the queue that had no answer to the first",
}
