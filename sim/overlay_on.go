//go:build lockstep_overlay

package sim

import (
	"context"
	"fmt"
	"net"
	"os"
	"path"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
	"unsafe"

	overlay "overlay_missing_use_simrun_test"
)

// Overlaid reports that the program was built with the overlay of package overlay. In its worlds a goroutine
// that waits for a mutex lets time pass, all chance of the standard library repeats, and time.Now and the
// timers of a process have its wall clock and its pauses.
const Overlaid = true

// needsOverlay is the version of the overlay with which this package works.
const needsOverlay = 1

// OverlayVersion is the version of the overlay with which the program was built; 0: without one.
const OverlayVersion = overlay.Version

// An overlay is made of the files of one release, and would put these in place of those of another one.
func init() {
	switch {
	case overlay.Release != runtime.Version():
		fmt.Fprintf(os.Stderr, "lockstep: the overlay is made for %s, and this program is built with %s; make it anew: simrun overlay, or simrun test\n",
			overlay.Release, runtime.Version())
	case overlay.Version != needsOverlay:
		fmt.Fprintf(os.Stderr, "lockstep: the overlay has version %d, and the lockstep of this module needs %d; make it with the simrun of this module: go run %s/cmd/simrun test\n",
			overlay.Version, needsOverlay, path.Dir(here))
	default:
		return
	}
	os.Exit(2)
}

func init() { overlaySetDial(dialOfGoroutine) }

//go:linkname overlaySetDial
func overlaySetDial(func(ctx context.Context, network, addr string) (c net.Conn, ours bool, err error))

//go:linkname overlayProcess
func overlayProcess() unsafe.Pointer

// dialOfGoroutine dials for a goroutine of a process of a world, which then needs no dialer of the world. ours
// is false for all other goroutines.
func dialOfGoroutine(ctx context.Context, network, addr string) (c net.Conn, ours bool, err error) {
	p := (*seatProcess)(overlayProcess())
	if p == nil || p.of == nil || !strings.HasPrefix(network, "tcp") {
		return nil, false, nil
	}
	c, err = p.of.DialContext(ctx, network, addr)
	if err != nil && p.of.w.node(addr) == nil {
		if p.of.astray != nil {
			p.of.astray(addr)
		}
		err = fmt.Errorf("no server of the world is at %s, which is dialled in\n%s\n%w", addr, LockFrames(string(debug.Stack())), err)
	}
	return c, true, err
}

//go:linkname overlayBegin
func overlayBegin(seed uint64)

//go:linkname overlaySwap
func overlaySwap(*seat)

//go:linkname overlayNow
func overlayNow() (now int64, ok bool)

// since returns the time of the world since its start. time.Now is the wall clock of the caller's process.
func since(start time.Time) time.Duration {
	if now, ok := overlayNow(); ok {
		return time.Duration(now - start.UnixNano())
	}
	return time.Since(start)
}
