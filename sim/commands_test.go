package sim

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestCommandsAreThoseOfTheServer(t *testing.T) {
	var want []string
	Run(NewHost(t), newStage().Config, func(w *World) {
		for _, k := range reflect.ValueOf(w.server.m.Server()).Elem().FieldByName("cmds").MapKeys() {
			if k.String() != "HELLO" {
				want = append(want, k.String())
			}
		}
	})
	for _, own := range ours {
		if !slices.Contains(want, own) {
			want = append(want, own)
		}
	}
	slices.Sort(want)
	equal(t, "commands", strings.Join(Commands, " "), strings.Join(want, " "))
}
