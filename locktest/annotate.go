package locktest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"lockstep/report"
)

// place is a line of a test file.
type place struct {
	file string
	line int
}

// callerOfRun returns the line that calls Run or Fuzz, which call callerOfRun.
func callerOfRun() place {
	_, file, line, ok := runtime.Caller(2)
	if !ok {
		return place{}
	}
	return place{file, line}
}

// annotate tells a GitHub workflow of a failure, which shows it at the line that judges
// the lock. Elsewhere it prints nothing.
func (r *runner) annotate(t *testing.T, title, text string) {
	if os.Getenv("GITHUB_ACTIONS") != "true" {
		return
	}
	a := report.Annotation{Level: "error", File: inWorkspace(r.at.file), Line: r.at.line, Title: title, Text: text}
	// A workflow takes the line although go test indents it.
	_, _ = fmt.Fprintln(t.Output(), a)
}

// errorf reports an error that is no bug of the lock, as t.Errorf does. The first line of its
// text also becomes an annotation.
func (r *runner) errorf(t *testing.T, format string, args ...any) {
	t.Helper()
	text := fmt.Sprintf(format, args...)
	first, _, _ := strings.Cut(text, "\n")
	r.annotate(t, "locktest", strings.TrimPrefix(first, "locktest: "))
	r.soFar.show(text)
	say(t).Error(text)
}

// inWorkspace returns the path of a file in the repository of a GitHub workflow, "" if
// nobody knows it. The path of a file that was compiled with -trimpath begins with that
// of the module. A test runs in the folder of its package, where the file is, too.
func inWorkspace(file string) string {
	if file == "" {
		return ""
	}
	if !filepath.IsAbs(file) {
		here, err := filepath.Abs(filepath.Base(file))
		if err != nil {
			return ""
		}
		file = here
	}
	if _, err := os.Stat(file); err != nil {
		return ""
	}
	inside, err := filepath.Rel(os.Getenv("GITHUB_WORKSPACE"), file)
	if err != nil || inside == ".." || strings.HasPrefix(inside, ".."+string(filepath.Separator)) {
		return ""
	}
	return filepath.ToSlash(inside)
}
