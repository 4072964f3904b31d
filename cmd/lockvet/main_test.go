package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
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
}
