package main

import (
	"os"
	"strings"
	"testing"
)

// A campaign, or the hunt for a planted bug, starts this program again to play its
// runs: here that is the test, which is simrun when its first argument is a command.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		main()
		return
	}
	os.Exit(m.Run())
}
