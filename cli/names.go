package cli

import "strings"

// fileName replaces the characters that a file's name may not contain on some systems.
func fileName(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || strings.ContainsRune(`/\:*?"<>|`, r) {
			return '_'
		}
		return r
	}, s)
}

func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }
