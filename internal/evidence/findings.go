package evidence

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"lockstep/cli/frame"
	"lockstep/explore"
)

func findingsCommand(a *frame.App) *cobra.Command {
	var out string
	c := a.Command(frame.Guide{
		Use: "findings DIR ...", Short: "write up what campaigns found",
		Long: "Findings writes up what campaigns found, from the folders that explore --out wrote: each known defect with its story and the campaigns that met it, " +
			"then the bugs without a name, and the limits.",
		Examples: []string{"findings results/explore/setnx-del -o findings.md"},
	}, func(in frame.Invocation) (int, error) { return findings(a, in, out) })
	c.Flags().StringVarP(&out, "out", "o", "", "write it to `FILE`")
	c.ValidArgsFunction = frame.Folders
	return c
}

// findings writes the findings of several campaigns as Markdown.
func findings(a *frame.App, in frame.Invocation, out string) (int, error) {
	dirs := in.Names
	if len(dirs) == 0 {
		return 0, frame.Usagef("findings takes the folders that explore --out wrote")
	}
	for _, dir := range dirs {
		if err := frame.InputFolder(dir, "findings takes the folders that explore --out wrote"); err != nil {
			return 0, err
		}
	}
	var to *frame.Target
	base := "."
	if out != "" {
		var err error
		if to, err = frame.NewTarget(out, filepath.Join(dirs[0], explore.VerdictsFile)); err != nil {
			return 0, err
		}
		base = filepath.Dir(out)
	}
	command := a.Called() + " findings " + strings.Join(in.Args, " ")
	var b bytes.Buffer
	fmt.Fprintf(&b, "<!-- written by: %s -->\n# What explore found\n\nWritten by `%s`.\n\n", command, command)
	if err := explore.WriteFindings(&b, base, dirs); err != nil {
		return 0, frame.Usage(fmt.Errorf("findings: %w", err))
	}
	if to != nil {
		return frame.ExitOK, to.Replace(b.Bytes())
	}
	_, err := a.Out.Write(b.Bytes())
	return frame.ExitOK, err
}
