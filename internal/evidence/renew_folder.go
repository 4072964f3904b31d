package evidence

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/google/renameio/v2"

	"lockstep/explore"
	"lockstep/scenarios/subject"
)

// replaced is the end of the name of a campaign's folder while another takes its place.
const replaced = ".before"

// recover completes the work of a call that was killed while it replaced the folder of a
// campaign. If the new folder is not in its place yet, recover moves the old folder back.
// Otherwise it removes the old folder.
func (r *renewal) recover() error {
	folders, err := filepath.Glob(filepath.Join(r.dir, renewing, "*", "*"+replaced))
	if err != nil {
		return err
	}
	for _, before := range folders {
		rel, err := filepath.Rel(filepath.Join(r.dir, renewing), strings.TrimSuffix(before, replaced))
		if err != nil {
			return err
		}
		place := filepath.Join(r.dir, rel)
		if _, err = os.Stat(place); errors.Is(err, fs.ErrNotExist) {
			err = os.Rename(before, place)
		} else if err == nil {
			err = os.RemoveAll(before)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// tidy removes the list of finished parts. The runs of campaigns that another call
// left unfinished stay.
func (r *renewal) tidy() error {
	if err := os.Remove(filepath.Join(r.dir, renewing, doneFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, c := range campaignFolders {
		_ = os.Remove(filepath.Join(r.dir, renewing, c.folder)) // if it is empty
	}
	_ = os.Remove(filepath.Join(r.dir, renewing))
	return nil
}

// journal returns the head of the list of finished parts. It names the versions of the
// program, the most runs of a campaign and the parts to write. A list with another head is
// ignored.
func (r *renewal) journal(parts []part) string {
	head := fmt.Sprintf("%s, runs %d:", explore.CurrentVersions(), r.runs)
	for _, p := range parts {
		head += " " + p.name
	}
	return head
}

// done returns the parts that an earlier call of the same command finished before it was
// interrupted.
func (r *renewal) done(head string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(r.dir, renewing, doneFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	first, names, _ := strings.Cut(string(text), "\n")
	if err != nil || first != head {
		return nil, err
	}
	return strings.Fields(names), nil
}

func (r *renewal) keepDone(head string, done []string) error {
	if err := os.MkdirAll(filepath.Join(r.dir, renewing), 0o755); err != nil {
		return err
	}
	text := head + "\n" + strings.Join(done, "\n") + "\n"
	return renameio.WriteFile(filepath.Join(r.dir, renewing, doneFile), []byte(text), 0o644)
}

// keepRuns removes everything but the runs from the folder of an interrupted campaign. It
// removes the runs, too, if another version of the program played them, or if the interrupted
// campaign was to have more runs than the plan.
func keepRuns(dir string, plan explore.Plan) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	old, by, err := explore.ReadPlan(dir)
	mine := err == nil && by.Difference(plan.Versions()) == "" && old.Runs <= plan.Runs
	for _, e := range entries {
		if mine && slices.Contains(runsOfCampaign, e.Name()) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// runsOfCampaign lists the files from which an interrupted campaign continues.
var runsOfCampaign = []string{explore.RunsFile, explore.PlanFile, explore.ShrunkFile}

// campaign plays the campaign of a folder again, by its plan, with at most r.runs runs. It
// writes to another folder, and replaces the old folder at the end. Then it moves recordings to the
// shelf. The runs that were played before an interrupt are kept.
func (r *renewal) campaign(c shelved, name string) error {
	place := filepath.Join(r.dir, name)
	plan, _, err := explore.ReadCampaign(place)
	if err != nil {
		return err
	}
	if _, err := subject.Find(plan.Lock); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(place, explore.VerdictsFile), err)
	}
	if !plan.Playable() {
		plan.Strategy = explore.DefaultStrategy // an older program had another one
	}
	if r.runs > 0 && plan.Strategy != explore.StrategyExhaustive {
		plan.Runs = min(plan.Runs, r.runs)
	}
	work := filepath.Join(r.dir, renewing, name)
	if err := keepRuns(work, plan); err != nil {
		return err
	}
	args := append(plan.Args(), "--out", work)
	if plan.Strategy != explore.StrategyExhaustive {
		args = append(args, "--jobs", strconv.Itoa(r.jobs))
	}
	if err := r.command(args...); err != nil || r.stop.Err() != nil {
		return err
	}
	for _, file := range runsOfCampaign {
		if err := os.Remove(filepath.Join(work, file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	// The folder is replaced by renaming, so that a complete folder exists at every moment.
	before := work + replaced
	if err := os.Rename(place, before); err != nil {
		return err
	}
	if err := os.Rename(work, place); err != nil {
		return errors.Join(err, os.Rename(before, place))
	}
	if err := os.RemoveAll(before); err != nil {
		return err
	}
	return c.shelve(r, place)
}

// campaignPart returns the part that is a campaign. It is foreign if this program does not know its lock. A
// campaign that cannot be read has no locks, and uses all versions.
func (r *renewal) campaignPart(c shelved, name string) part {
	p := part{
		name: name, file: name + "/" + explore.VerdictsFile, uses: explore.CurrentVersions(),
		write: func(r *renewal) error { return r.campaign(c, name) },
	}
	plan, _, err := explore.ReadCampaign(filepath.Join(r.dir, name))
	if err != nil {
		return p
	}
	p.uses = plan.Versions()
	lock, err := subject.Find(plan.Lock)
	if err != nil {
		p.foreign = true
		return p
	}
	p.locks = []*subject.Subject{lock}
	return p
}
