package evidence

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"lockstep/cli"
	"lockstep/cli/frame"
	"lockstep/explore"
	"lockstep/explore/draw"
	"lockstep/explore/spread"
	"lockstep/internal/counted"
	"lockstep/internal/input"
	"lockstep/internal/quantity"
	"lockstep/linearizability/judges"
	"lockstep/report"
	"lockstep/scenarios/subject"
	"lockstep/sim"
)

// A standing campaign plays many campaigns in turn, and goes on until somebody stops it. Each has
// a folder of its own, and grows by a number of runs in each of its turns.

// standingFile is the file of a standing campaign.
type standingFile struct {
	Campaigns []standingCampaign `yaml:"campaigns"`
	// Canaries are planted bugs. Each must be found again within the time Every.
	Canaries []string `yaml:"canaries"`
	Every    string   `yaml:"every"`
	Turn     int      `yaml:"turn"` // the least number of runs in a turn
}

type standingCampaign struct {
	Lock     string   `yaml:"lock"`
	Faults   []string `yaml:"faults"`
	Profile  string   `yaml:"profile"`
	Strategy string   `yaml:"strategy"`
	Seed     uint64   `yaml:"seed"`
	Weight   int      `yaml:"weight"`
}

// The values of a standing campaign that its file does not give.
const (
	standingTurn  = 1000
	standingEvery = time.Hour
)

// standing is a standing campaign.
type standing struct {
	members []*member
	bugs    []*subject.PlantedBug
	every   time.Duration
	turn    int
}

// member is a campaign of a standing campaign.
type member struct {
	plan   explore.Plan // without its runs
	weight int
	dir    string // relative to the folder of the farm
	runs   int    // that were played
	row    *cli.FarmRow
}

// unsafeInName matches the characters that the name of a lock may have, but the name of a folder should
// not.
var unsafeInName = regexp.MustCompile(`[^A-Za-z0-9@._-]+`)

// standingMost limits the file of a standing campaign, in bytes.
const standingMost = 1 << 20

