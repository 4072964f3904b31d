package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"lockstep/cli/frame"
	"lockstep/internal/counted"
	"lockstep/report"
	"lockstep/scenarios/play"
	"lockstep/scenarios/subject"
)

// reportFolder writes an index of a folder and a report of each of its recordings. It writes
// them into another folder.
func reportFolder(a *frame.App, dir string, o reportOptions) (int, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, frame.Usagef("report: %w", err)
	}
	defer func() { _ = root.Close() }()
	x, err := ReadIndex(root, dir)
	if err != nil {
		return 0, err
	}
	if !o.toFile {
		o.out = filepath.Base(filepath.Clean(dir)) + "-report"
	}
	if o.out == "" {
		return 0, frame.Usagef("-o needs a folder")
	}
	release, err := a.FolderOf("-o", o.out)
	if err != nil {
		return 0, frame.Usage(fmt.Errorf("report: %w", err))
	}
	defer release()
	index, err := frame.NewTarget(filepath.Join(o.out, "index.html"), "")
	if err != nil {
		return 0, err
	}
	ctx, stop := a.Interruptible()
	defer stop()
	all := map[string]bool{}
	x.EachRecording(func(recording string, _ *string) { all[recording] = true })
	var shared bytes.Buffer
	if err := report.WriteShared(&shared); err != nil {
		return 0, err
	}
	if err := writeInto(a, o.out, report.SharedFile, shared.Bytes()); err != nil {
		return 0, err
	}
	pages := folderPages{a: a, root: root, dir: dir, out: o.out, of: len(all), pace: a.Paced(), written: map[string]bool{}}
	x.EachRecording(func(recording string, link *string) {
		if ctx.Err() != nil {
			return
		}
		if page := strings.TrimSuffix(recording, ".lockstep") + ".html"; pages.has(recording, page) {
			*link = href(page)
		}
	})
	a.Status("")
	if ctx.Err() != nil {
		return 0, frame.InterruptedError(fmt.Sprintf(" after %s; there is no index", counted.Of(len(pages.written), "report")))
	}
	var b bytes.Buffer
	if err := report.WriteIndex(&b, x); err != nil {
		return 0, err
	}
	if err := index.Replace(b.Bytes()); err != nil {
		return 0, err
	}
	fmt.Fprintf(a.Out, "%s, with %s\n", filepath.Join(o.out, "index.html"), counted.Of(pages.reports, "report"))
	if len(pages.bad) > 0 {
		a.Complain("without a report:\n%v", errors.Join(pages.bad...))
	}
	if pages.foreign > 0 {
		a.Complain("without a report: %s of locks that this program does not know", counted.Of(pages.foreign, "recording"))
	}
	if len(pages.outside) > 0 {
		a.Complain("without a report: %s outside of %s, of which nothing is read; report a folder that has them, such as %s", counted.Of(len(pages.outside), "recording"), dir, filepath.Join(append([]string{dir}, above(pages.outside)...)...))
	}
	if len(pages.bad)+pages.foreign+len(pages.outside) > 0 {
		return frame.ExitUndecided, nil
	}
	return frame.ExitOK, nil
}

// folderPages writes the pages of the recordings of a folder, each once.
type folderPages struct {
	a        *frame.App
	root     *os.Root
	dir, out string
	of       int // recordings
	pace     *frame.Pacer
	written  map[string]bool // by recording: whether it has a page
	reports  int
	foreign  int      // recordings of unknown locks
	outside  []string // recordings that the folder does not have
	bad      []error  // of the others without a page
}

// has reports whether a recording has a page. It writes the page when it is first asked.
func (p *folderPages) has(recording, page string) bool {
	if ok, tried := p.written[recording]; tried {
		return ok
	}
	p.pace.Tell(func(time.Time) string {
		return fmt.Sprintf("%d of %d reports; now %s", len(p.written), p.of, recording)
	})
	if !filepath.IsLocal(filepath.FromSlash(recording)) {
		p.written[recording], p.outside = false, append(p.outside, recording)
		return false
	}
	err := reportInto(p.a, p.root, p.dir, recording, p.out, page)
	p.written[recording] = err == nil
	switch {
	case errors.As(err, new(UnknownLockError)):
		p.foreign++
	case err != nil:
		p.bad = append(p.bad, err)
	default:
		p.reports++
	}
	return err == nil
}

// above returns the way to the lowest folder above that has all of these recordings.
func above(recordings []string) (up []string) {
	most := 0
	for _, recording := range recordings {
		most = max(most, strings.Count(path.Clean(recording)+"/", "../"))
	}
	return slices.Repeat([]string{".."}, most)
}

// href returns the link from the index to a page.
func href(page string) string {
	var parts []string
	for _, p := range strings.Split(page, "/") {
		parts = append(parts, strings.NewReplacer("%", "%25", "?", "%3F", "#", "%23").Replace(p))
	}
	return "./" + strings.Join(parts, "/")
}

// reportInto writes the report of one recording of a folder.
func reportInto(a *frame.App, root *os.Root, dir, recording, out, page string) error {
	r, drawn, err := RunOf(a, root, dir, recording)
	if err != nil {
		return err
	}
	up := strings.Repeat("../", strings.Count(page, "/"))
	var b bytes.Buffer
	if err := report.WritePage(&b, r, drawn, up+report.SharedFile, report.Link{Text: "all runs", To: up + "index.html"}); err != nil {
		return err
	}
	return writeInto(a, out, page, b.Bytes())
}

// writeInto replaces a file of a folder, and makes the folders that it lies in.
func writeInto(a *frame.App, out, name string, text []byte) error {
	file := filepath.Join(out, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	to, err := frame.NewTarget(file, "")
	if err != nil {
		return err
	}
	return to.Replace(text)
}

// An UnknownLockError is the error of a recording of a lock that this program does not know.
type UnknownLockError struct{ error }

func (e UnknownLockError) Unwrap() error { return e.error }

// RunOf plays a recording of a folder again. It returns the run for a report, and porcupine's
// pictures of it. It reads no file outside the folder.
func RunOf(a *frame.App, root *os.Root, dir, recording string) (report.Run, []report.Picture, error) {
	f, err := openFound(root, path.Clean(recording))
	if err != nil {
		return report.Run{}, nil, err
	}
	text, err := io.ReadAll(f)
	if err := errors.Join(err, f.Close()); err != nil {
		return report.Run{}, nil, err
	}
	file := filepath.Join(dir, filepath.FromSlash(recording))
	unknown := false
	rec, sc, lock, err := play.ReadRecordingOf(file, text, func(name string) (*subject.Subject, error) {
		lock, err := subject.Find(name)
		unknown = unknown || err != nil
		return lock, err
	})
	if unknown {
		return report.Run{}, nil, UnknownLockError{err}
	}
	if err != nil {
		return report.Run{}, nil, err
	}
	v, why := playAgain(a, rec, sc, lock)
	if why != "" {
		return report.Run{}, nil, fmt.Errorf("%s is not the same again: %s", file, why)
	}
	return explained(a, v, frame.CommandInFiles("replay", file)), pictures(v), nil
}
