package peers

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"lockstep/internal/filetest"
	"lockstep/lockimpl/redisserver"
)

// published is a copy of the repository, published as somebody else would do.
type published struct {
	clone     string // the clone in which the commands ran
	variables string // MODULE and VERSION, for a shell
	module    string
	version   string
	env       []string // of a user who downloads the module
}

// publish carries out docs/publishing.md on a copy of this repository. There is no
// network: the host is a bare repository, and a proxy of files has the module and what
// it requires. A repository that is published already keeps its path.
func publish(t *testing.T) *published {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		redisserver.Missing(t, "git", "git")
	}
	dir := t.TempDir()
	p := &published{clone: filepath.Join(dir, "clone")}
	host := filepath.Join(dir, "host.git")
	copyRepository(t, p.clone)
	page := blocks(t, "../docs/publishing.md", "sh")
	if len(page) != 6 {
		t.Fatalf("docs/publishing.md has %d blocks of commands, want 6", len(page))
	}
	p.variables = page[0]
	commands := page[1:4]
	if path := modulePath(t, ".."); path != unpublished {
		p.variables += "MODULE=" + path + "\n"
		commands = page[2:4]
	}
	p.module = strings.TrimSpace(must(t, dir, nil, p.variables+"echo $MODULE"))
	p.version = strings.TrimSpace(must(t, dir, nil, p.variables+"echo $VERSION"))

	must(t, dir, git, "git init -q --bare "+host)
	must(t, p.clone, git, "git init -q && git add . && git commit -q -m first && git remote add origin "+host)
	for _, block := range commands {
		must(t, p.clone, append(slices.Clone(git), "GOFLAGS=-trimpath"), p.variables+block) // -trimpath: the build cache then finds the packages compiled before
	}

	mirror := filepath.Join(dir, "mirror")
	pushed := filepath.Join(dir, "pushed")
	must(t, dir, git, "git clone -q "+host+" "+pushed)
	p.serve(t, mirror, pushed, "")
	p.serve(t, mirror, pushed, "peers")

	// The newest version of each module that this one requires is the required one.
	var mod struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal([]byte(must(t, ".", nil, "go mod edit -json")), &mod); err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(strings.TrimSpace(must(t, ".", nil, "go env GOMODCACHE")), "cache", "download")
	for _, m := range mod.Require {
		if m.Path == modulePath(t, "..") {
			continue
		}
		here, there := versions(t, mirror, m.Path), versions(t, cache, m.Path)
		filetest.Write(t, filepath.Join(here, "list"), m.Version+"\n")
		filetest.Write(t, filepath.Join(here, m.Version+".info"), `{"Version":"`+m.Version+`"}`)
		for _, file := range []string{m.Version + ".mod", m.Version + ".zip"} {
			if err := os.Symlink(filepath.Join(there, file), filepath.Join(here, file)); err != nil {
				t.Fatal(err)
			}
		}
	}
	gopath := filepath.Join(dir, "gopath")
	p.env = []string{
		"GOENV=off", "GOWORK=off", "GOSUMDB=off", "GOTOOLCHAIN=local", "GOBIN=", "GOFLAGS=-trimpath -modcacherw",
		"GOPATH=" + gopath, "GOMODCACHE=" + filepath.Join(gopath, "pkg", "mod"),
		"PATH=" + filepath.Join(gopath, "bin") + string(filepath.ListSeparator) + os.Getenv("PATH"),
		"GOPROXY=file://" + filepath.ToSlash(mirror) + ",file://" + filepath.ToSlash(cache),
	}
	return p
}

// unpublished is the path of the module in a repository that is not published.
const unpublished = "lockstep"

// git sets the committer, ignores the configuration of the machine, and starts no collection of
// garbage, which would go on in the background after a commit.
var git = []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_ALLOW_PROTOCOL=file",
	"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=gc.auto", "GIT_CONFIG_VALUE_0=0",
	"GIT_AUTHOR_NAME=you", "GIT_AUTHOR_EMAIL=you@example.com", "GIT_COMMITTER_NAME=you", "GIT_COMMITTER_EMAIL=you@example.com"}

// versions is the folder with the versions of a module in a proxy of files.
func versions(t *testing.T, proxy, path string) string {
	t.Helper()
	name, err := module.EscapePath(path)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(proxy, filepath.FromSlash(name), "@v")
}

