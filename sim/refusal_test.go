package sim

import (
	"strings"
	"testing"
	"time"

	"lockstep/model"
)

// The server hears of a refused request in its place among the requests of its connection, so that it can execute none
// of those that it has gathered. No error takes the place of an answer that it always gives.
func TestAServerThatGathersHearsOfRefusals(t *testing.T) {
	const batch = "batch, a, b, c, run"
	for name, c := range map[string]struct {
		when  model.When
		lines string
		want  string
	}{
		"of one of them":               {model.When{Direction: "request", Command: "b"}, batch, "ok, later, no: busy, later, spoiled"},
		"of one before":                {model.When{Direction: "request", Command: "b"}, "b, batch, a, run", "no: busy, ok, later, ran a"},
		"of one in the batch before":   {model.When{Direction: "request", Command: "b"}, "batch, b, run, batch, a, run", "ok, no: busy, spoiled, ok, later, ran a"},
		"of the first that can be":     {model.When{Direction: "request", Nth: 1}, batch, "ok, no: busy, later, later, spoiled"},
		"of the second that can be":    {model.When{Direction: "request", Nth: 2}, batch, "ok, later, no: busy, later, spoiled"},
		"in place of an answer":        {model.When{Direction: "reply"}, batch, "ok, later, later, later, no: busy"},
		"in place of the first answer": {model.When{Direction: "reply", Nth: 1}, batch + ", d", "ok, later, later, later, no: busy, d"},
		"of none":                      {model.When{Command: "other"}, batch, "ok, later, later, later, ran a+b+c"},
	} {
		for how, between := range map[string]string{"each after the answer": "hear", "all at once": "", "each before the answer": "wait"} {
			t.Run(name+", "+how, func(t *testing.T) {
				var got []string
				rule := model.FaultSpec{Kind: model.FaultRule, Do: "error", With: "busy", When: c.when}
				play(t, Config{Faults: []model.FaultSpec{rule}}, []*echo{{}}, map[string]func(*Thread){"a": func(th *Thread) {
					conn := mustDial(th, 1)
					defer conn.Close()
					hear := func() {
						answers, _, _ := strings.Cut(conn.hear(), "@")
						got = append(got, strings.Split(answers, "\n")...)
					}
					lines := strings.Split(c.lines, ", ")
					for _, line := range lines {
						_, _ = conn.Write([]byte(line + "\n"))
						switch between {
						case "hear":
							hear()
						case "wait":
							th.Sleep(100 * time.Microsecond)
						}
					}
					for len(got) < len(lines) {
						hear()
					}
				}})
				equal(t, "answers", joined(got), c.want)
			})
		}
	}
}
