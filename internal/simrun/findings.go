package simrun

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"lockstep/explore"
)

// findings writes the findings of several campaigns as Markdown.
func (a *app) findings(args []string) (int, error) {
	var out string
	dirs, err := flags("findings", args, func(f *pflag.FlagSet) {
		f.StringVarP(&out, "out", "o", "", "")
	})
	if err != nil {
		return 0, err
	}
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
		if to, err = newTarget(out, filepath.Join(dirs[0], explore.VerdictsFile)); err != nil {
			return 0, err
		}
		base = filepath.Dir(out)
	}
	command := program() + " findings " + strings.Join(args, " ")
	var b bytes.Buffer
	fmt.Fprintf(&b, "<!-- written by: %s -->\n# What explore found\n\nWritten by `%s`.\n\n", command, command)
	if err := explore.WriteFindings(&b, base, dirs); err != nil {
		return 0, usageError{fmt.Errorf("findings: %w", err)}
	}
	if to != nil {
		return exitOK, to.replace(b.Bytes())
	}
	_, err = a.out.Write(b.Bytes())
	return exitOK, err
}
