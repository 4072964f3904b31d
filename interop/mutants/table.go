package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const (
	playedFile = "interop/mutants/played.json"
	document   = "docs/fidelity.md"
	begins     = "<!-- mutants: written by go run ./interop/mutants -->\n"
	ends       = "<!-- end of mutants -->\n"
)

// A played is the result of playing one mutant.
type played struct {
	Mutant   string   `json:"mutant"`              // digest of the mutant when it was played
	CaughtBy string   `json:"caught_by,omitempty"` // the comparison that caught it; "" for none
	On       string   `json:"on,omitempty"`        // releases
	Passed   []string `json:"passed,omitempty"`    // the comparisons that it passed, if none caught it
	Unusable []string `json:"unusable,omitempty"`  // the comparisons that it failed, and the unchanged port too
}

func (p played) text() string {
	switch {
	case p.CaughtBy != "":
		return p.CaughtBy + " (" + p.On + ")"
	case len(p.Passed) == len(comparisons):
		return "unproved"
	}
	return "not played" // against every comparison
}

// outcomes holds the results by the ID of the mutant.
type outcomes map[string]played

// digest returns a hash of the change and of the releases. A result of another hash is out
// of date.
func (m mutant) digest() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{m.releases, m.file, m.before, m.after}, "\x00")))
	return hex.EncodeToString(sum[:8])
}

func readPlayed(root string) (outcomes, error) {
	text, err := os.ReadFile(filepath.Join(root, playedFile))
	if err != nil {
		return nil, err
	}
	all := outcomes{}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", playedFile, err)
	}
	return all, nil
}

func (o outcomes) write(root string) error {
	text, err := json.MarshalIndent(o, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, playedFile), append(text, '\n'), 0o666)
}

// table returns a Markdown table with one row per mutant.
func table(all outcomes) string {
	var b strings.Builder
	b.WriteString("| mutant | releases | rule | the mutant | caught by |\n|---|---|---|---|---|\n")
	for _, m := range mutants {
		result := all[m.id]
		if result.Mutant != m.digest() {
			result = played{}
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", m.id, m.releases, m.rule, m.breaks, result.text())
	}
	return b.String()
}

// withTable replaces the table between its markers in the text of the document.
func withTable(text string, all outcomes) (string, error) {
	before, rest, found := strings.Cut(text, begins)
	_, after, ended := strings.Cut(rest, ends)
	if !found || !ended {
		return "", fmt.Errorf("%s has no markers of the table: %q and %q", document, begins, ends)
	}
	return before + begins + table(all) + ends + after, nil
}

func writeTable(root string, all outcomes) error {
	path := filepath.Join(root, document)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	written, err := withTable(string(text), all)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(written), 0o666)
}
