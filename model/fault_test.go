package model

import "testing"

func TestAFaultNamesWholeProcesses(t *testing.T) {
	f := FaultSpec{Kind: FaultPartition, Processes: []string{"ab", "order:42, b"}}
	for process, want := range map[string]bool{"ab": true, "order:42, b": true, "a": false, "b": false, "abc": false, "": false} {
		if got := f.Names(process); got != want {
			t.Errorf("Names(%q) is %v, want %v", process, got, want)
		}
	}
}
