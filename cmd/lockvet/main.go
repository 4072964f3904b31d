// Lockvet finds mistakes in the use of distributed locks: go run ./cmd/lockvet ./...
// It is also a tool for go vet -vettool. With -sarif it writes SARIF 2.1.0.
package main

import (
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/analysis/singlechecker"
	"golang.org/x/tools/go/packages"

	"lockstep/internal/foreign"
	"lockstep/lockvet"
)

func main() {
	if os.Getenv(inner) == "" && !asTool(os.Args[1:]) {
		os.Exit(shown())
	}
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

// inner is the variable of a program whose output another one shows.
const inner = "LOCKVET_INNER"

// asTool reports whether go vet starts the program, and reads what it prints.
func asTool(args []string) bool {
	return len(args) > 0 && (filepath.Ext(args[len(args)-1]) == ".cfg" || args[0] == "-V=full" || args[0] == "-flags")
}

// shown starts the program once more, shows what it prints as a terminal can take it, and returns its exit code. Source
// code that does not compile is quoted in errors of the compiler.
func shown() int {
	self, err := os.Executable()
	if err != nil {
		log.Fatal(err)
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), inner+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, foreign.NewTerminal(os.Stdout), foreign.NewTerminal(os.Stderr)
	err = cmd.Run()
	if cmd.ProcessState == nil {
		log.Fatal(err)
	}
	code := cmd.ProcessState.ExitCode()
	if code == 1 {
		for _, arg := range os.Args[1:] {
			if dir := otherModule(arg); dir != "" {
				fmt.Fprintf(cmd.Stderr, "lockvet: %s is of another module; call lockvet in its folder: (cd %s && lockvet ./...)\n", foreign.Line(arg), foreign.Line(dir))
				break
			}
		}
	}
	return code
}

// otherModule returns the root of the module that has the folder of a pattern; "": it is the module that has the working
// directory, or there is none.
func otherModule(pattern string) string {
	dir := pattern
	if filepath.Base(pattern) == "..." {
		dir = filepath.Dir(pattern)
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	root, here := moduleOf(dir), moduleOf(".")
	if root == here {
		return ""
	}
	return root
}

// moduleOf returns the root of the module that has a folder; "": there is none.
func moduleOf(dir string) string {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return ""
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			return ""
		}
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
