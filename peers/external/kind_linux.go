package external

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"lockstep/live"
	"lockstep/model"
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// A Kind is a kind of server of the system. It implements live.Kind.
type Kind struct {
	Program string
	Needs   []live.Needed
	Is      func(sim.Server) bool
	// Files are the files that the machine needs, each with its Debian package.
	Files map[string]string
	// Begin starts the server at an address. If it returns an error, no process of it is left.
	Begin func(o Options) (live.Observed, error)
}

// Options are the settings of a server.
type Options struct {
	live.StartOptions
	Addr string
	Log  *os.File
}

// Name implements live.Kind.
func (k *Kind) Name() string { return k.Program }

// Models implements live.Kind.
func (k *Kind) Models(s sim.Server) bool { return k.Is(s) }

// Ready implements live.Kind.
func (k *Kind) Ready() error {
	var missing []error
	for _, n := range k.Needs {
		if _, err := n.Find(); err != nil {
			missing = append(missing, err)
		}
	}
	for file, pkg := range k.Files {
		if _, err := os.Stat(file); err != nil {
			missing = append(missing, fmt.Errorf("there is no %s here; install it: apt-get install %s", file, pkg))
		}
	}
	return errors.Join(missing...)
}

// Lacks implements live.Kind.
func (k *Kind) Lacks(_ *scenarios.Scenario, l *subject.Subject) string {
	if n := l.Servers.Count(); n != 1 {
		return fmt.Sprintf("%s is on %d servers, and live has one %s", l.Name, n, k.Program)
	}
	return ""
}

// LacksFault implements live.Kind.
func (*Kind) LacksFault(model.FaultSpec) string { return "" }

// Start implements live.Kind.
func (k *Kind) Start(o live.StartOptions) ([]live.Server, error) {
	log, err := os.Create(filepath.Join(o.Dir, k.Program+".log"))
	if err != nil {
		return nil, err
	}
	for range 3 { // somebody may take the port before the server does
		var addr string
		if addr, err = o.Free(); err != nil {
			break
		}
		var s live.Observed
		if s, err = k.Begin(Options{o, addr, log}); err == nil {
			return []live.Server{s}, nil
		}
	}
	_ = log.Close()
	return nil, err
}
