package evidence

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"lockstep/cli/frame"
	"lockstep/linearizability/judges"
	"lockstep/live/upstream"
	"lockstep/scenarios/play"
)

// playLive plays the scenario on the library itself.
func playLive(a *frame.App, ctx context.Context, c *upstreamCase, o play.LiveOptions, runs int) error {
	if c.lock == nil {
		if text, err := exec.CommandContext(ctx, "redis-server", "--version").Output(); err == nil {
			c.Programs = []string{string(bytes.TrimSpace(text))}
		}
		return nil
	}
	for n := 1; n <= runs; n++ {
		r, err := a.Live.Run(ctx, c.Simulated.Scenario, c.lock, uint64(n), o)
		if err != nil {
			return err
		}
		c.Runs, c.Programs = n, r.Programs
		shown := false
		if c.lock.Port != nil {
			shown = upstream.Shows(r.Verdict, c.Finding)
		} else {
			// The code is the same in both worlds, so the cause of the defect must be in the live run itself.
			var f judges.Finding
			if f, shown = findingOf(a, r.Verdict, c.defect); shown && c.Live == nil {
				c.Shown = &f
			}
		}
		if shown {
			c.Reproduced++
			if c.Live == nil {
				c.Live = &r
			}
		}
	}
	return nil
}

// write runs the test of a defect, and writes the folder of its report. Each defect that was seen on the library has
// a folder.
func (c *upstreamCase) write(ctx context.Context, live play.LivePlayer, dir string, tries int) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	tested := c.Library != nil && c.Library.Source != nil && c.Runs > 0 && tries > 0 // the test may show the defect although no run did
	if c.Case == nil && c.Reproduced == 0 && !tested {
		c.reason = cmp.Or(c.reason, unseen)
		return nil
	}
	if c.lock != nil && c.lock.Port == nil && c.Library == nil {
		c.reason = noLibrary
		return nil
	}
	project, err := c.files()
	switch {
	case upstream.Inexpressible(err):
		c.reason = err.Error()
	case err != nil:
		return err
	case tries > 0 && project["pom.xml"] != nil:
		c.Test, err = runMaven(ctx, live, project)
	case tries > 0 && project["go.mod"] != nil:
		c.Test, err = runGo(ctx, live, project)
	}
	if err != nil && !upstream.Inexpressible(err) {
		return err
	}
	if c.Case == nil && !c.seen() {
		c.reason = cmp.Or(c.reason, unseen)
		return nil
	}
	files := map[string][]byte{reportFile: c.Text()}
	if c.Case == nil {
		files[storyFile] = []byte(c.Simulated.Scenario.Text)
	}
	return writeFiles(dir, files)
}

// unseen is the reason why a defect has no report.
const unseen = "the library was not seen to do it"

// seen reports whether a run or a try showed the defect.
func (c *upstreamCase) seen() bool { return c.Reproduced > 0 || c.Test != nil && c.Test.Failed > 0 }

