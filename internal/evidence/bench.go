package evidence

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

	"lockstep/bench"
	"lockstep/cli"
	"lockstep/cli/frame"
	"lockstep/internal/quantity"
)

func benchCommand(a *frame.App) *cobra.Command {
	o := bench.Options{Host: a.Host, Root: ".",
		Worker: func() *exec.Cmd { return frame.OwnProcess(context.Background(), cli.ExploreWorker) },
		Hunter: func() *exec.Cmd { return frame.OwnProcess(context.Background(), huntWorker) }}
	out := ""
	c := a.Command(frame.Guide{
		Use: "bench", OptionsOnly: true, Short: "measure what runs cost, into results/performance.md",
		Long: "Bench measures the cost of runs on this machine and writes the figures to results/performance.md. Call it in a clone of Lockstep.\n" +
			"The page keeps the sections of the parts that are not measured now, from the data beside it (performance.jsonl). The same command continues a hunt that was interrupted.\n" +
			"The parts are step, schedule, run, hour, workers, memory, shrinking, real-time, lock, growth and worlds; and hunt, which takes hours and is measured only if it is named. Only the program in peers/ hunts the known defects of other people's locks.",
		Examples: []string{"bench --only hour --quick --rounds 1 --out -"},
	}, func(in frame.Invocation) (int, error) { return runBench(a, in, o, out) })
	f := c.Flags()
	f.StringSliceVar(&o.Only, "only", nil, "these `PARTS`")
	frame.Whole(f, &o.Rounds, "rounds", 5, quantity.BenchTimes, "how often each comparison is measured in turn")
	f.BoolVar(&o.Quick, "quick", false, "measure little of everything, for a first look")
	f.StringVar(&out, "out", filepath.Join("results", "performance.md"), "write the page to `FILE`, and its data beside it; - is the output")
	a.ProgressFlag(f)
	return c
}

// runBench measures the cost of runs and writes the figures to a file.
func runBench(a *frame.App, in frame.Invocation, o bench.Options, out string) (int, error) {
	check := func() error {
		if err := bench.New(o).Check(); err != nil {
			return frame.Usage(fmt.Errorf("bench: %w", err))
		}
		return nil
	}
	if err := check(); err != nil {
		return 0, err
	}
	o.Command = strings.Join(append([]string{a.Called() + " bench"}, in.Args...), " ")
	data := strings.TrimSuffix(out, filepath.Ext(out)) + ".jsonl"
	if out != "-" {
		if err := frame.InputFolder(filepath.Dir(out), "bench --out takes a file in a folder that is there"); err != nil {
			return 0, err
		}
		if data == out {
			return 0, frame.Usagef("bench --out %s: a file with this ending has the data beside a page; name the page, as in performance.md", out)
		}
		kept, err := os.ReadFile(data)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
		if _, page := os.Stat(out); err != nil && page == nil && len(o.Only) > 0 {
			return 0, frame.Usagef("bench: %s would lose its other sections, since their data are not in %s; measure all parts, or name another file with --out", out, data)
		}
		o.Kept = kept
		if err := check(); err != nil {
			return 0, err
		}
	}
	if _, err := os.Stat("go.mod"); err != nil {
		return 0, frame.Usagef("bench: run it in the folder of the repository, where go.mod is: it builds what it compares with")
	}
	o.Progress = func(part string) { a.Advance("measuring: %s", part) }
	var page, figures bytes.Buffer
	err := bench.New(o).Run(func(r bench.Report) error { // writes the figures so far, so that an interrupt loses none
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
		_, err = a.Out.Write(page.Bytes())
		return frame.ExitOK, err
	}
	fmt.Fprintf(a.Out, "written to %s\n", out)
	return frame.ExitOK, nil
}

// huntWorker is the command with which evidence starts itself to hunt the bugs of one lock. It is not for users.
const huntWorker = "hunt-worker"

func serveHunts(a *frame.App) (int, error) {
	return frame.ExitOK, frame.ServeParent(a, func(in io.Reader) error {
		return bench.New(bench.Options{Host: a.Host}).ServeHunts(in, os.Stdout)
	})
}
