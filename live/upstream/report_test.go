package upstream

import (
	"strings"
	"testing"
)

// A report says that the test fails because of the defect only if each try did.
func TestAReportClaimsWhatTheTestShowed(t *testing.T) {
	const always, sometimes, never = "The test fails because of the defect.", "The test fails if the defect shows, which it did in some of the tries.", "The test fails if the defect shows, which it did in none of the tries"
	for _, c := range []struct {
		run  *TestRun
		want string
	}{
		{&TestRun{Failed: 3, Tries: 3}, always},
		{&TestRun{Failed: 1, Tries: 3}, sometimes},
		{&TestRun{Failed: 2, Tries: 3, Errors: 1}, sometimes},
		{&TestRun{Failed: 0, Tries: 3}, never + "."},
		{&TestRun{Failed: 0, Tries: 3, Errors: 2}, never + "; 2 went wrong."},
		{nil, ""},
	} {
		text := string((&Report{Defect: Defect{Title: "x", Case: &Cases[0]}, Test: c.run, Runs: 2}).Text())
		for _, claim := range []string{always, sometimes, never} {
			if got, want := strings.Contains(text, claim), strings.HasPrefix(c.want, claim); got != want {
				t.Errorf("%+v: the report says %q: %v, want %v", c.run, claim, got, want)
			}
		}
		if !strings.Contains(text, c.want) {
			t.Errorf("%+v: the report lacks %q:\n%s", c.run, c.want, text)
		}
	}
}
