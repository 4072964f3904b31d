package nearest_test

import (
	"strings"
	"testing"

	"lockstep/internal/nearest"
)

func TestNear(t *testing.T) {
	known := []string{"list", "run", "matrix", "replay", "report", "repeat", "shrink", "setnx-del", "setnx"}
	for _, c := range []struct{ rule, word, want string }{
		{"a letter too many", "runn", "run"},
		{"a letter dropped", "marix", "matrix"},
		{"half of the letters", "lizz", ""},
		{"a letter of three is missing", "rn", "run"},
		{"two letters of three are missing", "u", ""},
		{"two letters of three changed places", "rnu", "run"},
		{"capitals", "SETNX-DEL", "setnx-del"},
		{"the beginning of a word", "shr", "shrink"},
		{"of several the first", "rep", "replay"},
		{"of several the nearest", "repxrt", "report"},
		{"the word itself before a longer one", "setnx", "setnx"},
		{"more than half of the letters", "liszz", "list"},
		{"another word", "explode", ""},
		{"no word", "", ""},
		{"a very long word", "run" + strings.Repeat("x", 1000), ""},
	} {
		if got := nearest.Near(c.word, known); got != c.want {
			t.Errorf("%s: %q is near %q, want %q", c.rule, c.word, got, c.want)
		}
	}
	if got := nearest.Near("run", nil); got != "" {
		t.Errorf("of nothing %q is near", got)
	}
}

func TestWordIsNearestHoweverFar(t *testing.T) {
	if got := nearest.Word("explode", []string{"a", "explain", "z"}); got != "explain" {
		t.Errorf("got %q", got)
	}
	if got := nearest.Word("x", []string{"aaaa", "bb"}); got != "bb" {
		t.Errorf("got %q", got)
	}
}

func TestKnown(t *testing.T) {
	known := []string{"simple", "orderly", "full"}
	for word, want := range map[string]string{
		"ful":  `did you mean "full"? known: simple, orderly, full`,
		"wild": `known: simple, orderly, full`,
	} {
		if got := nearest.Known(word, known); got != want {
			t.Errorf("%s: %s, want %s", word, got, want)
		}
	}
}
