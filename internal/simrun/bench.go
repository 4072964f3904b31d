package simrun

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"lockstep/sim"
)

// BenchOptions are the settings of the benchmarks.
type BenchOptions struct {
	Host *sim.Host
	// Only lists the parts to measure. An empty list stands for all parts.
	Only []string
	// Rounds is the number of times that a comparison measures its sides in turn. It is
	// at least 1.
	Rounds int
	// Quick measures a tenth of everything or less, for a first look.
	Quick bool
	// Worker returns a command that plays runs as a worker of a campaign does (explore.Serve).
	Worker func() *exec.Cmd
	// Root is the folder of this repository. Benchmarks build the programs of other
	// people's locks there.
	Root string
	// Progress is called with the name of each part before it is measured.
	Progress func(string)
}

// Benchmarks measure the cost of runs.
type Benchmarks interface {
	// Check returns an error if the options are not valid.
	Check() error
	// Run measures the parts. It calls each after every part with the report so far.
	Run(each func(BenchReport) error) error
}

// BenchReport holds the measured figures.
type BenchReport interface {
	// Write writes the report. The command that measured the figures stands on top.
	Write(w io.Writer, command string) error
}

// NewBenchmarks returns the benchmarks. It is nil in a program without benchmarks.
var NewBenchmarks func(BenchOptions) Benchmarks

// bench measures the cost of runs and writes the figures to a file.
func (a *app) bench(args []string) (int, error) {
	o := BenchOptions{Host: a.host, Worker: func() *exec.Cmd { return workerProcess(context.Background()) }, Root: "."}
	out := ""
	rest, err := flags("bench", args, func(f *pflag.FlagSet) {
		f.StringSliceVar(&o.Only, "only", nil, "")
		f.IntVar(&o.Rounds, "rounds", 5, "")
		f.BoolVar(&o.Quick, "quick", false, "")
		f.StringVar(&out, "out", filepath.Join("results", "performance.md"), "")
	})
	if err != nil {
		return 0, err
	}
	if len(rest) > 0 {
		return 0, usagef("bench: %q is no option; bench takes options only", rest[0])
	}
	if NewBenchmarks == nil {
		return 0, usagef("bench: this program has no benchmarks; run go run ./cmd/simrun bench in a clone of Lockstep")
	}
	if err := NewBenchmarks(o).Check(); err != nil {
		return 0, usageError{fmt.Errorf("bench: %w", err)}
	}
	if info, err := os.Stat(filepath.Dir(out)); out != "-" && (err != nil || !info.IsDir()) {
		return 0, usagef("bench: --out %s: there is no folder %s", out, filepath.Dir(out))
	}
	if _, err := os.Stat("go.mod"); err != nil {
		return 0, usagef("bench: run it in the folder of the repository, where go.mod is: it builds what it compares with")
	}
	o.Progress = func(part string) { fmt.Fprintf(a.err, "measuring: %s\n", part) }
	command := strings.Join(append([]string{program() + " bench"}, args...), " ")
	var text bytes.Buffer
	err = NewBenchmarks(o).Run(func(r BenchReport) error { // writes after every part, so that an interrupt loses no figures
		text.Reset()
		if err := r.Write(&text, command); err != nil || out == "-" {
			return err
		}
		return os.WriteFile(out, text.Bytes(), 0o644)
	})
	if err != nil {
		return 0, err
	}
	if out == "-" {
		_, err = a.out.Write(text.Bytes())
		return exitOK, err
	}
	fmt.Fprintf(a.out, "written to %s\n", out)
	return exitOK, nil
}

// workerProcess returns the command that starts this program as a worker of a campaign. The
// worker is killed when quit ends.
func workerProcess(quit context.Context) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return exec.CommandContext(quit, self, workerCommand)
}
