package bench

import (
	"io"
	"os/exec"

	"lockstep/sim"
)

// Options are the settings of the benchmarks.
type Options struct {
	Host *sim.Host
	// Only lists the parts to measure. An empty list stands for all parts.
	Only []string
	// Rounds is the number of times that a comparison measures its sides in turn. It is
	// at least 1.
	Rounds int
	// Quick measures a tenth of everything or less, for a first look.
	Quick bool
	// Command is the command line of this call. The page names it where the figures are.
	Command string
	// Kept has the data that WriteData wrote in an earlier call, if any. The report keeps its parts
	// that are not measured now. A hunt that was interrupted goes on.
	Kept []byte
	// Worker returns a command that plays runs as a worker of a campaign does (explore.Serve).
	Worker func() *exec.Cmd
	// Hunter returns a command that serves hunts (Benchmarks.ServeHunts) on its input and output.
	Hunter func() *exec.Cmd
	// Root is the folder of this repository. Benchmarks build the programs of other
	// people's locks there.
	Root string
	// Progress is called with the name of each part before it is measured. It may be nil.
	Progress func(string)
}

// Benchmarks measure the cost of runs.
type Benchmarks interface {
	// Check returns an error if the options are not valid.
	Check() error
	// Run measures the parts. It calls each after every part, and now and then during a hunt,
	// with the report so far. A part for which a program is missing on this machine says so in
	// the report. An error is a defect, or an error of each.
	Run(each func(Report) error) error
	// ServeHunts plays the hunts that another process asks for, until in ends.
	ServeHunts(in io.Reader, out io.Writer) error
}

// Report holds the measured figures.
type Report interface {
	// WritePage writes the figures for people.
	WritePage(w io.Writer) error
	// WriteData writes the figures as JSON Lines, a part each, for a later call.
	WriteData(w io.Writer) error
}
