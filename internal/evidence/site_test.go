package evidence

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/cli/frame"
	"lockstep/internal/filetest"
)

// repository makes a repository with one document and the results of one failing run, in a new
// working directory.
func repository(t *testing.T) (recording string) {
	t.Helper()
	recorded(t)
	if err := errors.Join(os.Rename("r", "results"), os.Mkdir("docs", 0o755)); err != nil {
		t.Fatal(err)
	}
	filetest.Write(t, "docs/a.md", "# A document\n\n[a run](../results/misdelete/setnx-del/1.lockstep)\n")
	return "results/misdelete/setnx-del/1.lockstep"
}

func TestSite(t *testing.T) {
	recording := repository(t)
	for range 2 { // the second call renews the site
		code, out, stderr := call(t, "site", "public")
		if code != frame.ExitOK || stderr != "" || out != filepath.FromSlash("public/index.html")+", with 2 documents and 1 run\n" {
			t.Fatalf("exit %d, %q, %q", code, out, stderr)
		}
	}
	if page := filetest.Read(t, "public/docs/a.html"); !strings.Contains(page, `<a href="../results/misdelete/setnx-del/1.html">a run</a>`) {
		t.Error("the document does not lead to the run")
	}
	page := filetest.Read(t, "public/results/misdelete/setnx-del/1.html")
	for _, want := range []string{"ended the hold of b/1 on orders at 5.014s", `src="../../../page.js"`, `href="../../../results/index.html"`, "go run ./cmd/simrun replay " + recording} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of the run has no %q", want)
		}
	}
	if index := filetest.Read(t, "public/results/index.html"); !strings.Contains(index, `href="../results/misdelete/setnx-del/1.html"`) {
		t.Error("the list of runs does not lead to the run")
	}

	t.Run("of another folder", func(t *testing.T) {
		here, err := os.Getwd()
		if err != nil {
			t.Fatal(err)
		}
		t.Chdir(t.TempDir())
		if code, out, stderr := call(t, "site", "public", "--repository", here); code != frame.ExitOK || !strings.Contains(out, "2 documents and 1 run") {
			t.Errorf("exit %d, %q, %q", code, out, stderr)
		}
	})
	t.Run("a lock that the program does not know", func(t *testing.T) {
		text := filetest.Read(t, recording)
		filetest.Write(t, recording, strings.ReplaceAll(text, `"lock":"setnx-del"`, `"lock":"a-foreign-lock"`))
		code, out, stderr := call(t, "site", "foreign")
		if code != frame.ExitOK || stderr != "" || !strings.Contains(out, "2 documents and 0 runs\nthere as files, since this program does not know their locks: 1 recording\n") {
			t.Errorf("exit %d, %q, %q", code, out, stderr)
		}
		if !strings.Contains(filetest.Read(t, "foreign/results/misdelete/setnx-del/1.lockstep"), "a-foreign-lock") {
			t.Error("the recording is not there")
		}
		filetest.Write(t, recording, text)
	})
	t.Run("a run that is not the same again", func(t *testing.T) {
		text := filetest.Read(t, recording)
		filetest.Write(t, recording, strings.Replace(text, `"digest":"`, `"digest":"0`, 1))
		if code, _, stderr := call(t, "site", "other"); code != frame.ExitUndecided || !strings.Contains(stderr, "not the same again") {
			t.Errorf("exit %d, %q", code, stderr)
		}
		filetest.Write(t, recording, text)
	})

	for _, c := range []struct {
		rule string
		args []string
		says string
	}{
		{"no folder", nil, "one folder, into which it writes the site; got 0"},
		{"two folders", []string{"a", "b"}, "got 2"},
		{"a folder of somebody else", []string{"docs"}, "docs is not empty, and no site was written there before; name a new folder"},
		{"no repository", []string{"a", "--repository", "docs"}, filepath.FromSlash("there is no folder docs/docs; call site in the root of the repository")},
		{"nothing there", []string{"a", "--repository", "nowhere"}, "there is no folder nowhere; --repository takes the root of the repository"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			code, out, stderr := call(t, append([]string{"site"}, c.args...)...)
			if code != frame.ExitUsage || out != "" || !strings.Contains(stderr, c.says) {
				t.Errorf("exit %d, %q, %q", code, out, stderr)
			}
		})
	}
	if got := filetest.Read(t, "docs/a.md"); !strings.HasPrefix(got, "# A document") {
		t.Error("a document was changed")
	}
}
