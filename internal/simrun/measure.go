package simrun

import (
	"fmt"
	"time"

	"lockstep/model"
)

// measures are the scenarios whose cell is a measurement where they hold: of
// their calls, the commands that each took on average, and the longest.
var measures = map[string]func(*model.Record) string{
	"fast":                func(r *model.Record) string { return measure(r, "") },
	"a-try-does-not-wait": func(r *model.Record) string { return measure(r, model.ActTryLock) },
}

// measure looks at the calls of one action, or of all.
func measure(rec *model.Record, action model.Action) string {
	calls, commands := 0, 0
	var longest time.Duration
	began := map[int]int64{}
	for _, e := range rec.Events {
		switch {
		case e.Kind == model.KindInvoke && (action == "" || e.Action == action):
			began[e.Op] = e.AtNs
			calls++
		case e.Kind == model.KindSend && e.Op > 0:
			if _, ok := began[e.Op]; ok {
				commands++
			}
		case e.Kind == model.KindReturn:
			if at, ok := began[e.Op]; ok {
				longest = max(longest, time.Duration(e.AtNs-at))
			}
		}
	}
	if calls == 0 {
		return "nothing"
	}
	return fmt.Sprintf("%.1f commands, %.1f ms", float64(commands)/float64(calls), float64(longest)/float64(time.Millisecond))
}
