package simrun

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"lockstep/explore"
	"lockstep/explore/survey"
	"lockstep/internal/nearest"
	"lockstep/scenarios/subject"
)

// A part is a piece of a results folder that one command writes.
type part struct {
	name    string
	checked checked
	// file is the file that has the versions of the part: versionsFile, that of the survey,
	// or that of a campaign's result. It is "" for a summary of other parts and for the
	// figures of a machine.
	file string
	// uses are the versions that it depends on.
	uses explore.Versions
	// locks are the locks that it is about. Only a change that matters to one of them makes it
	// older. Nil: any change does.
	locks []*subject.Subject
	// foreign reports whether it is about a lock that this program does not know.
	foreign bool
	// absent reports whether the folder does not have it yet.
	absent bool
	// live are the locks that it plays on real servers; nil: it plays none.
	live  []string
	write func(*renewal) error
}

// renewing is the folder in which a renewal keeps unfinished parts. doneFile is the file in
// it that lists the finished parts.
const (
	renewing = ".renewing"
	doneFile = "done"
)

// A renewal writes a folder of results anew.
type renewal struct {
	a    *app
	dir  string
	jobs int
	// runs is the most runs that a campaign is played with; 0: as many as before.
	runs int
	stop context.Context
}

func (a *app) resultsCommand() *cobra.Command {
	var only []string
	var check, older bool
	r := &renewal{a: a, dir: "results"}
	c := a.command(guide{
		use: "results [DIR]", short: "write everything in a folder of results anew",
		long: "Results writes everything in a folder of results anew, and prints the cost of each part. All campaigns take hours. After an interruption the same command goes on. Without a name the folder is results.\n" +
			"The parts are " + strings.Join(productNames(), ", ") + ", and a folder of campaigns, such as explore/FOLDER. " +
			"The parts that are played live (agreement, agreement-ports, agreement-planted, agreement-peers, upstream, upstream-peers) are left out where redis-server, Java or Maven is missing, unless --only names them.",
		examples: []string{"results --check", "results --only verdicts,track-record,six-properties"},
	}, func(in invocation) (int, error) { return a.renew(in, r, only, check, older) })
	f := c.Flags()
	f.StringSliceVar(&only, "only", nil, "these `PARTS`")
	f.BoolVar(&older, "older", false, "only the parts that an older program wrote")
	f.BoolVar(&check, "check", false, "name the parts that an older program wrote, and write nothing")
	whole(f, &r.runs, "runs", 0, atLeast(1), "play at most this many runs of each campaign; default: its own number")
	jobsFlag(f, &r.jobs)
	a.progressFlag(f)
	c.ValidArgsFunction = folders
	return c
}

// ofResults reports whether a folder has results, or nothing yet. All parts are dozens of files, which
// nobody wants in a folder with other files.
func ofResults(dir string) bool {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return true // the error comes when the folder is used
	}
	there := false
	for _, e := range entries {
		if slices.Contains([]string{versionsFile, explore.VerdictsFile, "explore", "exhaustive"}, e.Name()) {
			return true
		}
		there = there || !strings.HasPrefix(e.Name(), ".")
	}
	return !there
}

// renew implements the command results.
func (a *app) renew(in invocation, r *renewal, only []string, check, older bool) (int, error) {
	switch len(in.names) {
	case 0:
	case 1:
		r.dir = filepath.Clean(in.names[0])
	default:
		return 0, usagef("results takes one folder, got %d", len(in.names))
	}
	if err := inputFolder(r.dir, "results takes a folder of results"); err != nil {
		return 0, err
	}
	if only == nil && !ofResults(r.dir) {
		return 0, usagef("%s has other files and no %s; results takes a folder of results, or an empty one. With --only it writes into any folder", r.dir, versionsFile)
	}
	if !check {
		release, err := a.folder(r.dir)
		if err != nil {
			return 0, usageError{fmt.Errorf("results: %w", err)}
		}
		defer release()
		if err := r.recover(); err != nil {
			return 0, err
		}
	}
	parts, err := r.parts()
	if err != nil {
		return 0, usageError{fmt.Errorf("results: %w", err)}
	}
	if parts, err = chooseParts(parts, only); err != nil {
		return 0, usageError{fmt.Errorf("results: %w", err)}
	}
	if check {
		return r.check(parts, only == nil)
	}
	if older {
		if parts, err = r.older(parts); err != nil {
			return 0, usageError{fmt.Errorf("results: %w", err)}
		}
	}
	return r.writeAll(parts, only)
}

