// Package nearest suggests the known word that somebody may have meant by an unknown one.
package nearest

import (
	"fmt"
	"slices"
	"strings"
)

// longest limits the words that Near compares, in letters. The longest known words are the names of
// recordings.
const longest = 120

// Word returns the word of known that is nearest to word, in the distance that the function distance
// computes. Capitals count as small letters. Of several words it is the first. It returns "" if known is
// empty. Its time grows with the length of word.
func Word(word string, known []string) string {
	if len(known) == 0 {
		return ""
	}
	return slices.MinFunc(known, func(a, b string) int { return distance(word, a) - distance(word, b) })
}

// Near returns the nearest word of known if it resembles word: if word is the beginning of it, or
// if more than half of the letters of the longer word are right. Otherwise it returns "".
func Near(word string, known []string) string {
	switch {
	case word == "" || letters(word) > longest:
		return ""
	case slices.Contains(known, word):
		return word
	}
	if i := slices.IndexFunc(known, func(k string) bool { return strings.HasPrefix(strings.ToLower(k), strings.ToLower(word)) }); i >= 0 {
		return known[i]
	}
	if nearest := Word(word, known); nearest != "" && 2*distance(word, nearest) < max(letters(word), letters(nearest)) {
		return nearest
	}
	return ""
}

func letters(word string) int { return len([]rune(word)) }

// Clip shortens a long text that somebody gave, so that messages stay readable and the search for the nearest
// word stays fast.
func Clip(text string) string {
	const most = 60
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}

// Known is the end of a message about an unknown word. It names the word of known that Near
// returns, if there is one, and lists the known words.
func Known(word string, known []string) string {
	return Hint(Near(word, known)) + "known: " + strings.Join(known, ", ")
}

// Hint returns the question whether a word was meant, with a space after it. For "" it returns "".
func Hint(word string) string {
	if word == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q? ", word)
}

// Unknown returns a whole message about an unknown word: what, then the question whether meant was
// meant, unless that is "".
func Unknown(what, meant string) string {
	if meant == "" {
		return what
	}
	return what + "; " + strings.TrimSpace(Hint(meant))
}

// distance returns the number of steps that turn a into b. A step inserts, drops or replaces a
// letter, or swaps two neighbours (the distance of optimal string alignment).
func distance(a, b string) int {
	from, to := []rune(strings.ToLower(a)), []rune(strings.ToLower(b))
	before, last, row := make([]int, len(to)+1), make([]int, len(to)+1), make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i := range from {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range to {
			replace := last[j]
			if from[i] != to[j] {
				replace++
			}
			row[j+1] = min(last[j+1]+1, row[j]+1, replace)
			if i > 0 && j > 0 && from[i] == to[j-1] && from[i-1] == to[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(to)]
}