// serve puts the tagged version of the module in a folder of the repository into a proxy.
func (p *published) serve(t *testing.T, proxy, repository, folder string) {
	t.Helper()
	v := module.Version{Path: path.Join(p.module, folder), Version: p.version}
	tag := path.Join(folder, p.version)
	dir := versions(t, proxy, v.Path)
	filetest.Write(t, filepath.Join(dir, "list"), v.Version+"\n")
	filetest.Write(t, filepath.Join(dir, v.Version+".info"), `{"Version":"`+v.Version+`"}`)
	filetest.Write(t, filepath.Join(dir, v.Version+".mod"), must(t, repository, git, "git show "+tag+":"+path.Join(folder, "go.mod")))
	var b bytes.Buffer
	if err := zip.CreateFromVCS(&b, v, repository, tag, folder); err != nil {
		t.Fatal(err)
	}
	filetest.Write(t, filepath.Join(dir, v.Version+".zip"), b.String())
}

// copyRepository copies the files that git tracks, and untracked files that it does not ignore.
func copyRepository(t *testing.T, to string) {
	t.Helper()
	for _, name := range strings.Split(must(t, "..", nil, "git ls-files -z --cached --others --exclude-standard"), "\x00") {
		text, err := os.ReadFile(filepath.Join("..", name))
		if errors.Is(err, fs.ErrNotExist) || name == "" {
			continue // removed, and not committed
		}
		if err != nil {
			t.Fatal(err)
		}
		filetest.Write(t, filepath.Join(to, name), string(text))
	}
}

// docs/publishing.md makes a module that others can use.
func TestAPublishedModuleIsOfUse(t *testing.T) {
	p := publish(t)
	page := blocks(t, "../docs/publishing.md", "sh")

	t.Run("nothing has the old path", func(t *testing.T) {
		if modulePath(t, "..") == p.module {
			t.Skip("n/a: this repository is published")
		}
		// An import, or a path in a sentence.
		old := regexp.MustCompile(`(^|[^A-Za-z0-9_./-])` + unpublished + `/[a-z]`)
		for _, name := range strings.Fields(must(t, p.clone, nil, "git ls-files '*.go' '*.md' '*.mod' ':!docs/publishing.md'")) {
			for _, line := range strings.Split(filetest.Read(t, filepath.Join(p.clone, name)), "\n") {
				if old.MatchString(line) {
					t.Errorf("%s: %s", name, line)
				}
			}
		}
		if text := must(t, p.clone, nil, "gofmt -l . && git status --short"); text != "" {
			t.Errorf("the clone is not clean:\n%s", text)
		}
	})

	t.Run("the world knows its own functions", func(t *testing.T) {
		must(t, p.clone, []string{"GOFLAGS=-trimpath"}, "go test -run TestWriters ./sim")
	})

	t.Run("simrun", func(t *testing.T) {
		text := must(t, t.TempDir(), p.env, p.variables+page[4])
		if !strings.Contains(text, "setnx-del") || !strings.Contains(text, "misdelete") {
			t.Errorf("it lists no locks and no scenarios:\n%s", text)
		}
	})

	t.Run("locktest", func(t *testing.T) {
		dir := t.TempDir()
		filetest.Write(t, filepath.Join(dir, "orders_test.go"), example(t, filepath.Join(p.clone, "docs", "locktest.md")))
		text, passed := shell(dir, p.env, p.variables+page[5])
		ordersFail(t, "example.com/shop", text, passed)
		if mod := filetest.Read(t, filepath.Join(dir, "go.mod")); strings.Contains(mod, "replace") || !strings.Contains(mod, p.module+" "+p.version) {
			t.Errorf("it was not the published module that was used:\n%s", mod)
		}
	})

	t.Run("peers", func(t *testing.T) {
		text := must(t, t.TempDir(), p.env, p.variables+"go mod init example.com/other\n"+
			`go get "$MODULE/peers/redislock@$VERSION"`+"\n"+`go list -deps "$MODULE/peers/redislock"`)
		if !strings.Contains(text, p.module+"/locktest/redistest\n") {
			t.Errorf("it is not built on locktest:\n%s", text)
		}
	})

	t.Run("CI", func(t *testing.T) { judgeWithCI(t, p) })

	t.Run("a later version", func(t *testing.T) {
		must(t, p.clone, git, p.variables+"VERSION=v0.1.1\n"+page[3])
		text := must(t, p.clone, git, "git ls-remote --tags origin && git show peers/v0.1.1:peers/go.mod")
		if !strings.Contains(text, "refs/tags/v0.1.1\n") || !strings.Contains(text, p.module+" v0.1.1") {
			t.Errorf("it is not there:\n%s", text)
		}
	})
}
