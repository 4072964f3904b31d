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

func TestWhichFaultsMayRemoveKeys(t *testing.T) {
	for _, c := range []struct {
		f    FaultSpec
		want bool
	}{
		{FaultSpec{Kind: FaultKey, KeyDo: "delete"}, true},
		{FaultSpec{Kind: FaultServer, Server: ServerRestart}, true},
		{FaultSpec{Kind: FaultServer, Server: ServerRestart, KeepData: true}, false},
		{FaultSpec{Kind: FaultServer, Server: ServerFailover}, true},
		{FaultSpec{Kind: FaultServer, Server: ServerStall, For: 1}, false},
		{FaultSpec{Kind: FaultServer, Server: ServerWallClock, Step: 1}, true},
		{FaultSpec{Kind: FaultServer, Server: ServerWallClock, Step: -1}, false},
		{FaultSpec{Kind: FaultWallClock, Processes: []string{"a"}, Step: 1}, false},
	} {
		if got := c.f.MayRemoveKeys(); got != c.want {
			t.Errorf("%s: %t, want %t", c.f, got, c.want)
		}
	}
}
