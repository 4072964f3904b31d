package main

import (
	"os"
	"testing"
)

// A campaign, or the hunt for a planted bug, starts this program again to play its
// runs: here that is the test.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == workerCommand || len(os.Args) == 4 && os.Args[1] == killerCommand {
		main()
		return
	}
	os.Exit(m.Run())
}
