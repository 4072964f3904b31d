package upstream

import (
	"strings"
	"testing"
)

// A part that no test reaches is gone, with its comment and its import, and a part that a test needs is there.
func TestAFileKeepsWhatItsTestsReach(t *testing.T) {
	const file = `package x

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"example.com/go-lib/v2"
	named "example.com/other"
)

func TestX(t *testing.T) {
	s := Story{name: "x", rules: rules{{1, 2}}}
	s.Play()
	lib.Use(handler{})
	fmt.Println(one)
}

// A Story is kept.
type Story struct {
	name  string
	rules rules // needed
	mu    named.Mutex
	// left is not.
	left other
}

// Play is called.
func (s *Story) Play() { var l Lock = lock{}; l.Lock(os.Args); s.mu.Unlock() }

// Stop is not called.
func (s *Story) Stop() { strings.ToUpper(s.name) }

type rules []rule

type rule struct{ a, b int }

// other is a type of nothing that is kept.
type other struct{ unused named.T }

// Lock is an interface.
type Lock interface {
	Lock([]string)
	// Unlock is not called.
	Unlock()
}

type lock struct{}

func (lock) Lock([]string) {}

func (lock) Unlock() {}

type handler struct{}

// Serve is called by the package lib.
func (handler) Serve() { deep() }

func deep() {}

func Play() {}

const (
	one = 1
	two = 2 // unused
)

var _ = two
`
	text, err := pruned([]byte(file))
	if err == nil {
		text, err = formatted(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"fmt"`, `"os"`, `"testing"`, `"example.com/go-lib/v2"`, "// A Story is kept.", "// needed", "named", "Play()", "type rules", "a, b int", "Lock([]string)\n}", "func (lock) Lock(", "Serve() { deep() }", "func deep()", "one = 1",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not there:\n%s", want, text)
		}
	}
	for _, not := range []string{`"strings"`, "Stop", "left", "type other", "Unlock()\n", "lock) Unlock", "func Play()", "two", "unused", "is not", "\n\n\n", "{\n\n"} {
		if strings.Contains(string(text), not) {
			t.Errorf("%q is there:\n%s", not, text)
		}
	}
}
