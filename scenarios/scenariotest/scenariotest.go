// Package scenariotest finds locks and parses scenarios for tests. A lock or a scenario that
// is not there, or is wrong, ends the test.
package scenariotest

import (
	"lockstep/scenarios"
	"lockstep/scenarios/subject"
)

// T has the methods of *testing.T and *rapid.T that these functions need.
type T interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

// Lock returns the registered lock with that name.
func Lock(t T, name string) *subject.Subject {
	t.Helper()
	l, err := subject.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Parse returns the scenario that a text tells. Its locks must be registered.
func Parse(t T, text string) *scenarios.Scenario {
	t.Helper()
	sc, err := scenarios.Parse("drawn.yaml", []byte(text), subject.Find)
	if err != nil {
		t.Fatalf("the scenario does not load: %v\n%s", err, text)
	}
	return sc
}
