package locktest

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockstep/explore"
	"lockstep/explore/draw"
	"lockstep/internal/quantity"
	"lockstep/scenarios/play"
	"lockstep/sim"
)

// Options are the settings of Run. The zero value is a good default.
type Options struct {
	// Faults names the classes of faults to explore under, as simrun's --faults does:
	// "network,pause". "" is all that the servers know, and "none" is none.
	Faults string
	// Runs is the number of schedules to explore; 0 is 200.
	Runs int
	// Seed seeds the exploration; 0 is 1.
	Seed uint64
	// Profile says what the callers may do. "simple" has one thread in most processes and two, which
	// share a client, in some. "orderly" has up to three and more kinds of calls. In "full" processes
	// also close their clients before the end. "" is simple. A lock whose handles share something within
	// a process needs orderly or full. docs/locktest.md has the whole difference.
	Profile string
	// Shrink is the real time for making failures small; 0 is 10 s.
	Shrink time.Duration
	// Accept lists the fingerprints of findings that are known and fail no test. A fingerprint whose
	// judge, class or story does not exist fails the test before anything is played.
	Accept []string
	// Scenarios is a glob of scenario files that are played too, each with its seeds; "" is
	// none. A scenario that does not come out as it expects of the lock fails the test. A scenario that
	// does not name the lock is skipped if it names only locks that Lockstep knows, such as a built-in
	// one; otherwise it fails the test, since a name may be misspelt. A glob that matches no file fails
	// the test before anything is played. The format is that of simrun.
	Scenarios string
	// Live plays recordings on real servers for the flag -lockstep.live, such as live.Player(); nil:
	// the flag is refused.
	Live play.LivePlayer
}

var flags = struct {
	runs, live                      setting[int]
	seed                            setting[uint64]
	hang                            setting[time.Duration]
	faults, profile, replay, report *string
	explain                         *string
	mended                          *bool
}{
	runs: setting[int]{read: numberOfRuns},
	live: setting[int]{read: numberOfRuns},
	seed: setting[uint64]{read: quantity.Seed},
	hang: setting[time.Duration]{10 * time.Second, func(text string) (time.Duration, error) { return quantity.Duration(text, time.Millisecond) }, nil},
}

func init() {
	flag.Var(&flags.runs, "lockstep.runs", "explore `N` schedules per lock, instead of the number that the test asks for")
	flag.Var(&flags.seed, "lockstep.seed", "explore with the seed `N`, instead of the one that the test asks for")
	flags.faults = flag.String("lockstep.faults", "", "explore under these classes of faults, separated by commas, instead of those that the test asks for")
	flags.profile = flag.String("lockstep.profile", "", "explore with callers of this profile, simple, orderly or full, instead of the one that the test asks for")
	flags.replay = flag.String("lockstep.replay", "", "only replay this recording")
	flag.Var(&flags.live, "lockstep.live", "play the recording of -lockstep.replay `N` times on a real server, too")
	flag.Var(&flags.hang, "lockstep.hang", "fail a test whose world stands still for the duration `D`, in real time")
	flags.explain = flag.String("lockstep.explain", "", "explain the failure in the recording of -lockstep.replay, in the `FORM` text or json")
	flags.mended = flag.Bool("lockstep.mended", false, "also play schedules near the recording of -lockstep.replay, and say whether the promise is kept now")
	flags.report = flag.String("lockstep.report", "", "write the page of each failure into this folder")
}

// A setting is the value of a flag. Package flag would print all flags after the words about a wrong
// value, so Set keeps these words for plan, which returns them.
type setting[T any] struct {
	value T
	read  func(text string) (T, error)
	wrong error
}

func (s *setting[T]) String() string { return fmt.Sprint(s.value) }

func (s *setting[T]) Set(text string) error {
	value, err := s.read(text)
	if err != nil {
		s.wrong = fmt.Errorf("%s: %w", text, err)
		return nil
	}
	s.value, s.wrong = value, nil
	return nil
}

func (s *setting[T]) problem() error { return s.wrong }

func numberOfRuns(text string) (int, error) {
	n, err := quantity.Whole(text, quantity.Runs)
	return int(n), err
}

