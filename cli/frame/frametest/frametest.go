// Package frametest calls a program in a test, and checks the rules for all commands.
package frametest

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"lockstep/cli/frame"
	"lockstep/internal/quantity"
	"lockstep/sim"
)

// AsProgram runs the program in place of the tests, and ends it, if the first argument is no option of
// tests. A command starts its program again to do a part of it, and the program of a test is the test. So
// TestMain calls AsProgram.
func AsProgram(program func()) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		program()
		os.Exit(0)
	}
}

// Start runs this test as the program of AsProgram, in a process of its own. It returns the exit code and
// what the program prints.
func Start(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var o, e strings.Builder
	cmd := exec.Command(self, args...)
	cmd.Stdout, cmd.Stderr = &o, &e
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), o.String(), e.String()
}

// Call runs a program as a shell would.
func Call(t *testing.T, p frame.Program, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	// A line of progress comes by the machine's time, so it would come only on a busy machine.
	a := &frame.App{Program: p, Host: sim.NewHost(t), Out: &out, Err: &err, Pace: time.Hour}
	code = a.Run(args)
	return code, out.String(), err.String()
}

// Commands returns the commands of a program for users.
func Commands(t *testing.T, p frame.Program) (all []*cobra.Command) {
	t.Helper()
	for _, c := range (&frame.App{Program: p, Host: sim.NewHost(t)}).Root().Commands() {
		if !c.Hidden {
			all = append(all, c)
		}
	}
	return all
}

// Help checks that every command has a help, which names its options.
func Help(t *testing.T, p frame.Program) {
	t.Helper()
	_, list, _ := Call(t, p, "help")
	for _, c := range Commands(t, p) {
		name := c.Name()
		if c.Short == "" || c.Long == "" || c.Example == "" {
			t.Errorf("%s: short %q, long %q, example %q", name, c.Short, c.Long, c.Example)
		}
		if !strings.Contains(list, "\n  "+name+" ") || !strings.Contains(list, c.Short) {
			t.Errorf("help does not list %s", name)
		}
		code, out, stderr := Call(t, p, "help", name)
		if code != frame.ExitOK || stderr != "" || !strings.Contains(out, c.Example) || !strings.Contains(out, "\nUsage:\n  "+p.Name+" "+name) {
			t.Errorf("help %s: exit %d\n%s%s", name, code, out, stderr)
		}
		for _, help := range []string{"--help", "-h"} {
			if code, again, stderr := Call(t, p, name, help); code != frame.ExitOK || again != out || stderr != "" {
				t.Errorf("%s %s: exit %d, and another text than that of help: %s%s", name, help, code, again, stderr)
			}
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && (f.Usage == "" || !strings.Contains(out, "--"+f.Name)) {
				t.Errorf("%s says nothing of --%s", name, f.Name)
			}
		})
		for line := range strings.SplitSeq(out, "\n") {
			if n := len([]rune(line)); n > frame.HelpColumns && name != "completion" {
				t.Errorf("help %s: %d columns: %s", name, n, line)
			}
		}
	}
}

// Hidden checks that the parts of commands, with which a program starts itself, are no commands for
// users.
func Hidden(t *testing.T, p frame.Program, parts ...string) {
	t.Helper()
	_, help, _ := Call(t, p, "help")
	_, _, unknown := Call(t, p, "explode")
	_, completed, _ := Call(t, p, "__complete", "")
	for _, name := range parts {
		if strings.Contains(help+unknown+completed, name) {
			t.Errorf("%s is shown", name)
		}
		if code, _, _ := Call(t, p, "help", name); code != frame.ExitUsage {
			t.Errorf("help %s: exit %d", name, code)
		}
	}
}

// numberMost is a number of which a product with another does not overflow.
const numberMost = 1 << 50

// Bounds checks that no option takes a number or a duration without bounds, and that an option takes the ends
// of its bounds and nothing beyond. It returns how many options take one.
func Bounds(t *testing.T, p frame.Program) (numbers int) {
	t.Helper()
	for _, c := range Commands(t, p) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			var least, most int64
			switch kind := f.Value.Type(); kind {
			case "int", "int64", "float64", "duration", "count":
				t.Errorf("%s --%s is a plain %s", c.Name(), f.Name, kind)
			case "D":
				numbers++
				for text, taken := range map[string]bool{"1ms": true, "999us": false, quantity.Longest.String(): true, (quantity.Longest + 1).String(): false, "9999999h": false} {
					if err := f.Value.Set(text); (err == nil) != taken {
						t.Errorf("%s --%s %s: %v", c.Name(), f.Name, text, err)
					}
				}
			case "N":
				numbers++
				if err := f.Value.Set("18446744073709551615"); err == nil {
					return // a seed
				} else if n, _ := fmt.Sscanf(err.Error(), "from %d to %d", &least, &most); n != 2 || least < 0 || most > numberMost {
					t.Errorf("%s --%s has the bounds %v", c.Name(), f.Name, err)
				}
				for value, taken := range map[int64]bool{least: true, least - 1: false, most: true, most + 1: false} {
					if err := f.Value.Set(fmt.Sprint(value)); (err == nil) != taken {
						t.Errorf("%s --%s %d: %v", c.Name(), f.Name, value, err)
					}
				}
			}
		})
	}
	return numbers
}

// Quiet checks that commands have the option --quiet.
func Quiet(t *testing.T, p frame.Program, names ...string) {
	t.Helper()
	root := (&frame.App{Program: p, Host: sim.NewHost(t)}).Root()
	for _, name := range names {
		c, _, err := root.Find([]string{name})
		if err != nil || c.Flags().Lookup("quiet") == nil {
			t.Errorf("%s has no --quiet (%v)", name, err)
		}
	}
}
