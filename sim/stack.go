package sim

import (
	"path"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"lockstep/model"
)

// Panic is a panic of the lock under test. The record has its text only, since a stack does not repeat.
type Panic struct {
	AtNs    int64
	Process string
	Thread  int // 0: the client was being closed
	// Action is the call in which the thread was, and Lock the lock of the call; "": it was in none.
	Action model.Action
	Lock   string
	Value  string // the text of the panic
	Frames string // of the lock, see LockFrames
}

// framesShown is the largest number of frames of one goroutine that LockFrames returns.
const framesShown = 6

// LockFrames returns the frames of a goroutine's stack that belong to the lock or its adapter, two lines per
// frame: the function, and its file with the line. These are the innermost frame that belongs neither to the
// standard library nor to the packages that play a run, and those that belong to the main module of the
// program. stack is as runtime.Stack writes it. LockFrames returns "" if there is none.
func LockFrames(stack string) string {
	var out []string
	lines := strings.Split(stack, "\n")
	for i := 0; i+1 < len(lines) && len(out) < framesShown; i++ {
		file, ok := strings.CutPrefix(lines[i+1], "\t")
		if !ok {
			continue
		}
		file, _, _ = strings.Cut(file, " +0x")
		function := functionOf(lines[i])
		if lock, own := ofTheLock(runtime.Frame{Function: function, File: file}); !lock || len(out) > 0 && !own {
			continue
		}
		if strings.HasPrefix(lines[i], "created by ") {
			function = "created by " + function
		}
		out = append(out, "  "+function+"\n      "+file)
	}
	return strings.Join(out, "\n")
}

// LockFrames returns, for each goroutine of Stacks and then of Others, its state and its LockFrames.
// Goroutines with the same state and frames have one entry. If no frame of Stacks belongs to the lock,
// LockFrames returns Stacks unchanged.
func (h *Hung) LockFrames() string {
	found := lockFramesOf(h.Stacks)
	if found == "" {
		return h.Stacks
	}
	if others := lockFramesOf(h.Others); others != "" {
		found += "\nThese goroutines of the lock wait for a server or for time. One of them may hold the mutex, if it waits for one:\n\n" + others
	}
	return found
}

func lockFramesOf(stacks string) string {
	var out []string
	for _, stack := range strings.Split(strings.TrimSpace(stacks), "\n\n") {
		if frames := LockFrames(stack); frames != "" {
			out = append(out, "a goroutine ["+strings.TrimSuffix(waitsFor(stack), " (durable)")+"] in\n"+frames+"\n")
		}
	}
	slices.Sort(out) // the runtime lists goroutines in an order that differs from run to run
	return strings.Join(slices.Compact(out), "")
}

// ofTheLock reports whether a frame belongs neither to the standard library nor to the packages that play
// a run, and whether it then belongs to the main module of the program.
func ofTheLock(frame runtime.Frame) (lock, own bool) {
	pkg := packageOf(frame.Function)
	if playsRuns(pkg) {
		return false, false
	}
	info, ok := debug.ReadBuildInfo()
	own = ok && within(strings.TrimSuffix(pkg, "_test"), info.Main.Path)
	return own || !standard(frame), own
}

// playsRuns reports whether a package plays runs, so that its code is not the lock's.
func playsRuns(pkg string) bool {
	module := path.Dir(here)
	return !strings.HasSuffix(pkg, "_test") && slices.ContainsFunc([]string{"sim", "locktest", "scenarios/play"}, func(plays string) bool { return within(pkg, path.Join(module, plays)) })
}
