package evidence

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"lockstep/cli"
	"lockstep/cli/frame"
	"lockstep/explore"
	"lockstep/explore/survey"
	"lockstep/internal/nearest"
	"lockstep/internal/quantity"
	"lockstep/scenarios/subject"
)

// A part is a piece of a results folder that one command writes.
type part struct {
	name    string
	checked checked
	// file is the file that has the versions of the part: cli.VersionsFile, that of the survey,
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
	a    *frame.App
	dir  string
	jobs int
	// runs is the most runs that a campaign is played with; 0: as many as before.
	runs int
	tags map[string]bool // whether a scenario of this program has the tag, once that was asked
	stop context.Context
}

func resultsCommand(a *frame.App) *cobra.Command {
	var only []string
	var check, older bool
	r := &renewal{a: a, dir: "results"}
	c := a.Command(frame.Guide{
		Use: "results [DIR]", Short: "write everything in a folder of results anew",
		Long: "Results writes everything in a folder of results anew, and prints the cost of each part. All campaigns take hours. After an interruption the same command goes on. Without a name the folder is results.\n" +
			"The parts are " + strings.Join(productNames(), ", ") + ", and a folder of campaigns, such as explore/FOLDER. " +
			"The parts that are played live (agreement, agreement-ports, agreement-planted, agreement-peers, upstream, upstream-peers) are left out where redis-server, Java or Maven is missing, unless --only names them.",
		Examples: []string{"results --check", "results --only verdicts,track-record,six-properties"},
	}, func(in frame.Invocation) (int, error) { return renew(a, in, r, only, check, older) })
	f := c.Flags()
	f.StringSliceVar(&only, "only", nil, "these `PARTS`")
	f.BoolVar(&older, "older", false, "only the parts that an older program wrote")
	f.BoolVar(&check, "check", false, "name the parts that an older program wrote, and write nothing")
	frame.Whole(f, &r.runs, "runs", 0, quantity.Runs, "play at most this many runs of each campaign; default: its own number")
	frame.JobsFlag(f, &r.jobs)
	a.ProgressFlag(f)
	c.ValidArgsFunction = frame.Folders
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
		if slices.Contains([]string{cli.VersionsFile, explore.VerdictsFile, "explore", "exhaustive"}, e.Name()) {
			return true
		}
		there = there || !strings.HasPrefix(e.Name(), ".")
	}
	return !there
}

