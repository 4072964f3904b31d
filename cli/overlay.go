package cli

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"lockstep/cli/frame"
	"lockstep/overlay"
)

func overlayCommand(a *frame.App) *cobra.Command {
	c := a.Command(frame.Guide{
		Use: "overlay", Short: "write the overlay of the standard library, and print its path",
		Long: "Overlay changes files of the standard library of the Go in use for one build, and prints the file that go build and go test take with -overlay. " +
			"In a test that is built with it, a lock may hold a mutex during a request, all its chance repeats, and time.Now and the timers of a process have its wall clock and its pauses. " +
			"The files are in the cache folder of the user, and GOROOT stays as it is.",
		Examples:    []string{"overlay"},
		OptionsOnly: true,
	}, func(frame.Invocation) (int, error) {
		path, err := writeOverlay()
		if err != nil {
			return 0, err
		}
		fmt.Fprintln(a.Out, path)
		return frame.ExitOK, nil
	})
	c.ValidArgsFunction = frame.Nothing
	return c
}

func testCommand(a *frame.App) *cobra.Command {
	c := a.Command(frame.Guide{
		Use: "test [ARGUMENT ...]", Short: "go test with the overlay of the standard library",
		Long: "Test calls go test with the overlay that the command overlay writes, and with the arguments and options that follow, which are those of go test. " +
			"The standard library compiles anew once, and then comes from the cache of go build.",
		Examples: []string{"test ./...", "test -run TestLock -v . -lockstep.runs=2000"},
	}, func(in frame.Invocation) (int, error) { return testWithOverlay(a, in.Args) })
	c.DisableFlagParsing = true
	run := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 0 && (args[0] == "--help" || args[0] == "-h") {
			return c.Help()
		}
		return run(c, args)
	}
	return c
}

// writeOverlay writes the overlay for the Go in use, and returns the path of its file.
func writeOverlay() (string, error) {
	in, err := overlay.InUse()
	if err != nil {
		return "", frame.Usage(err)
	}
	dir, err := overlay.CacheFolder()
	if err != nil {
		return "", frame.Usage(err)
	}
	path, err := in.Write(dir)
	if err != nil {
		return "", frame.Usage(err)
	}
	return path, nil
}

func testWithOverlay(a *frame.App, args []string) (int, error) {
	args, err := overlayArguments(args)
	if err != nil {
		return 0, err
	}
	path, err := writeOverlay()
	if err != nil {
		return 0, err
	}
	test := exec.Command("go", append([]string{"test", "-overlay=" + path}, args...)...)
	test.Stdin, test.Stdout, test.Stderr = os.Stdin, a.Out, a.Err
	err = test.Run()
	var failed *exec.ExitError
	if errors.As(err, &failed) && failed.ExitCode() > 0 {
		return failed.ExitCode(), nil
	}
	return frame.ExitOK, err
}

// overlayArguments returns arguments of go test with the tag of the overlay. It refuses an overlay of one's own. Vet is
// off unless they say otherwise, since it looks into the folder of each package, and one package is in the overlay only.
func overlayArguments(args []string) ([]string, error) {
	tags, rest := []string{overlay.Tag}, []string(nil)
	for i := 0; i < len(args); i++ {
		name, value, hasValue := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(args[i], "-"), "-"), "=")
		switch {
		case args[i] == "-args" || args[i] == "--args": // what follows is for the test
			rest, i = append(rest, args[i:]...), len(args)
		case !strings.HasPrefix(args[i], "-"):
			rest = append(rest, args[i])
		case name == "overlay":
			return nil, frame.Usagef("test: it has an overlay of its own, and go test takes only one; leave %s away", args[i])
		case name == "tags":
			if !hasValue {
				if i++; i == len(args) {
					return nil, frame.Usagef("test: -tags needs a value, as go test takes it")
				}
				value = args[i]
			}
			tags = append(tags, value)
		default:
			rest = append(rest, args[i])
		}
	}
	return append([]string{"-vet=off", "-tags=" + strings.Join(tags, ",")}, rest...), nil
}