func writeFiles(dir string, files map[string][]byte) error {
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			return err
		}
		if err := renameio.WriteFile(file, text, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// runMaven plays the test of a project, in a folder that is removed. However this program ends, no
// process remains: Maven, which plays the test in its own JVM, ends with this program, and
// redis-server ends with the JVM.
func runMaven(ctx context.Context, live play.LivePlayer, project map[string][]byte) (*upstream.TestRun, error) {
	dir, path, free, err := guardedProject(live, project, "redis-server")
	if err != nil {
		return nil, err
	}
	defer free()
	var out bytes.Buffer
	for _, mode := range []string{"-o", "-U"} { // use what Maven has before fetching anything
		cmd := exec.CommandContext(ctx, "mvn", mode, "-q", "-B", "-DforkCount=0", "test")
		cmd.Env = append(os.Environ(), path)
		cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, &out, &out, time.Minute
		out.Reset()
		err := live.Spawn(cmd)
		if err == nil {
			err = cmd.Wait()
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		r, e := readSurefire(os.DirFS(dir))
		if e != nil {
			return nil, e
		}
		if r.Tries > 0 { // the error of Maven means that a test failed
			return r, nil
		}
		if err == nil {
			return nil, errors.New("maven ran no test")
		}
	}
	return nil, fmt.Errorf("maven: %s", out.String())
}

// guardedProject writes the project of a test to a place where it may be played, and returns the folder and the
// PATH of its processes. A server that is found on this PATH ends with this program; a server that the
// machine lacks is left out. free removes the folder and the PATH.
func guardedProject(live play.LivePlayer, project map[string][]byte, servers ...string) (dir, path string, free func(), err error) {
	folder, free, err := live.Folder()
	if err != nil {
		return "", "", nil, err
	}
	defer func() {
		if err != nil {
			free()
		}
	}()
	dir, programs := filepath.Join(folder, "test"), filepath.Join(folder, "programs")
	if err = writeFiles(dir, project); err != nil {
		return "", "", nil, err
	}
	if err = os.Mkdir(programs, 0o777); err != nil {
		return "", "", nil, err
	}
	for _, server := range servers {
		if err = guarded(programs, server); err != nil && !errors.Is(err, exec.ErrNotFound) {
			return "", "", nil, err
		}
	}
	return dir, "PATH=" + programs + string(filepath.ListSeparator) + os.Getenv("PATH"), free, nil
}

// runGo plays the test of a Go module in a folder that is removed.
func runGo(ctx context.Context, live play.LivePlayer, module map[string][]byte) (*upstream.TestRun, error) {
	dir, path, free, err := guardedProject(live, module, "redis-server", "mariadbd", "java")
	if err != nil {
		return nil, err
	}
	defer free()
	var out bytes.Buffer
	for _, args := range [][]string{{"mod", "tidy"}, {"test", "-count=1", "-json", "."}} {
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", path)
		cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = dir, &out, &out, time.Minute
		out.Reset()
		err := live.Spawn(cmd)
		if err == nil {
			err = cmd.Wait()
		}
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil && args[0] == "mod":
			return nil, fmt.Errorf("go mod tidy: %w: %s", err, out.String())
		}
	}
	return readGoTest(out.Bytes())
}

// readGoTest reads the tries of a test, which are its subtests, from the output of go test -json. A try that shows
// the defect has the attribute upstream.ShownAttribute. A try that fails without it says nothing of the defect.
func readGoTest(out []byte) (*upstream.TestRun, error) {
	r := &upstream.TestRun{}
	shown := map[string]string{}
	for line := range bytes.Lines(out) {
		var e struct{ Action, Test, Key, Value string }
		if json.Unmarshal(line, &e) != nil || !strings.Contains(e.Test, "/") {
			continue
		}
		switch e.Action {
		case "attr":
			if e.Key == upstream.ShownAttribute {
				shown[e.Test] = cmp.Or(shown[e.Test], e.Value)
			}
		case "pass":
			r.Tries++
		case "fail":
			r.Tries++
			if shown[e.Test] == "" {
				r.Errors++
				continue
			}
			r.Failed++
			r.Message = cmp.Or(r.Message, shown[e.Test])
		}
	}
	if r.Tries == 0 {
		return nil, fmt.Errorf("go test played nothing: %s", out)
	}
	return r, nil
}

// readSurefire reads the files that Maven wrote about the tests.
func readSurefire(dir fs.FS) (*upstream.TestRun, error) {
	files, err := fs.Glob(dir, "target/surefire-reports/TEST-*.xml")
	if err != nil {
		return nil, err
	}
	r := &upstream.TestRun{}
	for _, name := range files {
		text, err := fs.ReadFile(dir, name)
		if err != nil {
			return nil, err
		}
		var suite struct {
			Cases []struct {
				Failure *struct {
					Message string `xml:"message,attr"`
				} `xml:"failure"`
				Error *struct {
					Message string `xml:"message,attr"`
				} `xml:"error"`
			} `xml:"testcase"`
		}
		if err := xml.Unmarshal(text, &suite); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, c := range suite.Cases {
			r.Tries++
			switch {
			case c.Failure != nil:
				r.Failed++
				r.Message = cmp.Or(r.Message, c.Failure.Message)
			case c.Error != nil:
				r.Errors++
			}
		}
	}
	return r, nil
}
