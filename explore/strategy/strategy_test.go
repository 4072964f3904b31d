package strategy

import "testing"

func TestStrategiesHaveNames(t *testing.T) {
	for _, name := range Names {
		s, ok := New(name, 2)
		if !ok {
			t.Fatalf("there is no strategy %s", name)
		}
		want := ScheduleSeeded
		if name == NameTaPCT {
			want = name
		}
		if got := s.Schedule(); got != want {
			t.Errorf("%s draws schedules as %s, want %s", name, got, want)
		}
	}
	if _, ok := New("exhaustive", 0); ok {
		t.Error("the exhaustive search draws runs")
	}
}

func TestWhichRunsAim(t *testing.T) {
	for name, want := range map[string]int{NamePlain: 0, NameTaPCT: 0, NameAimed: 50, NameTold: 0} { // of a hundred
		s, _ := New(name, 2)
		aims := 0
		for index := range 100 {
			if !s.Aims(index) {
				continue
			}
			aims++
			if index == 0 || s.Aims(index-1) {
				t.Errorf("%s: run %d aims at one that was not drawn anew", name, index)
			}
		}
		if aims != want {
			t.Errorf("%s: %d runs of 100 aim, want %d", name, aims, want)
		}
	}
}
