package simrun

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"lockstep/bench/command"
)

// NewBenchmarks returns the benchmarks. It is nil in a program without benchmarks.
var NewBenchmarks func(command.Options) command.Benchmarks

func (a *app) benchCommand() *cobra.Command {
	o := command.Options{Host: a.host, Root: ".",
		Worker: func() *exec.Cmd { return ownProcess(context.Background(), workerCommand) },
		Hunter: func() *exec.Cmd { return ownProcess(context.Background(), hunterCommand) }}
	out := ""
	c := a.command(guide{
		use: "bench", optionsOnly: true, short: "measure what runs cost, into results/performance.md",
		long: "Bench measures the cost of runs on this machine and writes the figures to results/performance.md. Call it in a clone of Lockstep.\n" +
			"The page keeps the sections of the parts that are not measured now, from the data beside it (performance.jsonl). The same command continues a hunt that was interrupted.\n" +
			"The parts are step, schedule, run, hour, workers, memory, shrinking, real-time, lock, growth and worlds; and hunt, which takes hours and is measured only if it is named. Only the program in peers/ hunts the known defects of other people's locks.",
		examples: []string{"bench --only hour --quick --rounds 1 --out -"},
	}, func(in invocation) (int, error) { return a.bench(in, o, out) })
	f := c.Flags()
	f.StringSliceVar(&o.Only, "only", nil, "these `PARTS`")
	whole(f, &o.Rounds, "rounds", 5, bounds{1, 1000}, "how often each comparison is measured in turn")
	f.BoolVar(&o.Quick, "quick", false, "measure little of everything, for a first look")
	f.StringVar(&out, "out", filepath.Join("results", "performance.md"), "write the page to `FILE`, and its data beside it; - is the output")
	a.progressFlag(f)
	return c
}

// bench measures the cost of runs and writes the figures to a file.
func (a *app) bench(in invocation, o command.Options, out string) (int, error) {
	if NewBenchmarks == nil {
		return 0, usagef("bench: this program has no benchmarks; run go run ./cmd/simrun bench in a clone of Lockstep")
	}
	check := func() error {
		if err := NewBenchmarks(o).Check(); err != nil {
			return usageError{fmt.Errorf("bench: %w", err)}
		}
		return nil
	}
	if err := check(); err != nil {
		return 0, err
	}
	o.Command = strings.Join(append([]string{program() + " bench"}, in.args...), " ")
	data := strings.TrimSuffix(out, filepath.Ext(out)) + ".jsonl"
	if out != "-" {
		if err := inputFolder(filepath.Dir(out), "bench --out takes a file in a folder that is there"); err != nil {
			return 0, err
		}
		if data == out {
			return 0, usagef("bench --out %s: a file with this ending has the data beside a page; name the page, as in performance.md", out)
		}
		kept, err := os.ReadFile(data)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
		if _, page := os.Stat(out); err != nil && page == nil && len(o.Only) > 0 {
			return 0, usagef("bench: %s would lose its other sections, since their data are not in %s; measure all parts, or name another file with --out", out, data)
		}
		o.Kept = kept
		if err := check(); err != nil {
			return 0, err
		}
	}
	if _, err := os.Stat("go.mod"); err != nil {
		return 0, usagef("bench: run it in the folder of the repository, where go.mod is: it builds what it compares with")
	}
	o.Progress = func(part string) { a.advance("measuring: %s", part) }
	var page, figures bytes.Buffer
	err := NewBenchmarks(o).Run(func(r command.Report) error { // writes the figures so far, so that an interrupt loses none
		page.Reset()
		figures.Reset()
		if err := errors.Join(r.WritePage(&page), r.WriteData(&figures)); err != nil || out == "-" {
			return err
		}
		return errors.Join(renameio.WriteFile(data, figures.Bytes(), 0o644), renameio.WriteFile(out, page.Bytes(), 0o644))
	})
	if err != nil {
		return 0, err
	}
	if out == "-" {
		_, err = a.out.Write(page.Bytes())
		return exitOK, err
	}
	fmt.Fprintf(a.out, "written to %s\n", out)
	return exitOK, nil
}

// ownProcess returns the command that starts this program with a command that is not for users. The process
// is killed when quit ends.
func ownProcess(quit context.Context, command string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return exec.CommandContext(quit, self, command)
}

// hunterCommand is the command with which simrun starts itself to hunt the bugs of one lock. It is not for users.
const hunterCommand = "hunt-worker"

func (a *app) hunter([]string) (int, error) {
	if NewBenchmarks == nil {
		return 0, usagef("%s: this program has no benchmarks", hunterCommand)
	}
	return exitOK, a.serveParent(func(in io.Reader) error {
		return NewBenchmarks(command.Options{Host: a.host}).ServeHunts(in, os.Stdout)
	})
}
