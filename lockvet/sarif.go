package lockvet

import (
	"encoding/json"
	"go/token"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// A Result is a diagnostic with its place.
type Result struct {
	analysis.Diagnostic
	At, End token.Position
}

// The types of a log in SARIF 2.1.0 that WriteSARIF needs.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool struct {
			Driver sarifDriver `json:"driver"`
		} `json:"tool"`
		Bases   map[string]sarifPlace `json:"originalUriBaseIds"`
		Results []sarifResult         `json:"results"`
	}
	sarifDriver struct {
		Name  string      `json:"name"`
		Rules []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID   string    `json:"id"`
		Text sarifText `json:"shortDescription"`
		Help sarifText `json:"help"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		Rule      string          `json:"ruleId"`
		Level     string          `json:"level"`
		Message   sarifText       `json:"message"`
		Locations []sarifLocation `json:"locations"`
	}
	sarifLocation struct {
		Physical struct {
			Artifact sarifPlace  `json:"artifactLocation"`
			Region   sarifRegion `json:"region"`
		} `json:"physicalLocation"`
	}
	sarifPlace struct {
		URI  string `json:"uri"`
		Base string `json:"uriBaseId,omitempty"`
	}
	sarifRegion struct {
		Line      int `json:"startLine"`
		Column    int `json:"startColumn"`
		EndLine   int `json:"endLine,omitempty"`
		EndColumn int `json:"endColumn,omitempty"`
	}
)

// WriteSARIF writes results as a log in SARIF 2.1.0, in the order of their places. Files below root have
// paths relative to it.
func WriteSARIF(w io.Writer, root string, results []Result) error {
	base, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	var run sarifRun
	run.Tool.Driver.Name = Analyzer.Name
	for _, r := range Rules {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{ID: r.Name, Text: sarifText{r.Text}, Help: sarifText{"Shown by " + r.Shown + "."}})
	}
	run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{ID: "ignore", Text: sarifText{"A comment that silences a rule names the rule and gives a reason."}, Help: sarifText{"//lockvet:ignore RULE REASON"}})
	run.Bases = map[string]sarifPlace{"%SRCROOT%": {URI: uri(base) + "/"}}
	run.Results = []sarifResult{} // SARIF asks for an empty list, not for null
	results = slices.Clone(results)
	slices.SortStableFunc(results, func(a, b Result) int {
		if c := strings.Compare(a.At.Filename, b.At.Filename); c != 0 {
			return c
		}
		return a.At.Offset - b.At.Offset
	})
	for _, r := range results {
		var at sarifLocation
		at.Physical.Artifact = sarifPlace{URI: uri(r.At.Filename)}
		if rel, err := filepath.Rel(base, r.At.Filename); err == nil && filepath.IsLocal(rel) {
			at.Physical.Artifact = sarifPlace{URI: (&url.URL{Path: filepath.ToSlash(rel)}).String(), Base: "%SRCROOT%"}
		}
		at.Physical.Region = sarifRegion{r.At.Line, r.At.Column, r.End.Line, r.End.Column}
		run.Results = append(run.Results, sarifResult{r.Category, "warning", sarifText{r.Message}, []sarifLocation{at}})
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}

func uri(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // a drive of Windows
	}
	return (&url.URL{Scheme: "file", Path: path}).String()
}