// readStanding reads and checks the file of a standing campaign.
func readStanding(name string) (*standing, error) {
	text, err := input.Read(name, "standing takes a file of campaigns", standingMost)
	if err != nil {
		return nil, err
	}
	var f standingFile
	d := yaml.NewDecoder(bytes.NewReader(text))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil {
		return nil, fmt.Errorf("%s: not a standing campaign: %w", name, err)
	}
	s := &standing{every: standingEvery, turn: cmp.Or(f.Turn, standingTurn)}
	switch {
	case len(f.Campaigns) == 0:
		return nil, fmt.Errorf("%s names no campaigns", name)
	case s.turn < 1 || int64(s.turn) > quantity.Runs.Most:
		return nil, fmt.Errorf("%s: turn %d: %v", name, s.turn, quantity.Runs)
	}
	if f.Every != "" {
		if s.every, err = quantity.Duration(f.Every, time.Second); err != nil {
			return nil, fmt.Errorf("%s: every %s: %w", name, f.Every, err)
		}
	}
	if len(f.Canaries) > 0 {
		if s.bugs, err = chooseBugs(f.Canaries); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	for i, c := range f.Campaigns {
		m, err := c.member()
		if err != nil {
			return nil, fmt.Errorf("%s: campaign %d: %w", name, i+1, err)
		}
		if slices.ContainsFunc(s.members, func(other *member) bool { return other.dir == m.dir }) {
			return nil, fmt.Errorf("%s: campaign %d: there is another one of this lock with these faults, profile and strategy", name, i+1)
		}
		s.members = append(s.members, m)
	}
	return s, nil
}

func (c standingCampaign) member() (*member, error) {
	m := &member{weight: cmp.Or(c.Weight, 1)}
	p := explore.Plan{World: sim.Version, Lock: c.Lock, Seed: cmp.Or(c.Seed, 1), Strategy: cmp.Or(c.Strategy, explore.DefaultStrategy)}
	if m.weight < 0 {
		return nil, fmt.Errorf("weight %d: at least 1", m.weight)
	}
	if p.Bounded() {
		p.Depth = cli.DefaultDepth
	}
	if p.Strategy == explore.StrategyExhaustive || !p.Playable() {
		return nil, fmt.Errorf("strategy %s: no campaign on many machines has it", p.Strategy)
	}
	l, err := cli.FindSimulated(c.Lock)
	if err != nil {
		return nil, err
	}
	p.Lock = l.Name
	if p.Faults, err = draw.ParseClasses(c.Faults); err != nil {
		return nil, err
	}
	if p.Profile, err = draw.ParseProfile(cmp.Or(c.Profile, string(draw.Simple))); err != nil {
		return nil, err
	}
	faults := strings.Join(frame.Texts(p.Faults), "+")
	if len(p.Faults) == len(draw.Classes) {
		faults = "all"
	}
	m.plan = p
	m.dir = unsafeInName.ReplaceAllString(strings.Join([]string{p.Lock, cmp.Or(faults, "none"), string(p.Profile), p.Strategy}, "-"), "_")
	return m, nil
}

// next returns the campaign whose turn it is: the one that has played the fewest runs for its
// weight.
func (s *standing) next() *member {
	return slices.MinFunc(s.members, func(a, b *member) int { return cmp.Compare(a.runs*b.weight, b.runs*a.weight) })
}

// goal returns the plan of the next turn of a campaign in a folder, with all runs until then. A
// turn that was cut off is continued.
func (s *standing) goal(m *member, folder string) (explore.Plan, error) {
	p := m.plan
	old, _, err := explore.ReadPlan(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return p, err
	}
	if p.Runs = old.Runs; m.runs >= old.Runs {
		// A turn reads all earlier runs, so it must grow with their number.
		p.Runs += (max(s.turn, m.runs/10) + explore.FamilyRuns - 1) / explore.FamilyRuns * explore.FamilyRuns
	}
	return p, nil
}

// canariesFile keeps when the canaries were looked for, and whether they were found.
const canariesFile = "canaries.json"

// canaries has the planted bugs that a standing campaign must find again and again.
type canaries struct {
	bugs  []*subject.PlantedBug
	every time.Duration
	now   func() time.Time
	begun time.Time
	state map[string]canary // by bug
}

// canary says when the farm looked for a planted bug.
type canary struct {
	Round int       `json:"round"` // of the last look, from 1; it is the seed
	Tried time.Time `json:"tried"` // when the last look ended
	Found time.Time `json:"found"` // when it was found last; zero: never
	Runs  int       `json:"runs"`  // until it was found last
	// Missed says that the last look did not find it.
	Missed bool `json:"missed,omitempty"`
}

func newCanaries(s *standing, dir string, now func() time.Time) (*canaries, error) {
	c := &canaries{bugs: s.bugs, every: s.every, now: now, begun: now(), state: map[string]canary{}}
	text, err := os.ReadFile(filepath.Join(dir, canariesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &c.state)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", canariesFile, err)
	}
	return c, nil
}

func (c *canaries) write(dir string) error {
	text, err := json.MarshalIndent(c.state, "", "  ")
	if err != nil {
		return err
	}
	return renameio.WriteFile(filepath.Join(dir, canariesFile), append(text, '\n'), 0o644)
}

// due returns the planted bug that the farm looks for next, or nil and the time until the next one
// is due. A planted bug is due when three quarters of the time since its last look are over, so that the
// look ends in time. All are due after somebody sets the clock back.
func (c *canaries) due() (b *subject.PlantedBug, wait time.Duration) {
	now := c.now()
	wait = c.every
	for _, b := range c.bugs {
		s := c.state[b.Name]
		passed := now.Sub(s.Tried)
		left := c.every*3/4 - passed
		if s.Tried.IsZero() || left <= 0 || passed < 0 {
			return b, 0
		}
		wait = min(wait, left)
	}
	return nil, wait
}

// looked notes the end of a look, which found the bug after a number of runs; 0: it did not.
func (c *canaries) looked(b *subject.PlantedBug, runs int) {
	s := c.state[b.Name]
	s.Round++
	s.Tried, s.Missed = c.now(), runs == 0
	if runs > 0 {
		s.Found, s.Runs = s.Tried, runs
	}
	c.state[b.Name] = s
}

// alarm returns a sentence about the problem with a canary; "" if there is none.
func (c *canaries) alarm(b *subject.PlantedBug) string {
	s := c.state[b.Name]
	since := s.Found
	if since.Before(c.begun) {
		since = c.begun // the farm has never looked for it
	}
	switch {
	case s.Missed:
		return fmt.Sprintf("not found in %s", counted.Of(b.Runs, "run"))
	case c.now().Sub(since) > c.every:
		return fmt.Sprintf("not found for %v", c.every)
	}
	return ""
}

// rows returns the canaries for the page, and sentences about their problems.
func (c *canaries) rows() (rows []cli.FarmCanary, alarms []string) {
	for _, b := range c.bugs {
		s := c.state[b.Name]
		row := cli.FarmCanary{Bug: b.Name, Judge: b.Judge, Found: "never", Runs: s.Runs, Alarm: c.alarm(b)}
		if !s.Found.IsZero() {
			row.Found = s.Found.UTC().Format("2006-01-02 15:04:05 UTC")
		}
		if row.Alarm != "" {
			alarms = append(alarms, fmt.Sprintf("The planted bug %s was %s. What this farm does not find says little until that is mended.", b.Name, row.Alarm))
		}
		rows = append(rows, row)
	}
	return rows, alarms
}

// standingCommands returns the command standing, if the program has an engine.
func standingCommands(a *frame.App) []*cobra.Command {
	if a.Farm == nil {
		return nil
	}
	var o cli.QueueFlags
	c := a.Command(frame.Guide{
		Use: "standing FILE --dir DIR", Short: "play many campaigns in turn on many machines, until somebody stops them",
		Long: "Standing plays the campaigns of a file in turn, as simrun farm plays one, until it is interrupted. Each campaign has a folder of its own in DIR, and grows in each of its turns. " +
			"The planted bugs that the file names must be found again and again. The exit code is 1 if one was not. DIR/" + cli.FarmPageFile + " shows all of it.",
		Examples: []string{"standing standing.yaml --dir DIR"},
	}, func(in frame.Invocation) (int, error) { return playStanding(a, in.Names, o) })
	o.Declare(c.Flags())
	a.QuietFlag(c.Flags(), "only the totals and the alarms")
	c.ValidArgsFunction = frame.Files("yaml", "yml")
	return []*cobra.Command{c}
}

// playStanding plays a standing campaign until it is stopped.
func playStanding(a *frame.App, names []string, o cli.QueueFlags) (code int, err error) {
	switch {
	case len(names) != 1:
		return 0, frame.Usagef("standing takes one file of campaigns, got %d", len(names))
	case o.Dir == "":
		return 0, frame.Usagef("standing: --dir is missing, the folder of the farm")
	}
	s, err := readStanding(names[0])
	if err != nil {
		return 0, frame.Usage(fmt.Errorf("standing: %w", err))
	}
	release, err := cli.FarmFolder(a, o.Dir)
	if err != nil {
		return 0, frame.Usage(fmt.Errorf("standing: %w", err))
	}
	defer release()
	birds, err := newCanaries(s, o.Dir, time.Now)
	if err != nil {
		return 0, frame.Usage(fmt.Errorf("standing: %w", err))
	}
	page := cli.NewFarmPage(o.Dir, "a standing campaign", birds.rows)
	for _, m := range s.members {
		first := m.plan
		first.Runs = s.turn
		m.row = page.Row(first, m.dir)
		m.runs = m.row.Runs
	}
	stop, unregister := a.Interrupts(func() {})
	defer unregister()
	t := cli.NewTime(stop, o.Limit)
	defer t.End()
	limited := stop
	if o.Limit > 0 {
		var end func()
		limited, end = context.WithDeadline(stop, t.Until)
		defer end()
	}
	playing, fail := context.WithCancelCause(limited)
	defer fail(nil)
	farm, err := cli.OpenFarm(a, playing, o, fail)
	switch {
	case err != nil && playing.Err() != nil:
		return frame.ExitUndecided, nil
	case err != nil:
		return 0, err
	}
	page.Workers = farm.Coordinator.Workers
	writing, end := context.WithCancel(context.Background())
	wait := page.Keep(writing, fail)
	err = playTurns(a, playing, s, birds, page, farm.Coordinator, o)
	end()
	wait()
	farm.Close(false)
	if why := context.Cause(playing); err == nil && why != nil && !errors.Is(why, playing.Err()) {
		err = why
	}
	if err == nil {
		err = page.End()
	}
	if err != nil {
		return 0, err
	}
	for _, m := range s.members {
		fmt.Fprintf(a.Out, "%s, %s of failure: %s\n", counted.Of(m.row.Runs, "run"), counted.Of(len(m.row.Groups), "kind"), m.row.Command)
	}
	if _, alarms := birds.rows(); len(alarms) > 0 {
		for _, alarm := range alarms {
			fmt.Fprint(a.Out, report.Wrap(alarm, "", 100))
		}
		return frame.ExitUnexpected, nil
	}
	return frame.ExitOK, nil
}

// playTurns plays one turn after another until playing ends. A canary that is due goes first.
func playTurns(a *frame.App, playing context.Context, s *standing, birds *canaries, page *cli.FarmPage, c *spread.Coordinator, o cli.QueueFlags) error {
	for playing.Err() == nil {
		var b *subject.PlantedBug
		var left time.Duration
		page.With(func() { b, left = birds.due() })
		var err error
		if b != nil {
			err = lookForCanary(a, playing, b, birds, page, c, o)
		} else {
			turn, end := playing, func() {}
			if len(s.bugs) > 0 { // a canary that is due does not wait for the end of the turn
				turn, end = context.WithTimeout(playing, left)
			}
			err = playTurn(a, playing, turn, s, s.next(), c, o)
			end()
		}
		if err != nil && playing.Err() == nil {
			return err
		}
	}
	return nil
}

// playTurn plays a turn of a campaign, until the context turn ends. If all of it was played, the
// failures are made small until playing ends.
func playTurn(a *frame.App, playing, turn context.Context, s *standing, m *member, coordinator *spread.Coordinator, o cli.QueueFlags) error {
	folder := filepath.Join(o.Dir, m.dir)
	p, err := s.goal(m, folder)
	if err != nil {
		return err
	}
	release, err := a.FolderOf("--dir", folder)
	if err != nil {
		return frame.Usage(fmt.Errorf("standing: %w", err))
	}
	defer release()
	m.row.Plan(p)
	c := &explore.Campaign{
		Plan: p, Of: 1, Jobs: o.Ahead, Dir: folder, Stop: turn, Family: coordinator.Family(turn, p), Progress: m.row.Progress,
		Found: func(f explore.Failed, r explore.Run, recording string) {
			m.row.Found(f, recording)
			if !a.Quiet {
				a.Say("%s: found in run %d (seed %d): %s %s at %s: %s", p.Lock, r.Index, r.Seed, f.Class, f.Judge, f.Op, f.Why)
			}
		},
	}
	runs, complete, err := c.Run()
	var other *explore.OtherCampaignError
	switch {
	case errors.As(err, &other):
		return frame.Usage(fmt.Errorf("standing: %w", err))
	case err != nil:
		return err
	}
	if m.runs = len(runs); !complete {
		m.row.Rest("waits")
		return nil
	}
	m.row.Small()
	shrinking := &explore.Shrinking{
		Plan: p, Jobs: max(o.Workers, 1), Dir: folder, From: []string{folder}, Budget: a.ShrinkBudget(), Program: frame.SimrunInFiles(), Stop: playing,
		Player: func() (explore.Player, error) { return cli.Player(playing, p) },
	}
	tally, small, err := shrinking.Conclude(runs)
	if err != nil {
		return err
	}
	tally, small = tally.Fold(small)
	m.row.Concluded(tally, small)
	m.row.Rest("waits")
	return explore.WriteTally(folder, frame.SimrunInFiles(), tally, small)
}

// canaryAhead is the number of families of a canary that are in the queue at a time. The families that
// are still in the queue when the bug is found are played for nothing.
const canaryAhead = 4

// lookForCanary looks for a planted bug until it is found. Each look has a new seed.
func lookForCanary(a *frame.App, playing context.Context, b *subject.PlantedBug, birds *canaries, page *cli.FarmPage, coordinator *spread.Coordinator, o cli.QueueFlags) error {
	folder := filepath.Join(o.Dir, "canary")
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	p, err := planOf(b, uint64(birds.state[b.Name].Round)+1)
	if err != nil {
		return err
	}
	looking, found := context.WithCancel(playing)
	defer found()
	after := 0
	c := &explore.Campaign{
		Plan: p, Of: 1, Jobs: min(o.Ahead, canaryAhead), Dir: folder, Stop: looking, Family: coordinator.Family(looking, p),
		Found: func(f explore.Failed, r explore.Run, _ string) {
			if after == 0 && f.Judge == b.Judge && f.Class == judges.ClassBug && f.Defect == "" {
				after = r.Index + 1
				found()
			}
		},
	}
	_, complete, err := c.Run()
	if err != nil || !complete && after == 0 {
		return err
	}
	page.With(func() { birds.looked(b, after) })
	if after == 0 {
		a.Warn("the planted bug %s was not found in %s", b.Name, counted.Of(p.Runs, "run"))
	}
	return birds.write(o.Dir)
}
