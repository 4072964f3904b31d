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

// LockFrames returns the innermost frames of a goroutine's stack that belong to the lock or its
// adapter, two lines per frame: the function, and its file with the line. Frames of the standard library
// and of the packages that play a run are left out. stack is as runtime.Stack writes it. LockFrames
// returns "" if no frame is left.
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
		if !ofTheLock(runtime.Frame{Function: function, File: file}) {
			continue
		}
		if strings.HasPrefix(lines[i], "created by ") {
			function = "created by " + function
		}
		out = append(out, "  "+function+"\n      "+file)
	}
	return strings.Join(out, "\n")
}

// LockFrames returns the state and the LockFrames of each of the Stacks, with one entry per set of equal
// ones. It returns the Stacks as they are if no frame is of the lock.
func (h *Hung) LockFrames() string {
	var out []string
	for _, stack := range strings.Split(strings.TrimSpace(h.Stacks), "\n\n") {
		if frames := LockFrames(stack); frames != "" {
			out = append(out, "a goroutine ["+waitsFor(stack)+"] in\n"+frames)
		}
	}
	if len(out) == 0 {
		return h.Stacks
	}
	slices.Sort(out) // the runtime lists goroutines in an order that differs from run to run
	return strings.Join(slices.Compact(out), "\n") + "\n"
}

// ofTheLock reports whether a frame belongs neither to the standard library nor to the packages that play
// a run.
func ofTheLock(frame runtime.Frame) bool {
	pkg, module := packageOf(frame.Function), path.Dir(here)
	if !strings.HasSuffix(pkg, "_test") && slices.ContainsFunc([]string{"sim", "locktest", "scenarios/play"}, func(plays string) bool { return within(pkg, path.Join(module, plays)) }) {
		return false
	}
	info, ok := debug.ReadBuildInfo()
	return ok && within(strings.TrimSuffix(pkg, "_test"), info.Main.Path) || !standard(frame)
}