// chooseParts returns the parts that are named in only. The name of a folder, such as
// explore, stands for all parts in it.
func chooseParts(all []part, only []string) ([]part, error) {
	if len(only) == 0 {
		return all, nil
	}
	chosen := map[string]bool{}
	for _, name := range only {
		some := false
		for _, p := range all {
			if p.name == name || strings.HasPrefix(p.name, name+"/") {
				chosen[p.name], some = true, true
			}
		}
		if !some && slices.ContainsFunc(campaignFolders, func(c shelved) bool { return name == c.folder || name == c.folder+"-summary" }) {
			return nil, fmt.Errorf("--only %s: the folder has no campaign in %s", name, strings.TrimSuffix(name, "-summary"))
		}
		if !some && name == peersRecord {
			return nil, fmt.Errorf("--only %s: this program does not know its scenarios, and the folder has no results of them", name)
		}
		if !some {
			var here []string
			for _, p := range all {
				here = append(here, p.name)
			}
			return nil, fmt.Errorf("--only %s: %sknown are %s, and a folder of campaigns, such as explore/FOLDER", name, nearest.Hint(nearest.Near(name, here)), strings.Join(productNames(), ", "))
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(p part) bool { return !chosen[p.name] }), nil
}

// versionsFile is the file of a folder of results that says which versions of the program
// wrote the parts that are no campaigns. It maps the names of the parts to the versions.
const versionsFile = "versions.json"

// readVersions reads the versionsFile of a folder.
func readVersions(dir string) (map[string]explore.Versions, error) {
	text, err := os.ReadFile(filepath.Join(dir, versionsFile))
	if err != nil {
		return nil, err
	}
	var all map[string]explore.Versions
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, versionsFile), err)
	}
	return all, nil
}

