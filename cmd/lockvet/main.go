// Lockvet finds mistakes in the use of distributed locks: go run ./cmd/lockvet ./...
// It is also a tool for go vet -vettool. With -sarif it writes SARIF 2.1.0.
package main

import (
	"log"
	"os"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/analysis/singlechecker"
	"golang.org/x/tools/go/packages"

	"lockstep/lockvet"
)

func main() {
	if len(os.Args) < 2 || os.Args[1] != "-sarif" {
		singlechecker.Main(lockvet.Analyzer)
	}
	log.SetFlags(0)
	log.SetPrefix("lockvet: ")
	found, err := sarif(os.Args[2:])
	if err != nil {
		log.Fatal(err)
	}
	if found {
		os.Exit(3) // as without -sarif
	}
}

// sarif analyses packages, writes a log to the standard output, and reports whether it has results.
func sarif(patterns []string) (bool, error) {
	here, err := os.Getwd()
	if err != nil {
		return false, err
	}
	config := &packages.Config{Mode: packages.LoadSyntax | packages.NeedModule}
	pkgs, err := packages.Load(config, patterns...)
	if err != nil {
		return false, err
	}
	if packages.PrintErrors(pkgs) > 0 {
		os.Exit(1)
	}
	graph, err := checker.Analyze([]*analysis.Analyzer{lockvet.Analyzer}, pkgs, nil)
	if err != nil {
		return false, err
	}
	var results []lockvet.Result
	for _, act := range graph.Roots {
		if act.Err != nil {
			return false, act.Err
		}
		for _, d := range act.Diagnostics {
			results = append(results, lockvet.Result{Diagnostic: d, At: act.Package.Fset.Position(d.Pos), End: act.Package.Fset.Position(d.End)})
		}
	}
	return len(results) > 0, lockvet.WriteSARIF(os.Stdout, here, results)
}
