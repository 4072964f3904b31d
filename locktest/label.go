package locktest

import (
	"context"
	"os"
	"runtime/pprof"
	"strings"
	"sync"
)

// showLabels lets the runtime show the labels of a goroutine above its stack. A panic in a goroutine of the
// lock ends the binary at once, so the stack is the only text that can say what was played. A setting of
// the user stays.
var showLabels = sync.OnceFunc(func() {
	const name, setting = "GODEBUG", "tracebacklabels"
	was := os.Getenv(name)
	if strings.Contains(was, setting+"=") {
		return
	}
	if was != "" {
		was += ","
	}
	_ = os.Setenv(name, was+setting+"=1")
})

// playing gives the calling goroutine a label that names the run. Goroutines that are started in the run inherit
// the label.
func playing(what string) {
	pprof.SetGoroutineLabels(pprof.WithLabels(context.Background(), pprof.Labels("lockstep", what)))
}
