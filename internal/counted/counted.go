// Package counted says how many things there are.
package counted

import "fmt"

// Of returns n and the noun, which has an s if n is not 1.
func Of[T int | int64 | uint64](n T, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
