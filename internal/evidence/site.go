package evidence

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"lockstep/cli"
	"lockstep/cli/frame"
	"lockstep/internal/counted"
	"lockstep/report"
	"lockstep/report/site"
)

func siteCommand(a *frame.App) *cobra.Command {
	repository := "."
	c := a.Command(frame.Guide{
		Use: "site DIR", Short: "write documents, results and a page of each recording as a static site",
		Long: "Site writes docs/, results/ and the pages of recordings as one site with a search. The site works from a file and on any host of static files, " +
			"and loads nothing from another host. A second call with the same folder renews the site.",
		Examples: []string{"site site-of-mine"},
	}, func(in frame.Invocation) (int, error) { return writeSite(a, in.Names, repository) })
	c.Flags().StringVar(&repository, "repository", repository, "the root of the repository is `DIR`")
	a.ProgressFlag(c.Flags())
	c.ValidArgsFunction = frame.Folders
	return c
}

// writeSite writes the site of a repository into the folder that is named.
func writeSite(a *frame.App, names []string, repository string) (int, error) {
	if len(names) != 1 {
		return 0, frame.Usagef("site takes one folder, into which it writes the site; got %d", len(names))
	}
	if err := frame.InputFolder(repository, "--repository takes the root of the repository"); err != nil {
		return 0, err
	}
	root, err := os.OpenRoot(repository)
	if err != nil {
		return 0, frame.Usagef("site: %w", err)
	}
	defer func() { _ = root.Close() }()
	for _, folder := range []string{"docs", "results"} {
		if info, err := root.Stat(folder); err != nil || !info.IsDir() {
			return 0, frame.Usagef("site: there is no folder %s; call site in the root of the repository, or name the root with --repository", filepath.Join(repository, folder))
		}
	}
	results, err := root.OpenRoot("results")
	if err != nil {
		return 0, frame.Usagef("site: %w", err)
	}
	defer func() { _ = results.Close() }()
	dir := filepath.Join(repository, "results")
	index, err := cli.ReadIndex(results, dir)
	if err != nil {
		return 0, err
	}
	release, err := a.Folder(names[0])
	if err != nil {
		return 0, frame.Usage(fmt.Errorf("site: %w", err))
	}
	defer release()
	folder, err := site.Open(names[0])
	if err != nil {
		return 0, frame.Usagef("site: %w", err)
	}
	ctx, stop := a.Interruptible()
	defer stop()
	pace := a.Paced()
	w, err := folder.Write(ctx, site.Source{
		Repository: root, Index: index,
		Page: func(recording, shared string, links ...report.Link) ([]byte, error) {
			r, drawn, err := cli.RunOf(a, results, dir, recording)
			if err != nil {
				return nil, err
			}
			var b bytes.Buffer
			err = report.WritePage(&b, r, drawn, shared, links...)
			return b.Bytes(), err
		},
		Progress: func(done, of int, recording string) {
			pace.Tell(func(time.Time) string { return fmt.Sprintf("%d of %d runs; now %s", done, of, recording) })
		},
	})
	a.Status("")
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		a.Complain("interrupted; the same command writes the rest")
		return frame.ExitUndecided, nil
	}
	if err != nil {
		return 0, fmt.Errorf("site: %w", err)
	}
	fmt.Fprintf(a.Out, "%s, with %s and %s\n", filepath.Join(names[0], "index.html"), counted.Of(w.Documents, "document"), counted.Of(w.Runs, "run"))
	return tellWithout(a, w.Without), nil
}

// tellWithout prints the recordings that have no page and are there as files, and returns the exit code.
func tellWithout(a *frame.App, without map[string]error) int {
	var foreign, bad []string
	for recording, err := range without {
		if errors.As(err, new(cli.UnknownLockError)) {
			foreign = append(foreign, recording)
		} else {
			bad = append(bad, err.Error())
		}
	}
	if len(foreign) > 0 {
		fmt.Fprintf(a.Out, "there as files, since this program does not know their locks: %s\n", counted.Of(len(foreign), "recording"))
	}
	if len(bad) > 0 {
		slices.Sort(bad)
		a.Complain("these recordings have no page and are there as files:")
		for _, line := range bad {
			fmt.Fprintln(a.Err, line)
		}
		return frame.ExitUndecided
	}
	return frame.ExitOK
}
