package bare

import (
	"testing"

	"lockstep/scenarios/subject"
	_ "lockstep/scenarios/subject/builtin"
)

// A defect is one of the built-in lock, and not of every lock that has its name.
func TestAStrangersLockOfTheNameHasNoKnownDefect(t *testing.T) {
	for _, name := range []string{"setnx-del", "setnx-get-del", "setnx-cad", "string-reentrant"} {
		builtin, err := subject.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		stranger := *builtin
		stranger.Library = ""
		applies := 0
		for _, d := range Defects {
			if d.Applies(builtin) {
				applies++
			}
			if d.Applies(&stranger) {
				t.Errorf("%s applies to a stranger's %s", d.ID, name)
			}
		}
		if applies == 0 {
			t.Errorf("no defect applies to %s", name)
		}
	}
}
