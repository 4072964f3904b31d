//go:build linux

package live

import (
	"fmt"
	"path"
	"slices"

	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
	"lockstep/scenarios/subject/onredis"
)

// unusable is the error of a run that was not played: the caller gave something wrong, or the machine
// lacks something.
type unusable struct{ error }

func (u unusable) Unwrap() error { return u.error }

// Unusable marks the error; see Check.
func (unusable) Unusable() {}

func unusablef(format string, args ...any) error { return unusable{fmt.Errorf(format, args...)} }

// Check returns an error, with the file and the line, if a scenario cannot be played live on a lock. A
// fault may not strike a server that somebody else runs (Options.Address).
func Check(sc *scenarios.Scenario, l *subject.Subject, o Options) error {
	shared := o.Address != ""
	kind, err := kindOf(l)
	if err != nil {
		return unusablef("%s: not possible live: %w", sc.File, err)
	}
	if _, redis := kind.(redisKind); shared && !redis {
		return unusablef("%s: not possible live: %s is not on Redis, and --address is for a Redis server", sc.File, l.Name)
	}
	lacks, lacksFault := "", kind.LacksFault
	if o.Servers == "" {
		lacks = kind.Lacks(sc, l)
	} else {
		lacks, lacksFault = lacksGroup(o.Servers, sc, l), lacksGroupFault
	}
	if lacks == "" && shared && (o.Servers != "" || sc.Server.Replicas > 0) {
		lacks = "this program starts no replicas beside the server of --address"
	}
	if lacks != "" {
		return unusablef("%s: not possible live: %s", sc.File, lacks)
	}
	if err := play.StepsApply(sc, l); err != nil {
		return unusable{err}
	}
	f := foreignOf(l)
	if f != nil && f.NoFairWait {
		for _, p := range sc.Processes {
			if p.ClientOptions.FairWait != nil {
				return unusablef("%s: not possible live: process %s has a fair_wait, and %s has no such setting", sc.File, p.Name, l.Name)
			}
		}
	}
	if f != nil && f.Watchdog != 0 && sc.Watchdog != f.Watchdog {
		return unusablef("%s: not possible live: the watchdog timeout is %v, and %s always has %v", sc.File, sc.Watchdog, l.Name, f.Watchdog)
	}
	if l.Port != nil {
		for _, p := range sc.Processes {
			if p.WallOffset != 0 || p.WallDriftPPM != 0 {
				return unusablef("%s: not possible live: process %s has a wall clock of its own, and %s reads the machine's", sc.File, p.Name, l.Name)
			}
		}
	}
	for _, f := range sc.Faults {
		lacks := lacksAnywhere(f, o, sc, l)
		if _, redis := kind.(redisKind); lacks == "" && !redis {
			lacks = lacksAsBytes(f.FaultSpec, f.Servers, l)
		}
		if lacks == "" {
			lacks = lacksFault(f.FaultSpec)
		}
		if lacks != "" {
			return unusablef("%s:%d: not possible live: %s: %s", f.Pos.File, f.Pos.Line, f.FaultSpec, lacks)
		}
	}
	return nil
}

// lacksAnywhere says why a fault is not possible on any kind of real server.
func lacksAnywhere(f scenarios.Fault, o Options, sc *scenarios.Scenario, l *subject.Subject) string {
	shared := o.Address != ""
	switch {
	case f.StepsServerClock():
		return "the wall clock of a real server is the machine's"
	case f.Kind == model.FaultWallClock && l.Port != nil:
		return l.Name + " reads the wall clock of the machine"
	case f.Awaits != nil:
		return "only an instant ends a rule on a real server; give until an instant"
	case shared && (f.Kind == model.FaultServer || f.Kind == model.FaultKey):
		return "no fault strikes a server of --address"
	case f.Server == model.ServerMoveSlot && o.Servers != onredis.Cluster:
		return "only a cluster has slots (--servers redis-cluster)"
	case f.Server == model.ServerFailover && o.Servers == "" && sc.Server.Replicas == 0:
		return "a server without replicas has nothing to fail over to"
	case f.Kind == model.FaultKey && badGlob(f.Key):
		return "the glob of the key cannot be read"
	}
	for _, n := range slices.Backward(f.Servers) {
		switch most := l.Servers.Count(); {
		case n > most && most == 1:
			return fmt.Sprintf("it strikes server %d, and there is one", n)
		case n > most:
			return fmt.Sprintf("it strikes server %d, and there are %d", n, most)
		}
	}
	return ""
}

func badGlob(glob string) bool {
	_, err := path.Match(glob, "")
	return err != nil
}

// lacksAsBytes says why a fault is not possible if the protocol of the servers is not known.
func lacksAsBytes(f model.FaultSpec, servers []int, l *subject.Subject) string {
	if f.Do == "error" {
		return "the proxy does not know the protocol, and cannot answer in the place of the server"
	}
	return l.LacksFault(f, servers)
}
