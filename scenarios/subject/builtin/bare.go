package builtin

import (
	"time"

	"lockstep/lockimpl"
	"lockstep/lockimpl/bare"
	"lockstep/model"
	"lockstep/scenarios/subject"
	"lockstep/scenarios/subject/onredis"
	"lockstep/sim"
	"lockstep/sim/goredis"
)

// bareLocks returns the locks of lockimpl/bare, the weakest first.
func bareLocks() []*subject.Subject {
	return []*subject.Subject{
		bareLock(bare.None, "grants everything: the control that must fail"),
		bareLock(bare.SetNXDel, "SET NX PX, then DEL whoever holds it"),
		bareLock(bare.SetNXGetDel, "SET NX PX, then GET, compare, DEL"),
		bareLock(bare.SetNXCad, "SET NX PX, then compare and delete in one script"),
		bareLock(bare.StringReentrant, "the owner's name in one string; re-entry is not counted"),
	}
}

// bareLock returns a lock that keeps its owner's name in one string. Nothing renews it.
func bareLock(kind bare.Kind, about string) *subject.Subject {
	scripts := map[string]model.Role{}
	for text, role := range bare.Scripts {
		scripts[text] = model.Role(role)
	}
	return &subject.Subject{
		Name: string(kind), About: about, Library: "bare",
		Traits: model.Traits{Uncounted: true, NoWatchdog: true},
		Times:  func(time.Duration) model.Timing { return model.Timing{Watchdog: bare.Lease} },
		Open: func(p *sim.Process, o subject.Options) (lockimpl.Client, error) {
			ro := onredis.Options(p, o)
			onredis.Retries(ro, o)
			rdb := goredis.NewClient(p, ro)
			c := bare.NewClient(kind, rdb, p.Name())
			p.OnClose(func() { _ = c.Close(); _ = rdb.Close() })
			return c, nil
		},
		Servers: onredis.OneString(scripts), Keys: onredis.OneKey,
		Interruptible: true,
		Campaign: subject.Campaign{
			ShortWaits: true, NoReentry: kind != bare.StringReentrant,
			Commands: plainCommands, Channels: channels,
		},
	}
}
