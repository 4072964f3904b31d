// Strangers measures the judges on right locks of many plumbings and on mutants of them, and writes
// results/strangers.md.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"

	"github.com/google/renameio/v2"

	"lockstep/locktest/strangers"
	"lockstep/sim"
)

func main() {
	var o strangers.Options
	flag.IntVar(&o.Size, "size", 3, "take locks in which each right combination of `N` choices occurs, 1 to 3")
	flag.IntVar(&o.Runs, "runs", 1000, "play `N` runs of each right lock with each profile")
	flag.IntVar(&o.Explore, "explore", 5000, "play up to `N` runs of each mutant")
	out := flag.String("out", "results/strangers.md", "write the page to this `FILE`")
	flag.StringVar(&o.Dir, "dir", "results/.strangers", "keep the result of each lock in this `FOLDER`: the same command goes on after an interruption")
	flag.IntVar(&o.Shard, "shard", 0, "measure the locks whose number modulo -of is `N`; the last of the processes that share -dir writes the page")
	flag.IntVar(&o.Of, "of", 1, "share the locks among `N` processes")
	flag.Parse()
	if flag.NArg() > 0 || o.Size < 1 || o.Size > 3 || o.Runs < 1 || o.Explore < 1 || o.Shard < 0 || o.Shard >= o.Of {
		fmt.Fprintln(os.Stderr, "strangers: -size is 1, 2 or 3, -runs, -explore and -of are at least 1, -shard is less than -of, and no other arguments are taken; strangers -h lists the flags")
		os.Exit(2)
	}
	o.Progress = func(done, of int, lock string) { fmt.Fprintf(os.Stderr, "%d of %d: %s\n", done, of, lock) }
	sim.Main(func(h *sim.Host) int {
		var page bytes.Buffer
		whole, err := strangers.Table(&page, h, o)
		if err == nil && whole {
			err = renameio.WriteFile(*out, page.Bytes(), 0o644)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "strangers:", err)
			return 1
		}
		return 0
	})
}
