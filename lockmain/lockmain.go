// Package lockmain makes a program with the commands of simrun, for locks of one's own:
//
//	func main() { lockmain.Main(lockmain.Options{Locks: []locktest.Subject{orders}}) }
//
// The program has the locks of its Options beside those that the packages which it imports
// register. A program that imports package lockstep/locktest/redistest has the locks of Lockstep,
// which use Redis.
package lockmain

import (
	"io/fs"
	"os"

	"lockstep/cli"
	"lockstep/cli/frame"
	"lockstep/explore/spread"
	"lockstep/locktest"
	"lockstep/scenarios"
	"lockstep/scenarios/play"
	"lockstep/sim"
)

// Options are what a program has beside its commands. The zero value is a program with the locks
// that are registered.
type Options struct {
	// Locks are the locks of the program.
	Locks []locktest.Subject
	// Scenarios are scenario files of the program, which may name its locks.
	Scenarios []Collection
	// Live plays scenarios on real servers, such as live.Player(); nil: the commands live and
	// explore --live are refused.
	Live play.LivePlayer
	// Farm spreads campaigns over machines, such as farm.JetStream{} of package peers/farm; nil: the
	// program has no command farm.
	Farm spread.Engine
	// Others are locks of another program, which the program names in place of an unknown lock.
	Others []frame.Other
}

// A Collection is a file system with scenario files (*.yaml). A folder of it is the tag of the
// files in it, so that run and matrix take them by --tag. run COLLECTION/NAME plays one.
type Collection struct {
	Name  string
	Files fs.FS
}

// Main runs the command that the arguments of the program name. Call it from the main function; it
// does not return.
func Main(o Options) { frame.Main(Program(o)) }

// Program returns the program that Main runs.
func Program(o Options) frame.Program {
	p := cli.Program()
	p.Means = frame.Means{Live: o.Live, Farm: o.Farm, Others: o.Others}
	for _, l := range o.Locks {
		p.Own = append(p.Own, l.Name)
	}
	p.Before = func(args []string) (int, bool) { return cli.ServeFarm(o.Farm, args, os.Stdin, os.Stdout) }
	p.Register = func(h *sim.Host) error {
		for _, c := range o.Scenarios {
			scenarios.Register(c.Name, c.Files)
		}
		return locktest.Register(h, o.Locks...)
	}
	return p
}
