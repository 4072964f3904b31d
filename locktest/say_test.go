package locktest

import (
	"fmt"
	"testing"
)

// heard is a test that keeps what is printed.
type heard struct {
	testing.TB
	all []string
}

func (h *heard) Helper()           {}
func (h *heard) Log(args ...any)   { h.all = append(h.all, fmt.Sprint(args...)) }
func (h *heard) Error(args ...any) { h.Log(args...) }
func (h *heard) Fatal(args ...any) { h.Log(args...) }
func (h *heard) Skip(args ...any)  { h.Log(args...) }

// An error of a lock gives no commands to a terminal or a workflow.
func TestWhatATestPrintsGivesNoCommands(t *testing.T) {
	h := &heard{}
	err := fmt.Errorf("locked\n  ::error::x\x1b[2J")
	s := say(h)
	s.Log("n/a:", err)
	s.Error("n/a:", err)
	s.Fatal("n/a:", err)
	s.Skip("n/a:", err)
	s.Logf("n/a: %v", err)
	s.Errorf("n/a: %v", err)
	s.Fatalf("n/a: %v", err)
	s.Skipf("n/a: %v", err)
	for _, text := range h.all {
		if want := "n/a: locked\n  \\u003a:error::x\\u001b[2J"; text != want {
			t.Errorf("%q, want %q", text, want)
		}
	}
	if len(h.all) != 8 {
		t.Errorf("%d texts", len(h.all))
	}
}
