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

// played is what came of a mutant.
type played struct {
	Mutant   string   `json:"mutant"`              // digest of it as it was played
	CaughtBy string   `json:"caught_by,omitempty"` // name of a comparison; "": none
	On       string   `json:"on,omitempty"`        // releases
	Passed   []string `json:"passed,omitempty"`    // comparisons, of one that none caught
	Unusable []string `json:"unusable,omitempty"`  // comparisons that it failed, and the port as it is too
}

func (p played) text() string {
	switch {
	case p.CaughtBy != "":
		return p.CaughtBy + " (" + p.On + ")"
	case len(p.Passed) == len(comparisons):
		return "unproved"
	}
	return "not played" // or not against all comparisons that there are
}

type outcomes map[string]played // by id of the mutant

// digest changes with what the mutant does.
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

// table is the list of mutants in Markdown, with what came of each.
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

// withTable puts the table between its markers.
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