// keepVersions writes into the versionsFile of a folder which versions wrote a part.
func keepVersions(dir, part string, v explore.Versions) error {
	all, err := readVersions(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if all == nil {
		all = map[string]explore.Versions{}
	}
	all[part] = v
	text, err := json.MarshalIndent(all, "", "  ")
	if err != nil {
		return err
	}
	return renameio.WriteFile(filepath.Join(dir, versionsFile), append(text, '\n'), 0o644)
}

// versions reads the versions of the program that wrote a part. It returns an error if the
// part does not name all versions that it uses.
func (r *renewal) versions(p part) (v explore.Versions, err error) {
	switch p.file {
	case versionsFile:
		all, err := readVersions(r.dir)
		if err != nil {
			return v, err
		}
		var ok bool
		if v, ok = all[p.name]; !ok {
			return v, fmt.Errorf("%s does not say which versions wrote %s", p.file, p.name)
		}
	case survey.LocksFile:
		_, v, err = openSurvey(r.dir)
	default:
		_, v, err = explore.ReadCampaign(filepath.Join(r.dir, p.name))
	}
	if err != nil {
		return v, err
	}
	if missing := v.Missing(p.uses); missing != "" {
		return v, fmt.Errorf("%s says nothing of the versions of %s: %s", p.file, p.name, missing)
	}
	if p.foreign {
		v.Judges, v.Names = explore.NotUsed, explore.NotUsed // whether they matter, the program that knows the locks can tell
	}
	return v.Raised(p.uses, p.locks...), nil
}

// older returns the parts that an older program wrote or that do not name their versions,
// and the summaries of these parts.
func (r *renewal) older(parts []part) ([]part, error) {
	var chosen []part
	for _, p := range parts {
		if p.file == "" {
			folder, summary := strings.CutSuffix(p.name, "-summary")
			if summary && slices.ContainsFunc(chosen, func(c part) bool { return strings.HasPrefix(c.name, folder+"/") }) {
				chosen = append(chosen, p)
			}
			continue
		}
		v, err := r.versions(p)
		if err != nil || v.Difference(p.uses) != "" {
			chosen = append(chosen, p)
		}
	}
	return chosen, nil
}

// check lists the parts that an older program wrote, and the parts that are not written yet. A part
// that does not name its versions is an error, and so is a campaign that lacks a recording.
//
// With strays it also lists the files that no part has.
func (r *renewal) check(parts []part, strays bool) (int, error) {
	versioned, old := 0, 0
	var problems []error
	for _, p := range parts {
		if p.file == "" {
			continue
		}
		if p.absent {
			fmt.Fprintf(r.a.out, "%s: not written yet\n", p.name)
			continue
		}
		versioned++
		v, err := r.versions(p)
		if err == nil && p.file == p.name+"/"+explore.VerdictsFile {
			problems = append(problems, r.missing(p))
		}
		if errors.Is(err, fs.ErrNotExist) {
			err = fmt.Errorf("%s has no %s, which says the versions of %s", r.dir, p.file, p.name)
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if d := v.Difference(p.uses); d != "" {
			old++
			fmt.Fprintf(r.a.out, "%s: %s\n", p.name, d)
		}
	}
	if versioned == 0 {
		return 0, usagef("results: these parts have no versions: a summary depends on its campaigns, and the performance on the machine")
	}
	fmt.Fprintf(r.a.out, "%d of %d parts are older than this program (%s)\n", old, versioned, explore.CurrentVersions())
	if strays {
		names, err := r.strays()
		problems = append(problems, err)
		for _, name := range names {
			problems = append(problems, fmt.Errorf("no command of results writes %s; remove it", filepath.Join(r.dir, name)))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return 0, usageError{fmt.Errorf("results: %w", err)}
	}
	return exitOK, nil
}

// missing returns an error that names the recordings of a campaign that are not there.
func (r *renewal) missing(p part) error {
	files, err := explore.MissingRecordings(filepath.Join(r.dir, p.name))
	for _, file := range files {
		err = errors.Join(err, fmt.Errorf("%s: the recording %s is missing; write it anew: %s results %s --only %s", p.file, file, program(), r.dir, p.name))
	}
	return err
}

// writeAll writes parts one after another and prints the cost of each. It skips the parts that
// an interrupted earlier call has finished. It also skips a part for which the machine lacks a
// program, unless the user named the part in only; then it is an error.
func (r *renewal) writeAll(parts []part, only []string) (int, error) {
	lacking := map[string]error{}
	for _, p := range parts {
		if err := p.lacks(); err != nil && slices.Contains(only, p.name) {
			return 0, err
		} else if err != nil {
			lacking[p.name] = err
		}
	}
	stop, release := r.a.interruptible()
	defer release()
	r.stop = stop
	head := r.journal(parts)
	done, err := r.done(head)
	if err != nil {
		return 0, err
	}
	for i, p := range parts {
		if slices.Contains(done, p.name) {
			fmt.Fprintf(r.a.out, "%-50s was done before\n", p.name)
			continue
		}
		if p.foreign {
			fmt.Fprintf(r.a.out, "%-50s is of locks that this program does not know\n", p.name)
			continue
		}
		if err := lacking[p.name]; err != nil {
			fmt.Fprintf(r.a.out, "%-50s is not written: %v\n", p.name, err)
			continue
		}
		r.a.status("part %d of %d: %s", i+1, len(parts), p.name)
		begun, processor := time.Now(), processorTime()
		err := p.write(r)
		if err == nil && stop.Err() == nil && p.file == versionsFile {
			err = keepVersions(r.dir, p.name, p.uses)
		}
		r.a.status("")
		if stop.Err() != nil {
			fmt.Fprintf(r.a.err, "simrun: interrupted at %s; the same command goes on\n", p.name)
			return exitUndecided, nil
		}
		if err != nil {
			return 0, fmt.Errorf("results: %s: %w", p.name, err)
		}
		done = append(done, p.name)
		if err := r.keepDone(head, done); err != nil {
			return 0, err
		}
		fmt.Fprintf(r.a.out, "%-50s %8.1fs, %8.1fs of processors\n", p.name, time.Since(begun).Seconds(), (processorTime() - processor).Seconds())
	}
	return exitOK, r.tidy()
}

// processorTime returns the processor time of this process and of the children that
// it has waited for.
func processorTime() (sum time.Duration) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var u syscall.Rusage
		if syscall.Getrusage(who, &u) == nil {
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return sum
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

// command runs a command of simrun. It shows the command's progress only on a terminal. Bugs
// that the command finds are results, not errors.
func (r *renewal) command(args ...string) error {
	_, err := r.run(args...)
	return err
}

func (r *renewal) run(args ...string) (string, error) {
	var out, quiet bytes.Buffer
	a := &app{host: r.a.host, out: &out, err: &quiet, tty: r.a.tty, brief: r.a.tty, folders: r.a.folders, nested: true, stop: r.stop}
	if a.tty {
		a.err = r.a.err
	}
	code := a.main(args)
	switch code {
	case exitUndecided:
		if r.stop != nil && r.stop.Err() != nil {
			return "", r.stop.Err() // its output is incomplete
		}
	case exitUsage, exitDefect:
		return "", fmt.Errorf("simrun %s: exit %d\n%s", strings.Join(args, " "), code, quiet.String())
	case exitIO:
		return "", ioError{fmt.Errorf("simrun %s: %w", strings.Join(args, " "), a.failed)}
	}
	return out.String(), nil
}

// output runs a command of simrun and writes its output to a file of the folder.
func (r *renewal) output(file string, args ...string) error {
	text, err := r.run(args...)
	if err != nil || r.stop.Err() != nil {
		return err
	}
	return renameio.WriteFile(filepath.Join(r.dir, file), []byte(text), 0o644)
}

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

// runsOfCampaign lists the files from which an interrupted campaign continues.
var runsOfCampaign = []string{explore.RunsFile, explore.PlanFile, explore.ShrunkFile}

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

// lacks says why a part that is played live cannot be written on this machine; nil: it can, or is
// not played live.
func (p part) lacks() error {
	if p.live == nil {
		return nil
	}
	o, err := liveOptions("", "")
	if err != nil {
		return err
	}
	locks, err := findLocks(p.live)
	if err != nil {
		return err
	}
	return liveReady(locks, o)
}
