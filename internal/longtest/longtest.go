// Package longtest splits tests in two: go test ./... takes a few minutes of processor time, and
// longer tests run only if LOCKSTEP_LONG=1 is set, as in .ci/run. Otherwise a long test is skipped,
// or plays fewer cases.
package longtest

import (
	"os"
	"testing"
)

// Asked reports whether the environment asks for long tests.
func Asked() bool { return os.Getenv("LOCKSTEP_LONG") == "1" }

// Limit returns a limit that short tests set, and 0, for none of their own, if long tests are asked for.
func Limit(limit int) int {
	if Asked() {
		return 0
	}
	return limit
}

// Only skips the test unless long tests are asked for.
func Only(t testing.TB) {
	t.Helper()
	if !Asked() {
		t.Skipf("it takes long; run it with: LOCKSTEP_LONG=1 go test -run '^%s$' -timeout 60m", t.Name())
	}
}

// Size returns how many cases a test plays: all if long tests are asked for, else some. If it
// returns some, it logs that, so that nobody takes them for all.
func Size[N int | uint64](t testing.TB, some, all N) N {
	t.Helper()
	if Asked() {
		return all
	}
	t.Logf("%d cases of %d; LOCKSTEP_LONG=1 plays all", some, all)
	return some
}
