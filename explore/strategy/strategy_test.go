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

func TestWhichRunsRepeatAnother(t *testing.T) {
	for _, c := range []struct {
		name    string
		stories int
		last    int // of a hundred runs
		story   int
	}{{NamePlain, 0, 0, 0}, {NameTaPCT, 0, 0, 0}, {NameTold, 60, 16, 8}, {NameTold, 10, 36, 18}, {NameTold, 0, 40, 0}} {
		s, _ := New(c.name, 2)
		of := map[Base]int{}
		for n := range 100 {
			base := s.Base(n, c.stories)
			of[base]++
			if base == Last && (n == 0 || s.Base(n-1, c.stories) != None) {
				t.Errorf("%s: run %d repeats one that was not drawn anew", c.name, n)
			}
			if base != None && n <= c.stories {
				t.Errorf("%s: run %d of %d stories repeats another", c.name, n, c.stories)
			}
		}
		if of[Last] != c.last || of[Story] != c.story {
			t.Errorf("%s with %d stories: %v; want %d that repeat the last run and %d that repeat a story", c.name, c.stories, of, c.last, c.story)
		}
	}
}
