package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	playedFile = "interop/mutants/played.json"
	document   = "interop/rules.md"
)

// A section is a table between its markers in the document.
type section struct{ begins, ends string }

var (
	sectionOfRules   = section{"<!-- rules: written by go run ./interop/mutants -->\n", "<!-- end of rules -->\n"}
	sectionOfMutants = section{"<!-- mutants: written by go run ./interop/mutants -->\n", "<!-- end of mutants -->\n"}
)

// A played is the result of playing one mutant.
type played struct {
	Mutant   string   `json:"mutant"`             // digest of the mutant and of the code that it changes
	Caught   []catch  `json:"caught,omitempty"`   // in the order of comparisons
	Passed   []string `json:"passed,omitempty"`   // comparisons that it passed on a release on which none had caught it
	Unusable []string `json:"unusable,omitempty"` // comparisons that both it and the unchanged port failed
}

// A catch names the comparison that caught a mutant first, on some releases.
type catch struct {
	By string `json:"by"`
	On string `json:"on"` // releases
}

func (p played) text() string {
	var parts []string
	for _, c := range p.Caught {
		parts = append(parts, c.By+" ("+c.On+")")
	}
	switch {
	case len(parts) > 0:
		return strings.Join(parts, ", ")
	case p.complete():
		return "unproved"
	}
	return "not played" // not every comparison was played
}

// complete reports whether every comparison was played on the releases on which none has caught the
// mutant.
func (p played) complete() bool {
	for _, c := range comparisons {
		caught := slices.ContainsFunc(p.Caught, func(x catch) bool { return x.By == c.name })
		if !caught && !slices.Contains(p.Passed, c.name) || slices.Contains(p.Unusable, c.name) {
			return false
		}
	}
	return true
}

// caughtOn returns the releases on which a comparison caught the mutant.
func (p played) caughtOn() (releases []string) {
	for _, c := range p.Caught {
		releases = append(releases, strings.Split(c.On, ", ")...)
	}
	return releases
}

// outcomes holds the results by the ID of the mutant.
type outcomes map[string]played

// digest returns a hash of the change, of the releases, and of the declaration that the mutant
// changes, such as a function. A result of another hash is out of date.
func (m mutant) digest(root string) (string, error) {
	declared, err := m.declaration(root)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{m.releases, m.file, m.before, m.after, declared}, "\x00")))
	return hex.EncodeToString(sum[:8]), nil
}

// forgetStale removes the results that were measured on other code than the code below root. It
// returns the IDs of their mutants.
func (o outcomes) forgetStale(root string) (ids []string, err error) {
	for _, m := range mutants {
		now, err := m.digest(root)
		if err != nil {
			return nil, err
		}
		if result, kept := o[m.id]; kept && result.Mutant != now {
			delete(o, m.id)
			ids = append(ids, m.id)
		}
	}
	return ids, nil
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
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", m.id, m.releases, m.rule().says, m.breaks, all[m.id].text())
	}
	return b.String()
}

// withTables replaces both tables in the text of the document.
func withTables(text string, all outcomes) (string, error) {
	ofRules, err := rulesTable(all)
	if err != nil {
		return "", err
	}
	if text, err = sectionOfRules.replace(text, ofRules); err != nil {
		return "", err
	}
	return sectionOfMutants.replace(text, table(all))
}

func (s section) replace(text, table string) (string, error) {
	before, rest, found := strings.Cut(text, s.begins)
	_, after, ended := strings.Cut(rest, s.ends)
	if !found || !ended {
		return "", fmt.Errorf("%s has no markers of the table: %q and %q", document, s.begins, s.ends)
	}
	return before + s.begins + table + s.ends + after, nil
}

func writeTables(root string, all outcomes) error {
	path := filepath.Join(root, document)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	written, err := withTables(string(text), all)
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(written), 0o666)
}
