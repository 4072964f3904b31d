package redistest_test

import (
	"fmt"
	"strings"
	"testing"

	"lockstep/internal/longtest"
)

// What a subject says wrongly is refused, or told with the failure that it makes, beside what the run shows.
func TestMistakesOfASubjectAreTold(t *testing.T) {
	for name, want := range map[string]string{
		"says a lot more than its lease":    "says a lot more than its lease cannot be judged: its Lease is 7s, and its State shows holds that last for 5s; give it the Lease for which the lock asks",
		"says a little more than its lease": "hint: the subject's Lease is 6.2s, and State shows holds that last for 5s; if the lock asks for that, give the subject this Lease\n",
		"says hardly more than its lease":   "hint: the subject's Lease is 5.2s, and State shows holds that last for 5s; if the lock asks for that, give the subject this Lease\n",
		"says hardly less than its lease":   "says hardly less than its lease cannot be judged: its Lease is 4.8s, and its State shows a hold that lasts for 5s; give it the longest time for which the server keeps",
		"says less than its lease":          "says less than its lease cannot be judged: its Lease is 4.5s, and its State shows a hold that lasts for 5s; give it the longest time for which the server keeps",
		"counts its holds":                  "counts its holds cannot be judged: the key orders:count stays when everybody has left and nothing has failed; name it in Kept if that is meant, and let the lock delete it if not",
		"says that it renews":               "hint: the subject is Renewed, and in this run nothing renewed a hold, each of which lasts for 5s; a goroutine that renews with the context of Lock ends when Lock has returned, and needs one that lasts, such as of context.WithoutCancel; if the lock leaves the renewals to its holder, take Renewed away\n",
		"names another owner":               "which no request of this run carried; the request that took the lock was SET orders ",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, passed := outcome(t, t.TempDir(), name, nil, fmt.Sprint("-lockstep.runs=", longtest.Size(t, 8, 20)))
			if passed {
				t.Errorf("it passed:\n%s", text)
			}
			mustContain(t, text, want)
			if strings.Contains(want, "cannot be judged") {
				if n := strings.Count(text, "=== RUN   TestJudged/stories/"); n != 1 || !strings.Contains(text, "stories after one-after-the-other: the subject does not fit the lock\n") {
					t.Errorf("%d stories of a subject that does not fit were begun, and nothing says that the others were not:\n%s", n, text)
				}
			}
			if first := strings.Index(text, " breaks "); first >= 0 && !strings.Contains(text[first:][:strings.Index(text[first:], "fingerprint: ")], "hint: ") {
				t.Errorf("the first failure has no hint:\n%s", text)
			}
		})
	}
	if text, passed := outcome(t, t.TempDir(), "counts its holds, and says so", nil, "-lockstep.runs=20"); !passed {
		t.Errorf("it failed:\n%s", text)
	}
	text, _ := outcome(t, t.TempDir(), "exists-then-set", nil, "-lockstep.runs=20")
	if strings.Contains(text, "hint: ") {
		t.Errorf("a hint about a subject that is right:\n%s", text)
	}
}
