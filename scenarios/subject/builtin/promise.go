package builtin

import (
	"lockstep/model"
)

// redissonPromises returns the promises of Redisson's locks, with their sources.
func redissonPromises(t model.Traits) model.Promises {
	own := model.Promises{
		model.JudgeMutualExclusion: {Unless: []model.Circumstance{model.HolderStopped, model.HolderCutOff, model.HoldRemoved, model.ServerClockStepped},
			Source: "one owner at a time, within the lease: past it another may enter and the holder is not told (issues 4698, 2665, 3187)"},
		model.JudgeMisdelete: {Source: "an unlock of somebody else's hold is refused (IllegalMonitorStateException)"},
		model.JudgeHoldCount: {Source: "as many unlocks as locks give the lock up (RLock.getHoldCount)"},
		model.JudgeLease: {Unless: []model.Circumstance{model.ServerClockStepped},
			Source: "a hold ends with its lease and not before, and a renewal ends with its hold (lockWatchdogTimeout)"},
		model.JudgeWaitBound: {Unless: []model.Circumstance{model.ServerClockStepped},
			Source: "a timed try is over when its wait is, but for the round trip under way (RLock.tryLock)"},
		model.JudgeTidy: {Unless: []model.Circumstance{model.WaiterAway, model.WaiterGone, model.HoldRemoved, model.ServerClockStepped},
			Source: "a thread that no longer waits leaves the queue (RedissonFairLock, acquireFailed), and what is left has an end; the queue itself has no time to live, and the dead stay in it until somebody asks again"},
	}
	if t.Fair {
		own[model.JudgeLinearizable] = model.Promise{Unless: []model.Circumstance{model.ClocksApart, model.ServerClockStepped},
			Source: "every answer fits one order of grants, releases and lease ends, in which waiters are served as they came; deadlines are the clients' wall clocks"}
		own[model.JudgeFIFO] = model.Promise{Unless: []model.Circumstance{model.ClocksApart, model.WaiterAway, model.HoldRemoved, model.ServerClockStepped},
			Source: "waiters get the lock in the order of their first try; deadlines are the clients' wall clocks, and a waiter that does not ask within its deadline is passed over"}
		own[model.JudgeLiveness] = model.Promise{Unless: []model.Circumstance{model.DeadWaiters, model.ClocksApart, model.ServerClockStepped},
			Source: "a free lock is given to a waiter; each dead waiter costs up to its own wait (issue 4595), by the wall clock of the client that queued it and that of the client that asks"}
	}
	if t.Fenced {
		own[model.JudgeFencing] = model.Promise{Unless: []model.Circumstance{model.HoldRemoved, model.ServerClockStepped},
			Source: "the token grows with every hold (RFencedLock); a server that loses the count begins anew"}
	}
	if t.Uncounted {
		own[model.JudgeHoldCount] = model.Promise{Waived: true, Source: "a handle has no levels to count (lockimpl/handle)"}
	}
	return own
}

// referencePromises returns the promises of the reference locks. Their server remembers
// requests and queues. A fault may make it forget them.
func referencePromises(t model.Traits) model.Promises {
	const memory = "; a request happens once because the server remembers it (lockimpl/reference): one that is under way when the server forgets may be answered as if it had never run"
	own := model.Promises{
		model.JudgeLinearizable: {Unless: []model.Circumstance{model.MemoryRemoved, model.ServerClockStepped},
			Source: "every answer fits one order of grants, releases and lease ends" + memory},
		model.JudgeHoldCount: {Unless: []model.Circumstance{model.MemoryRemoved, model.ServerClockStepped},
			Source: "as many unlocks as locks give the lock up" + memory},
	}
	if t.Uncounted {
		own[model.JudgeHoldCount] = model.Promise{Waived: true, Source: "a handle has no levels to count (lockimpl/reference)"}
	}
	if t.Fair {
		const places = "; a waiter that is not heard of for a heartbeat loses its place, one that cannot say that it gives up keeps its place so long, as does one whose place a failover gives back, and one whose requests the server was made to forget comes last"
		order := []model.Circumstance{model.WaiterAway, model.HoldRemoved, model.MemoryRemoved, model.ServerClockStepped}
		own[model.JudgeLinearizable] = model.Promise{Unless: order,
			Source: "every answer fits one order of grants, releases and lease ends, in which waiters are served as they came" + places}
		own[model.JudgeFIFO] = model.Promise{Unless: order,
			Source: "waiters get the lock in the order of their first try (lockimpl/reference)" + places}
		own[model.JudgeLiveness] = model.Promise{Unless: []model.Circumstance{model.DeadWaiters, model.WaiterAway, model.HoldRemoved, model.ServerClockStepped},
			Source: "a free lock is given to a waiter, and places of those who are gone are free after a heartbeat" + places}
	}
	return own
}
