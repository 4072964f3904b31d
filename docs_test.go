package lockstep

import (
	"fmt"
	"go/format"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"lockstep/internal/bad"
)

// documents are the files for people: README.md, CONTRIBUTING.md and docs/.
func documents(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("docs/*.md")
	if err != nil || len(pages) < 10 {
		t.Fatalf("docs/ has %d documents (%v)", len(pages), err)
	}
	return append([]string{"README.md", "CONTRIBUTING.md"}, pages...)
}

func text(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// The table of bad inputs has at least 500 of them, and each test that it names exists.
func TestTheTableOfBadInputs(t *testing.T) {
	all := 0
	for _, row := range bad.Rows(t) {
		all += row.Inputs
		files, err := filepath.Glob(filepath.Join(filepath.FromSlash(row.Folder), "*_test.go"))
		if err != nil || !slices.ContainsFunc(files, func(file string) bool { return strings.Contains(text(t, file), "\nfunc "+row.Test+"(t *testing.T) {") }) {
			t.Errorf("%s has no %s: %v", row.Folder, row.Test, err)
		}
	}
	if all < 500 {
		t.Errorf("%d inputs", all)
	}
}

var (
	fence   = regexp.MustCompile("(?ms)^```.*?^```")
	link    = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	// noAnchor are the letters of a heading that its anchor leaves out.
	noAnchor = regexp.MustCompile(`[^\p{L}\p{N}\p{M} _-]`)
)

// anchors returns the anchors of the headings of a document, as GitHub makes them.
func anchors(markdown string) map[string]bool {
	found := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(markdown, ""), -1) {
		words := regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`).ReplaceAllString(m[1], "$1")
		name := strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(words), ""), " ", "-")
		anchor := name
		for i := 1; found[anchor]; i++ {
			anchor = fmt.Sprintf("%s-%d", name, i)
		}
		found[anchor] = true
	}
	return found
}

// Every relative link of a document leads to a file, and to a heading of it if the link
// names one.
func TestEveryLinkLeadsSomewhere(t *testing.T) {
	known := map[string]map[string]bool{}
	links := 0
	for _, page := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(text(t, page), ""), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			links++
			path, anchor, _ := strings.Cut(m[1], "#")
			file := page
			if path != "" {
				file = filepath.Join(filepath.Dir(page), path)
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s: %s leads nowhere", page, m[1])
				continue
			}
			if anchor == "" {
				continue
			}
			if known[file] == nil {
				known[file] = anchors(text(t, file))
			}
			if !known[file][anchor] {
				t.Errorf("%s: %s has no heading #%s", page, file, anchor)
			}
		}
	}
	if links < 100 {
		t.Errorf("only %d links were found", links)
	}
}

// A document names the source files by their paths from the root, and they are there.
func TestTheFilesThatDocumentsNameAreThere(t *testing.T) {
	file := regexp.MustCompile("`([A-Za-z0-9_.-]+/[A-Za-z0-9_./-]+\\.(?:go|lua))`")
	files := 0
	for _, page := range documents(t) {
		for _, m := range file.FindAllStringSubmatch(fence.ReplaceAllString(text(t, page), ""), -1) {
			files++
			if _, err := os.Stat(m[1]); err != nil {
				t.Errorf("%s: there is no %s", page, m[1])
			}
		}
	}
	if files < 20 {
		t.Errorf("only %d files were found", files)
	}
}

// The Go code of the documents is formatted.
func TestTheGoCodeOfTheDocumentsIsFormatted(t *testing.T) {
	blocks := 0
	for _, page := range documents(t) {
		for _, m := range regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(text(t, page), -1) {
			blocks++
			if formatted, err := format.Source([]byte(m[1])); err != nil || string(formatted) != m[1] {
				t.Errorf("%s has Go code that gofmt writes otherwise (%v):\n%s", page, err, formatted)
			}
		}
	}
	if blocks < 10 {
		t.Errorf("only %d blocks of Go were found", blocks)
	}
}

// The table of contents names every document.
func TestTheTableOfContentsIsWhole(t *testing.T) {
	contents := text(t, "docs/README.md")
	for _, page := range documents(t) {
		name := filepath.Base(page)
		if page != "docs/README.md" && !strings.Contains(contents, name+")") {
			t.Errorf("docs/README.md says nothing of %s", page)
		}
	}
}

// A reader has five minutes for the README.
func TestTheReadmeIsShort(t *testing.T) {
	if lines := strings.Count(text(t, "README.md"), "\n"); lines > 150 {
		t.Errorf("README.md has %d lines; move what is more than 150 to docs/", lines)
	}
}

// The pages that lead to the site give the command that makes a page of each run.
func TestTheWholeSiteHasItsCommandWhereOneLooks(t *testing.T) {
	const whole = "`(cd peers && go run ./cmd/evidence site --repository .. ../public)`"
	for _, page := range []string{"README.md", "docs/README.md", "docs/site.md"} {
		if !strings.Contains(text(t, page), whole) {
			t.Errorf("%s does not say %s", page, whole)
		}
	}
}

// docs/judges.md and the README say which judges found nothing in the control group, since newer ones find
// something else in some records.
func TestTheControlGroupHasItsJudges(t *testing.T) {
	said := regexp.MustCompile(`The judges of these 40 000 runs had version (\d+)\.`).FindStringSubmatch(text(t, "docs/judges.md"))
	if said == nil {
		t.Fatal("docs/judges.md does not say which version of the judges judged the control group")
	}
	if again := "Judges of version " + said[1] + " found no bug"; !strings.Contains(text(t, "README.md"), again) {
		t.Errorf("README.md does not say %q", again)
	}
	for _, lock := range []string{"reference+all", "reference-fair+all"} {
		page := "results/explore/" + lock + "/verdicts.md"
		if m := regexp.MustCompile(`<!-- versions: world \d+, judges (\d+), `).FindStringSubmatch(text(t, page)); m == nil || m[1] != said[1] {
			t.Errorf("docs/judges.md says version %s, and %s has %q", said[1], page, m)
		}
	}
}
