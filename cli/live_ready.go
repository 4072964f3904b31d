package cli

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"

	"lockstep/cli/frame"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
)

// LiveOptions checks the options of a live run.
func LiveOptions(a *frame.App, address, keep string) (o play.LiveOptions, err error) {
	if a.Live == nil {
		return o, frame.Usagef("this program does not play live. On Linux, cmd/simrun of Lockstep does, with the built-in locks on Redis and the Java library")
	}
	if _, _, err := net.SplitHostPort(address); address != "" && err != nil {
		return o, frame.Usagef("--address %s: want HOST:PORT", address)
	}
	self, err := os.Executable()
	if err != nil {
		return o, err
	}
	if keep != "" {
		if err := frame.OutputFolder("--keep", keep); err != nil {
			return o, err
		}
	}
	return play.LiveOptions{Program: []string{self, liveClient}, Address: address, Keep: keep}, nil
}

// livePossible returns an error that names each pair that cannot be played live.
func livePossible(a *frame.App, pairs []*Pair, o play.LiveOptions) error {
	var problems []error
	for _, p := range pairs {
		if err := a.Live.Check(p.Scenario, p.Lock, o); err != nil {
			if !slices.ContainsFunc(problems, func(p error) bool { return p.Error() == err.Error() }) { // several locks may have the same problem
				problems = append(problems, err)
			}
		}
	}
	if len(problems) > 0 {
		return frame.Usage(errors.Join(problems...))
	}
	return nil
}

// LiveReady returns an error that names what the machine lacks for live runs on locks. It comes
// before a scenario is simulated or played.
func LiveReady(a *frame.App, locks []*subject.Subject, o play.LiveOptions) error {
	if err := a.Live.Ready(locks, o); err != nil {
		return LiveError(context.Background(), err)
	}
	return nil
}

// LocksOf returns the locks of the pairs that are played.
func LocksOf(pairs []*Pair) (locks []*subject.Subject) {
	for _, p := range pairs {
		if play.Claims(p.Scenario, p.Lock) == nil && !slices.Contains(locks, p.Lock) {
			locks = append(locks, p.Lock)
		}
	}
	return locks
}

// Unusable is the error of a live run that cannot begin because of its input.
type Unusable interface {
	error
	Unusable()
}

// LiveError gives the error of a live run the type that determines the exit code.
func LiveError(ctx context.Context, err error) error {
	var bad Unusable
	switch {
	case errors.As(err, &bad):
		return frame.Usage(err)
	case ctx.Err() != nil:
		return frame.InterruptedError("; a run that did not end is not judged")
	case err == nil || frame.FailedIO(err):
		return err
	}
	return frame.Unplayed(err)
}

// BrokenMost is the number of runs in a row after which a campaign ends if none of them could be
// played. So many runs do not fail because of their scenarios.
const BrokenMost = 10
