package main

import (
	"os"
	"testing"
)

// A campaign starts this program again to play its runs: here that is the test.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == workerCommand {
		main()
		return
	}
	os.Exit(m.Run())
}
