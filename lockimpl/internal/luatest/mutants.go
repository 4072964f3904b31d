package luatest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Mutant is a script with one thing changed.
type Mutant struct {
	What string // the line and the change
	Text string
}

// tokens of Lua, as far as the scripts use it. Comments and strings are
// tokens, so that nothing is changed inside them.
var luaToken = regexp.MustCompile(`--[^\n]*|'[^']*'|[A-Za-z_][A-Za-z0-9_]*|[0-9]+|==|~=|<=|>=|\.\.|\S`)

var turnedRound = map[string][]string{
	"==": {"~="}, "~=": {"=="}, ">": {"<=", ">="}, "<": {">=", "<="}, ">=": {"<", ">"}, "<=": {">", "<"},
	"and": {"or"}, "or": {"and"}, "not": {""}, "true": {"false"}, "false": {"true"}, "+": {"-"},
}

// Mutants changes a script once at every place: a line deleted, a comparison reversed or moved by
// one, "and" and "or" swapped, true and false swapped, a "not" or a minus dropped, a sum made a
// difference, a number raised by one.
func Mutants(text string) (all []Mutant) {
	start := 0
	for i, line := range strings.SplitAfter(text, "\n") {
		code := strings.TrimSpace(line)
		if code != "" && !strings.HasPrefix(code, "--") {
			add := func(what, changed string) {
				all = append(all, Mutant{fmt.Sprintf("line %d, %s: %s", i+1, what, code), text[:start] + changed + text[start+len(line):]})
			}
			add("deleted", "\n")
			for _, at := range luaToken.FindAllStringIndex(line, -1) {
				token := line[at[0]:at[1]]
				changes := turnedRound[token]
				if n, err := strconv.Atoi(token); err == nil {
					changes = []string{strconv.Itoa(n + 1)}
				}
				if token == "-" {
					changes = []string{""} // a sign
					if line[at[1]] == ' ' {
						changes = []string{"+"} // a difference
					}
				}
				for _, instead := range changes {
					add(fmt.Sprintf("%q for %q at column %d", instead, token, at[0]+1), line[:at[0]]+instead+line[at[1]:])
				}
			}
		}
		start += len(line)
	}
	return all
}
