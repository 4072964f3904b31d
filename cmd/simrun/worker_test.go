package main

import (
	"os"
	"strings"
	"testing"
)

// A campaign or the hunt for a planted bug starts its own program again to play runs. Under
// test that program is the test binary, which acts as simrun if its first argument is a
// command.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && !strings.HasPrefix(os.Args[1], "-") {
		main()
		return
	}
	os.Exit(m.Run())
}
