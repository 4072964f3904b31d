package scenarios

import (
	"encoding/json"
	"fmt"
	"testing"

	"lockstep/sim"
)

func TestBuiltin(t *testing.T) {
	h := sim.NewHost(t)
	all, err := Builtin()
	if err != nil {
		t.Fatal(err)
	}
	for _, sc := range all {
		for _, name := range sc.Locks {
			l, _ := FindLock(name)
			v := RunTwice(h, sc, l, sc.SeedFirst)
			fmt.Println(sc.Name, name, v.Word, v.AsExpected, v.Why, v.Reached, v.Played.Steps)
			for _, f := range v.Findings {
				fmt.Println("   ", f.Judge, f.Verdict, f.Class, f.Why)
			}
			if !v.AsExpected && testing.Verbose() {
				for _, e := range v.Played.Record.Events {
					b, _ := json.Marshal(e)
					fmt.Println(string(b))
				}
			}
		}
	}
}
