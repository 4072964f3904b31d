package builtin

import (
	"time"

	"lockstep/lockimpl"
	"lockstep/lockimpl/bare"
	"lockstep/model"
	"lockstep/scenarios/subject"
	"lockstep/scenarios/subject/onredis"
	"lockstep/sim"
)

// bareLocks returns the locks of lockimpl/bare, the weakest first.
func bareLocks() []*subject.Subject {
	return []*subject.Subject{
		bareLock(bare.None, "grants everything: the control that must fail", "Never take it."),
		bareLock(bare.SetNXDel, "SET NX PX, then DEL whoever holds it",
			"Never take it: an unlock that comes after the end of its lease deletes the hold of the next owner."),
		bareLock(bare.SetNXGetDel, "SET NX PX, then GET, compare, DEL",
			"Never take it: the lease can end between the comparison and the delete, and one script closes that gap."),
		bareLock(bare.SetNXCad, "SET NX PX with a value per thread, not per hold as Redis advises, then compare and delete in one script",
			"Take it where a crashed holder may block others for a lease, and where a second owner after a long pause costs time and not data. "+
				"Do not take it for work that may outlast its lease, since nothing renews it, or where a waiter must be served soon, since waiters ask again and again."),
		bareLock(bare.StringReentrant, "the owner's name in one string; re-entry is not counted",
			"Never take it: the first unlock of a re-entered hold frees the lock."),
	}
}

// bareLock returns a lock that keeps its owner's name in one string. Nothing renews it.
func bareLock(kind bare.Kind, about, advice string) *subject.Subject {
	scripts := map[string]model.Role{}
	for text, role := range bare.Scripts {
		scripts[text] = model.Role(role)
	}
	return &subject.Subject{
		Name: string(kind), About: about, Advice: advice, Library: "bare",
		Traits: model.Traits{Uncounted: true, NoWatchdog: true},
		Times:  func(time.Duration) model.Timing { return model.Timing{Watchdog: bare.Lease} },
		Open: func(p *sim.Process, o subject.Options) (lockimpl.Client, error) {
			ro := onredis.Options(p, o)
			onredis.Retries(ro, o)
			rdb := onredis.NewClient(p, o, ro)
			c := bare.NewClient(kind, rdb, p.Name())
			p.OnClose(func() { _ = c.Close(); _ = rdb.Close() })
			return c, nil
		},
		Servers: onredis.OneString(scripts), Keys: onredis.OneKey,
		Interruptible: true, Setups: []string{onredis.Sentinel, onredis.Cluster},
		Campaign: subject.Campaign{
			ShortWaits: true, NoReentry: kind != bare.StringReentrant,
			Commands: plainCommands, Channels: channels,
		},
	}
}
