package luatest

import (
	"slices"
	"strings"
	"testing"
)

// On a script of one line of each kind, each mutant has the change that it names.
func TestMutants(t *testing.T) {
	var got []string
	const text = "-- a comment == 1\nif not (a == 0 and -1 > b - c) then\n    call('x == 1', KEYS[1])\nend\n"
	for _, m := range Mutants(text) {
		got = append(got, strings.ReplaceAll(m.Text, "\n", "|"))
	}
	want := []string{
		"-- a comment == 1||    call('x == 1', KEYS[1])|end|",
		"-- a comment == 1|if  (a == 0 and -1 > b - c) then|    call('x == 1', KEYS[1])|end|",
		"-- a comment == 1|if not (a ~= 0 and -1 > b - c) then|    call('x == 1', KEYS[1])|end|",
		"-- a comment == 1|if not (a == 1 and -1 > b - c) then|    call('x == 1', KEYS[1])|end|",
		"-- a comment == 1|if not (a == 0 or -1 > b - c) then|    call('x == 1', KEYS[1])|end|",
		"-- a comment == 1|if not (a == 0 and 1 > b - c) then|    call('x == 1', KEYS[1])|end|",
		"-- a comment == 1|if not (a == 0 and -2 > b - c) then|    call('x == 1', KEYS[1])|end|",
		"-- a comment == 1|if not (a == 0 and -1 <= b - c) then|    call('x == 1', KEYS[1])|end|",
		"-- a comment == 1|if not (a == 0 and -1 >= b - c) then|    call('x == 1', KEYS[1])|end|",
		"-- a comment == 1|if not (a == 0 and -1 > b + c) then|    call('x == 1', KEYS[1])|end|",
		"-- a comment == 1|if not (a == 0 and -1 > b - c) then||end|",
		"-- a comment == 1|if not (a == 0 and -1 > b - c) then|    call('x == 1', KEYS[2])|end|",
		"-- a comment == 1|if not (a == 0 and -1 > b - c) then|    call('x == 1', KEYS[1])||",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
