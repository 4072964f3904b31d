// Strangers measures the judges on right locks of many plumbings and on mutants of them, and writes
// results/strangers.md.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"

	"lockstep/locktest/strangers"
	"lockstep/sim"
)

func main() {
	var o strangers.Options
	flag.IntVar(&o.Size, "size", 3, "take locks in which each right combination of `N` choices occurs, 1 to 3")
	flag.IntVar(&o.Runs, "runs", 1000, "play `N` runs of each right lock with each profile")
	flag.IntVar(&o.Explore, "explore", 5000, "play up to `N` runs of each mutant")
	out := flag.String("out", "results/strangers.md", "write the page to this `FILE`")
	flag.Parse()
	if flag.NArg() > 0 || o.Size < 1 || o.Size > 3 || o.Runs < 1 || o.Explore < 1 {
		fmt.Fprintln(os.Stderr, "strangers: -size is 1, 2 or 3, -runs and -explore are at least 1, and no other arguments are taken; strangers -h lists the flags")
		os.Exit(2)
	}
	o.Progress = func(done, of int, lock string) { fmt.Fprintf(os.Stderr, "%d of %d: %s\n", done, of, lock) }
	sim.Main(func(h *sim.Host) int {
		var page bytes.Buffer
		err := strangers.Table(&page, h, o)
		if err == nil {
			err = os.WriteFile(*out, page.Bytes(), 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "strangers:", err)
			return 1
		}
		return 0
	})
}
