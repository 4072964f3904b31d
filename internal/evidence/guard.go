package evidence

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"

	"lockstep/cli/frame"
)

// liveGuard is the hidden command that becomes another program, which ends with the process that
// started it.
const liveGuard = "live-guard"

func becomeGuarded(a *frame.App, args []string) (int, error) {
	if len(args) == 0 || !filepath.IsAbs(args[0]) {
		return 0, frame.Usagef("%s is a part of live; call evidence upstream", liveGuard)
	}
	return 0, become(args)
}

// guarded puts a program into dir that runs another program of the path, and ends with the process that
// starts it. A test that must also run without this repository cannot do this itself.
func guarded(dir, program string) error {
	path, err := exec.LookPath(program)
	if err != nil {
		return err
	}
	if path, err = filepath.Abs(path); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	quote := func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
	text := fmt.Sprintf("#!/bin/sh\nexec %s %s %s \"$@\"\n", quote(self), liveGuard, quote(path))
	return renameio.WriteFile(filepath.Join(dir, program), []byte(text), 0o777)
}
