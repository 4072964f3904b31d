package cli

import (
	"fmt"
	"time"

	"lockstep/model"
)

// measures has the scenarios whose cells show a measurement, each with the function that measures
// a record. A measurement is the average number of commands per call, and the length of the
// longest call. A cell shows it if the lock held.
var measures = map[string]func(*model.Record) string{
	"fast":                func(r *model.Record) string { return measure(r, "") },
	"a-try-does-not-wait": func(r *model.Record) string { return measure(r, model.ActTryLock) },
}

// measure measures the calls of one action, or all calls if action is "".
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
