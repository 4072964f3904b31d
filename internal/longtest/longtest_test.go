package longtest

import "testing"

func TestLongTestsRunWhereTheyAreAskedFor(t *testing.T) {
	for value, want := range map[string]int{"": 2, "0": 2, "1": 30} {
		t.Setenv("LOCKSTEP_LONG", value)
		if got := Size(t, 2, 30); got != want {
			t.Errorf("LOCKSTEP_LONG=%s: %d cases, want %d", value, got, want)
		}
		ran := false
		t.Run("only", func(t *testing.T) {
			Only(t)
			ran = true
		})
		if ran != (want == 30) {
			t.Errorf("LOCKSTEP_LONG=%s: the long test ran: %v", value, ran)
		}
	}
}
