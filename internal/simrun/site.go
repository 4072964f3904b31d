package simrun

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"lockstep/internal/counted"
	"lockstep/report"
	"lockstep/report/site"
)

func (a *app) siteCommand() *cobra.Command {
	repository := "."
	c := a.command(guide{
		use: "site DIR", short: "write documents, results and a page of each recording as a static site",
		long: "Site writes docs/, results/ and the pages of recordings as one site with a search. The site works from a file and on any host of static files, " +
			"and loads nothing from another host. A second call with the same folder renews the site.",
		examples: []string{"site site-of-mine"},
	}, func(in invocation) (int, error) { return a.site(in.names, repository) })
	c.Flags().StringVar(&repository, "repository", repository, "the root of the repository is `DIR`")
	a.progressFlag(c.Flags())
	c.ValidArgsFunction = folders
	return c
}

// site writes the site of a repository into the folder that is named.
func (a *app) site(names []string, repository string) (int, error) {
	if len(names) != 1 {
		return 0, usagef("site takes one folder, into which it writes the site; got %d", len(names))
	}
	if err := inputFolder(repository, "--repository takes the root of the repository"); err != nil {
		return 0, err
	}
	root, err := os.OpenRoot(repository)
	if err != nil {
		return 0, usagef("site: %w", err)
	}
	defer func() { _ = root.Close() }()
	for _, folder := range []string{"docs", "results"} {
		if info, err := root.Stat(folder); err != nil || !info.IsDir() {
			return 0, usagef("site: there is no folder %s; call site in the root of the repository, or name the root with --repository", filepath.Join(repository, folder))
		}
	}
	results, err := root.OpenRoot("results")
	if err != nil {
		return 0, usagef("site: %w", err)
	}
	defer func() { _ = results.Close() }()
	dir := filepath.Join(repository, "results")
	index, err := readIndex(results, dir)
	if err != nil {
		return 0, err
	}
	release, err := a.folder(names[0])
	if err != nil {
		return 0, usageError{fmt.Errorf("site: %w", err)}
	}
	defer release()
	folder, err := site.Open(names[0])
	if err != nil {
		return 0, usagef("site: %w", err)
	}
	ctx, stop := a.interruptible()
	defer stop()
	pace := a.paced()
	w, err := folder.Write(ctx, site.Source{
		Repository: root, Index: index,
		Page: func(recording, shared string, links ...report.Link) ([]byte, error) {
			r, drawn, err := a.runOf(results, dir, recording)
			if err != nil {
				return nil, err
			}
			var b bytes.Buffer
			err = report.WritePage(&b, r, drawn, shared, links...)
			return b.Bytes(), err
		},
		Progress: func(done, of int, recording string) {
			pace.tell(func(time.Time) string { return fmt.Sprintf("%d of %d runs; now %s", done, of, recording) })
		},
	})
	a.status("")
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		fmt.Fprintln(a.err, "simrun: interrupted; the same command writes the rest")
		return exitUndecided, nil
	}
	if err != nil {
		return 0, fmt.Errorf("site: %w", err)
	}
	var foreign, bad []string
	for recording, err := range w.Without {
		if errors.As(err, new(unknownLockError)) {
			foreign = append(foreign, recording)
		} else {
			bad = append(bad, err.Error())
		}
	}
	fmt.Fprintf(a.out, "%s, with %s and %s\n", filepath.Join(names[0], "index.html"), counted.Of(w.Documents, "document"), counted.Of(w.Runs, "run"))
	if len(foreign) > 0 {
		fmt.Fprintf(a.out, "there as files, since this program does not know their locks: %s\n", counted.Of(len(foreign), "recording"))
	}
	if len(bad) > 0 {
		slices.Sort(bad)
		fmt.Fprintln(a.err, "simrun: these recordings have no page and are there as files:")
		for _, line := range bad {
			fmt.Fprintln(a.err, line)
		}
		return exitUndecided, nil
	}
	return exitOK, nil
}