// plan checks the options and returns the plan of an exploration. A flag replaces the option
// of its name.
func (o Options) plan(lock string) (explore.Plan, error) {
	given := map[string]bool{}
	var problems []error
	flag.Visit(func(f *flag.Flag) {
		given[f.Name] = true
		if s, ok := f.Value.(interface{ problem() error }); ok && s.problem() != nil {
			problems = append(problems, fmt.Errorf("-%s=%w", f.Name, s.problem()))
		}
	})
	switch {
	case len(problems) > 0:
		return explore.Plan{}, errors.Join(problems...)
	case given["lockstep.replay"] && *flags.replay == "":
		return explore.Plan{}, errors.New("-lockstep.replay is empty; give it a recording")
	case given["lockstep.live"] && *flags.replay == "":
		return explore.Plan{}, errors.New("-lockstep.live plays the recording that -lockstep.replay names; give it one")
	case given["lockstep.explain"] && *flags.explain != formText && *flags.explain != formJSON:
		return explore.Plan{}, fmt.Errorf("-lockstep.explain=%s: known are %s and %s", *flags.explain, formText, formJSON)
	case (given["lockstep.explain"] || *flags.mended) && *flags.replay == "":
		return explore.Plan{}, errors.New("-lockstep.explain and -lockstep.mended are about the recording that -lockstep.replay names; give it one")
	case given["lockstep.live"]:
		if err := livable(o.Live, lock); err != nil {
			return explore.Plan{}, err
		}
	}
	if given["lockstep.report"] {
		if err := checkReport(*flags.report); err != nil {
			return explore.Plan{}, err
		}
	}
	if flags.runs.value != 0 {
		o.Runs = flags.runs.value
	}
	if flags.seed.value != 0 {
		o.Seed = flags.seed.value
	}
	faults := "Options.Faults"
	if *flags.faults != "" {
		o.Faults, faults = *flags.faults, "-lockstep.faults"
	}
	profile := "Options.Profile"
	if given["lockstep.profile"] {
		o.Profile, profile = *flags.profile, "-lockstep.profile"
	} else if o.Profile == "" {
		o.Profile = string(draw.Simple)
	}
	p := explore.Plan{World: sim.Version, Lock: lock, Strategy: explore.StrategyTold, Seed: max(o.Seed, 1), Runs: o.Runs, Profile: draw.Profile(o.Profile)}
	switch {
	case o.Runs < 0:
		return p, fmt.Errorf("Options.Runs is %d; it cannot be negative", o.Runs)
	case o.Runs == 0:
		p.Runs = 200
	}
	if _, err := draw.ParseProfile(o.Profile); err != nil {
		return p, fmt.Errorf("%s: %w", profile, err)
	}
	for _, fingerprint := range o.Accept {
		if err := checkFingerprint(fingerprint); err != nil {
			return p, fmt.Errorf("Options.Accept has %q: %w", fingerprint, err)
		}
	}
	if o.Shrink < 0 {
		return p, fmt.Errorf("Options.Shrink is %v; it cannot be negative", o.Shrink)
	}
	if o.Faults == "" {
		o.Faults = "all"
	}
	classes, err := draw.ParseClasses(strings.Split(strings.ReplaceAll(o.Faults, " ", ""), ","))
	if err != nil {
		return p, fmt.Errorf("%s is %q: %w", faults, o.Faults, err)
	}
	p.Faults = classes
	return p, nil
}

// asksToDraw reports whether a flag asks for drawn schedules.
func asksToDraw() (asks bool) {
	flag.Visit(func(f *flag.Flag) {
		asks = asks || slices.Contains([]string{"lockstep.runs", "lockstep.seed", "lockstep.faults", "lockstep.profile"}, f.Name)
	})
	return asks
}

// scenarioFiles returns the scenario files of the options, and an error if their glob is no glob or
// matches nothing.
func (o Options) scenarioFiles() ([]string, error) {
	if o.Scenarios == "" {
		return nil, nil
	}
	files, err := filepath.Glob(o.Scenarios)
	if err == nil && len(files) == 0 {
		err = errors.New("no file matches")
	}
	if err != nil {
		return nil, fmt.Errorf("Options.Scenarios is %q: %w", o.Scenarios, err)
	}
	return files, nil
}

// checkReport returns an error if dir cannot be the folder for the pages of failures. It need not exist.
func checkReport(dir string) error {
	if dir == "" {
		return errors.New("-lockstep.report is empty; give it a folder")
	}
	switch at, err := os.Stat(dir); {
	case err == nil && !at.IsDir():
		return fmt.Errorf("-lockstep.report is %s, which is a file; give it a folder", dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("-lockstep.report: %w", err)
	}
	return nil
}
