package redis

import (
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"lockstep/sim"
)

func TestCommandsAreThoseOfTheServer(t *testing.T) {
	var want []string
	s := New(Config{})
	sim.NewHost(t).Bubble(func() {
		s.Start(sim.Setup{Start: time.Now()})
		for _, k := range reflect.ValueOf(s.m.Server()).Elem().FieldByName("cmds").MapKeys() {
			if l := catalogue[k.String()]; l == nil || l.simulated {
				want = append(want, k.String())
			}
		}
		s.Stop()
	})
	for own, k := range kinds {
		if k.is(answers) && !slices.Contains(want, own) {
			want = append(want, own)
		}
	}
	slices.Sort(want)
	equal(t, "commands", strings.Join(commandNames, " "), strings.Join(want, " "))
}
