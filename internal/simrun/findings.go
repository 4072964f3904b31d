package simrun

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"lockstep/explore"
)

func (a *app) findingsCommand() *cobra.Command {
	var out string
	c := a.command(guide{
		use: "findings DIR ...", short: "write up what campaigns found",
		long: "Findings writes up what campaigns found, from the folders that explore --out wrote: each known defect with its story and the campaigns that met it, " +
			"then the bugs without a name, and the limits.",
		examples: []string{"findings results/explore/setnx-del -o findings.md"},
	}, func(in invocation) (int, error) { return a.findings(in, out) })
	c.Flags().StringVarP(&out, "out", "o", "", "write it to `FILE`")
	c.ValidArgsFunction = folders
	return c
}

// findings writes the findings of several campaigns as Markdown.
func (a *app) findings(in invocation, out string) (int, error) {
	dirs := in.names
	if len(dirs) == 0 {
		return 0, usagef("findings takes the folders that explore --out wrote")
	}
	for _, dir := range dirs {
		if err := inputFolder(dir, "findings takes the folders that explore --out wrote"); err != nil {
			return 0, err
		}
	}
	var to *target
	base := "."
	if out != "" {
		var err error
		if to, err = newTarget(out, filepath.Join(dirs[0], explore.VerdictsFile)); err != nil {
			return 0, err
		}
		base = filepath.Dir(out)
	}
	command := program() + " findings " + strings.Join(in.args, " ")
	var b bytes.Buffer
	fmt.Fprintf(&b, "<!-- written by: %s -->\n# What explore found\n\nWritten by `%s`.\n\n", command, command)
	if err := explore.WriteFindings(&b, base, dirs); err != nil {
		return 0, usageError{fmt.Errorf("findings: %w", err)}
	}
	if to != nil {
		return exitOK, to.replace(b.Bytes())
	}
	_, err := a.out.Write(b.Bytes())
	return exitOK, err
}