// renew implements the command results.
func renew(a *frame.App, in frame.Invocation, r *renewal, only []string, check, older bool) (int, error) {
	switch len(in.Names) {
	case 0:
	case 1:
		r.dir = filepath.Clean(in.Names[0])
	default:
		return 0, frame.Usagef("results takes one folder, got %d", len(in.Names))
	}
	if err := frame.InputFolder(r.dir, "results takes a folder of results"); err != nil {
		return 0, err
	}
	if only == nil && !ofResults(r.dir) {
		return 0, frame.Usagef("%s has other files and no %s; results takes a folder of results, or an empty one. With --only it writes into any folder", r.dir, cli.VersionsFile)
	}
	if !check {
		release, err := a.Folder(r.dir)
		if err != nil {
			return 0, frame.Usage(fmt.Errorf("results: %w", err))
		}
		defer release()
		if err := r.recover(); err != nil {
			return 0, err
		}
	}
	parts, err := r.parts()
	if err != nil {
		return 0, frame.Usage(fmt.Errorf("results: %w", err))
	}
	if parts, err = chooseParts(parts, only); err != nil {
		return 0, frame.Usage(fmt.Errorf("results: %w", err))
	}
	if check {
		return r.check(parts, only == nil)
	}
	if older {
		if parts, err = r.older(parts); err != nil {
			return 0, frame.Usage(fmt.Errorf("results: %w", err))
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

// versions reads the versions of the program that wrote a part. It returns an error if the
// part does not name all versions that it uses.
func (r *renewal) versions(p part) (v explore.Versions, err error) {
	switch p.file {
	case cli.VersionsFile:
		all, err := cli.ReadVersions(r.dir)
		if err != nil {
			return v, err
		}
		var ok bool
		if v, ok = all[p.name]; !ok {
			return v, fmt.Errorf("%s does not say which versions wrote %s", p.file, p.name)
		}
	case survey.LocksFile:
		_, v, err = cli.OpenSurvey(r.dir)
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
			fmt.Fprintf(r.a.Out, "%s: not written yet\n", p.name)
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
			fmt.Fprintf(r.a.Out, "%s: %s\n", p.name, d)
		}
	}
	if versioned == 0 {
		return 0, frame.Usagef("results: these parts have no versions: a summary depends on its campaigns, and the performance on the machine")
	}
	fmt.Fprintf(r.a.Out, "%d of %d parts are older than this program (%s)\n", old, versioned, explore.CurrentVersions())
	if strays {
		names, err := r.strays()
		problems = append(problems, err)
		for _, name := range names {
			problems = append(problems, fmt.Errorf("no command of results writes %s; remove it", filepath.Join(r.dir, name)))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return 0, frame.Usage(fmt.Errorf("results: %w", err))
	}
	return frame.ExitOK, nil
}

// missing returns an error that names the recordings of a campaign that are not there.
func (r *renewal) missing(p part) error {
	files, err := explore.MissingRecordings(filepath.Join(r.dir, p.name))
	for _, file := range files {
		err = errors.Join(err, fmt.Errorf("%s: the recording %s is missing; write it anew: %s results %s --only %s", p.file, file, r.a.Called(), r.dir, p.name))
	}
	return err
}

// writeAll writes parts one after another and prints the cost of each. It skips the parts that
// an interrupted earlier call has finished. It also skips a part for which the machine lacks a
// program, unless the user named the part in only; then it is an error.
func (r *renewal) writeAll(parts []part, only []string) (int, error) {
	lacking := map[string]error{}
	for _, p := range parts {
		if err := p.lacks(r.a); err != nil && slices.Contains(only, p.name) {
			return 0, err
		} else if err != nil {
			lacking[p.name] = err
		}
	}
	stop, release := r.a.Interruptible()
	defer release()
	r.stop = stop
	head := r.journal(parts)
	done, err := r.done(head)
	if err != nil {
		return 0, err
	}
	for i, p := range parts {
		if slices.Contains(done, p.name) {
			fmt.Fprintf(r.a.Out, "%-50s was done before\n", p.name)
			continue
		}
		if p.foreign {
			fmt.Fprintf(r.a.Out, "%-50s is of locks that this program does not know\n", p.name)
			continue
		}
		if err := lacking[p.name]; err != nil {
			fmt.Fprintf(r.a.Out, "%-50s is not written: %v\n", p.name, err)
			continue
		}
		r.a.Status("part %d of %d: %s", i+1, len(parts), p.name)
		begun, processor := time.Now(), frame.ProcessorTime()
		err := p.write(r)
		if err == nil && stop.Err() == nil && p.file == cli.VersionsFile {
			err = cli.KeepVersions(r.dir, p.name, p.uses)
		}
		r.a.Status("")
		if stop.Err() != nil {
			r.a.Complain("interrupted at %s; the same command goes on", p.name)
			return frame.ExitUndecided, nil
		}
		if err != nil {
			return 0, fmt.Errorf("results: %s: %w", p.name, err)
		}
		done = append(done, p.name)
		if err := r.keepDone(head, done); err != nil {
			return 0, err
		}
		fmt.Fprintf(r.a.Out, "%-50s %8.1fs, %8.1fs of processors\n", p.name, time.Since(begun).Seconds(), (frame.ProcessorTime() - processor).Seconds())
	}
	return frame.ExitOK, r.tidy()
}

// command runs a command of frame.Simrun. It shows the command's progress only on a terminal. Bugs
// that the command finds are results, not errors.
func (r *renewal) command(args ...string) error {
	_, err := r.run(args...)
	return err
}

func (r *renewal) run(args ...string) (string, error) {
	var out, quiet bytes.Buffer
	a := r.a.Nested(both(r.a.Program), r.stop, &out, &quiet)
	code := a.Run(args)
	switch code {
	case frame.ExitUndecided:
		if r.stop != nil && r.stop.Err() != nil {
			return "", r.stop.Err() // its output is incomplete
		}
	case frame.ExitUsage, frame.ExitDefect:
		return "", fmt.Errorf("%s: exit %d\n%s", strings.Join(args, " "), code, quiet.String())
	case frame.ExitIO:
		return "", frame.IO(fmt.Errorf("%s: %w", strings.Join(args, " "), a.Failed))
	}
	return out.String(), nil
}

// output runs a command of frame.Simrun and writes its output to a file of the folder.
func (r *renewal) output(file string, args ...string) error {
	text, err := r.run(args...)
	if err != nil || r.stop.Err() != nil {
		return err
	}
	return renameio.WriteFile(filepath.Join(r.dir, file), []byte(text), 0o644)
}

// lacks says why a part that is played live cannot be written on this machine; nil: it can, or is
// not played live.
func (p part) lacks(a *frame.App) error {
	if p.live == nil {
		return nil
	}
	o, err := cli.LiveOptions(a, "", "")
	if err != nil {
		return err
	}
	locks, err := cli.FindLocks(p.live)
	if err != nil {
		return err
	}
	return cli.LiveReady(a, locks, o)
}
