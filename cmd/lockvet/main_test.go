package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"lockstep/internal/bad"
)

// The program finds the same by itself, as a tool of go vet, and with -sarif, and says nothing about a
// module without mistakes.
func TestTheProgram(t *testing.T) {
	dir := t.TempDir()
	tool := filepath.Join(dir, "lockvet.exe")
	if out, err := exec.Command("go", "build", "-o", tool, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	write := func(name, text string) {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module shop\n\ngo 1.26.0\n")
	write("wrong/wrong.go", "package wrong\n\nimport \"database/sql\"\n\nfunc lock(db *sql.DB) { db.Exec(\"SELECT GET_LOCK('a', 1)\"); db.Exec(\"SELECT RELEASE_LOCK('a')\") }\n")
	write("right/right.go", "package right\n\nimport \"database/sql\"\n\nfunc lock(conn *sql.Conn) { conn.ExecContext(nil, \"SELECT GET_LOCK('a', 1)\") }\n")
	for _, command := range [][]string{{tool}, {"go", "vet", "-vettool=" + tool}, {tool, "-sarif"}} {
		for name, wrong := range map[string]bool{"./wrong": true, "./right": false} {
			cmd := exec.Command(command[0], append(command[1:], name)...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GOPROXY=off")
			out, err := cmd.CombinedOutput()
			if (err != nil) != wrong || strings.Contains(string(out), "(pool-lock)") != wrong {
				t.Errorf("%v %s: %v\n%s", command, name, err, out)
			}
		}
	}
	// Code of another module is read in its folder. A folder of this module without code has nothing to do with that.
	write("other/go.mod", "module other\n\ngo 1.26.0\n")
	write("other/deep/x.go", "package deep\n")
	write("empty/readme", "")
	for pattern, other := range map[string]bool{"./other/...": true, "./other/deep": true, "./empty": false, "./no/such": false} {
		cmd := exec.Command(tool, pattern)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GOPROXY=off")
		out, _ := cmd.CombinedOutput()
		want := "lockvet: " + pattern + " is of another module; call lockvet in its folder: (cd " + filepath.Join(dir, "other") + " && lockvet ./...)\n"
		if strings.HasSuffix(string(out), want) != other || strings.Contains(string(out), "another module") != other || cmd.ProcessState.ExitCode() != 1 {
			t.Errorf("%s: exit %d\n%s", pattern, cmd.ProcessState.ExitCode(), out)
		}
	}
	bad.Counted(t, "source for lockvet", len(broken))
	for name, text := range broken {
		write("broken/broken.go", text)
		for _, args := range [][]string{{"./broken"}, {"-sarif", "./broken"}, {"-json", "./broken"}} {
			cmd := exec.Command(tool, args...)
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "GOPROXY=off")
			var a bad.Answer
			bad.Ends(name, func() {
				out, _ := cmd.CombinedOutput()
				a = bad.Answer{Code: cmd.ProcessState.ExitCode(), Out: string(out)}
			})
			if err := a.Check(1, 0, 1); err != nil || strings.Contains(a.Out, "panic:") {
				t.Errorf("%s, %v: %v\n%v", name, args, err, a)
			}
		}
	}
}

// broken is source code that does not compile, or hardly.
var broken = map[string]string{
	"nothing":                  "",
	"no package":               "func x() {}\n",
	"a bracket that ends not":  "package broken\nfunc x( {\n",
	"a package that is not":    "package broken\nimport \"no/such\"\nvar _ = such.X\n",
	"a wrong type":             "package broken\nvar x int = \"a\"\n",
	"control characters":       "package broken\nvar x int = \"\x1b[2J\u202e\"\n",
	"a control character":      "package broken\nvar \x1b = 1\n",
	"a command of a workflow":  "package broken\nvar x int = `\n::error::x\n`\n",
	"another line":             "package broken\n//line \x1b[2J.go:1\nvar x int = \"a\"\n",
	"bytes that are no text":   "package broken\n\xff\xfe\x00\n",
	"many brackets":            "package broken\nvar x = " + strings.Repeat("(", 10_000) + "1" + strings.Repeat(")", 10_000) + "\n",
	"a cycle":                  "package broken\ntype a [len(x)]int\nvar x a\n",
	"a lock without arguments": "package broken\nimport \"database/sql\"\nfunc x(db *sql.DB) { db.Exec(); db.Exec(\"\"); db.Exec(\"SELECT GET_LOCK(\") }\n",
	"a name of 100 kB":         "package broken\nvar " + strings.Repeat("x", 100_000) + " int = \"a\"\n",
}
