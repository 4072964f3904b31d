package builtin

import (
	"time"

	"lockstep/lockimpl"
	"lockstep/model"
	"lockstep/scenarios/subject"
	"lockstep/sim"
	"lockstep/sim/goredis"
)

// bareLocks are the locks of lockimpl, the weakest first.
func bareLocks() []*subject.Subject {
	return []*subject.Subject{
		bareLock(lockimpl.None, "grants everything: the control that must fail"),
		bareLock(lockimpl.SetNXDel, "SET NX PX, then DEL whoever holds it"),
		bareLock(lockimpl.SetNXGetDel, "SET NX PX, then GET, compare, DEL"),
		bareLock(lockimpl.SetNXCad, "SET NX PX, then compare and delete in one script"),
		bareLock(lockimpl.StringReentrant, "the owner's name in one string; re-entry is not counted"),
	}
}

// bareLock returns a lock that keeps its owner's name in one string, and that nothing
// renews.
func bareLock(kind lockimpl.Bare, about string) *subject.Subject {
	scripts := map[string]model.Role{}
	for text, role := range lockimpl.BareScripts {
		scripts[text] = model.Role(role)
	}
	return &subject.Subject{
		Name: string(kind), About: about,
		Traits: model.Traits{Uncounted: true, NoWatchdog: true},
		Times:  func(time.Duration) model.Timing { return model.Timing{Watchdog: lockimpl.BareLease} },
		Open: func(p *sim.Process, o subject.Options) (lockimpl.Client, error) {
			ro := subject.RedisOptions(p, o)
			subject.Retries(ro, o)
			rdb := goredis.NewClient(p, ro)
			c := lockimpl.NewBareClient(kind, rdb, p.Name())
			p.OnClose(func() { _ = c.Close(); _ = rdb.Close() })
			return c, nil
		},
		Protocol:      subject.OneString(scripts),
		Interruptible: true,
		Campaign: subject.Campaign{
			ShortWaits: true, NoReentry: kind != lockimpl.StringReentrant,
			Commands: plainCommands, Channels: channels,
		},
	}
}
