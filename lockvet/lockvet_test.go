package lockvet_test

import (
	"bytes"
	"encoding/json"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/analysistest"

	"lockstep/lockvet"
)

// Each package of testdata has code that breaks a rule, and neighbours that do not.
func TestRules(t *testing.T) {
	analysistest.Run(t, analysistest.TestData(), lockvet.Analyzer,
		"deletes", "compares", "leases", "extends", "scripts", "results", "losses", "heard", "values", "clocks", "pools", "single", "closes", "handsout")
}

// Every rule has code in testdata that breaks it, a line in the document, and evidence that is there.
func TestEveryRuleIsWhole(t *testing.T) {
	files, err := filepath.Glob("testdata/src/*/*.go")
	if err != nil {
		t.Fatal(err)
	}
	var broken strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		broken.Write(text)
	}
	page, err := os.ReadFile("../docs/lockvet.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range lockvet.Rules {
		if !strings.Contains(broken.String(), `\(`+r.Name+`\)`) {
			t.Errorf("no code in testdata breaks %s", r.Name)
		}
		if !strings.Contains(string(page), "`"+r.Name+"`") || !strings.Contains(string(page), r.Shown) {
			t.Errorf("docs/lockvet.md does not have %s with %s", r.Name, r.Shown)
		}
		shown := filepath.Join("..", r.Shown)
		if !strings.HasSuffix(r.Shown, ".lockstep") {
			shown = filepath.Join("../scenarios/builtin", r.Shown+".yaml")
		}
		if _, err := os.Stat(shown); err != nil {
			t.Errorf("%s: %v", r.Name, err)
		}
	}
}

func TestSARIF(t *testing.T) {
	root := t.TempDir()
	at := func(file string, line int) lockvet.Result {
		return lockvet.Result{
			Diagnostic: analysis.Diagnostic{Category: "no-lease", Message: file},
			At:         token.Position{Filename: file, Offset: line, Line: line, Column: 3},
			End:        token.Position{Filename: file, Offset: line, Line: line, Column: 9},
		}
	}
	inside, outside := filepath.Join(root, "a b", "x.go"), filepath.Join(filepath.Dir(root), "y.go")
	var out bytes.Buffer
	if err := lockvet.WriteSARIF(&out, root, []lockvet.Result{at(inside, 7), at(inside, 5), at(outside, 1)}); err != nil {
		t.Fatal(err)
	}
	var log struct {
		Version string
		Runs    []struct {
			Tool struct {
				Driver struct{ Rules []struct{ ID string } }
			}
			Results []struct {
				RuleID    string
				Message   struct{ Text string }
				Locations []struct {
					PhysicalLocation struct {
						ArtifactLocation struct{ URI, URIBaseID string }
						Region           struct{ StartLine, EndColumn int }
					}
				}
			}
		}
	}
	if err := json.Unmarshal(out.Bytes(), &log); err != nil {
		t.Fatal(err)
	}
	run := log.Runs[0]
	if log.Version != "2.1.0" || len(run.Tool.Driver.Rules) != len(lockvet.Rules)+1 || len(run.Results) != 3 {
		t.Fatalf("the log is\n%s", &out)
	}
	lines := map[string]int{}
	for _, r := range run.Results {
		place := r.Locations[0].PhysicalLocation
		if r.RuleID != "no-lease" || place.Region.EndColumn != 9 {
			t.Errorf("a result is %+v", r)
		}
		if r.Message.Text == outside && (place.ArtifactLocation.URIBaseID != "" || !strings.HasPrefix(place.ArtifactLocation.URI, "file:///")) {
			t.Errorf("a file outside of the root is %+v", place.ArtifactLocation)
		}
		if r.Message.Text == inside {
			if place.ArtifactLocation.URI != "a%20b/x.go" || place.ArtifactLocation.URIBaseID != "%SRCROOT%" {
				t.Errorf("a file below the root is %+v", place.ArtifactLocation)
			}
			if place.Region.StartLine < lines[inside] {
				t.Errorf("line %d comes after line %d", place.Region.StartLine, lines[inside])
			}
			lines[inside] = place.Region.StartLine
		}
	}

	out.Reset()
	if err := lockvet.WriteSARIF(&out, root, nil); err != nil || !strings.Contains(out.String(), `"results": []`) {
		t.Errorf("without results the log is %v\n%s", err, &out)
	}
}
