package redis

import "lockstep/sim"

// Drawing is sim.Parts.Drawing. The commands run scripts, subscribe and delete.
func (*Server) Drawing() sim.Drawing {
	return sim.Drawing{
		Commands: []string{"EVAL", "EVALSHA", "SUBSCRIBE", "UNSUBSCRIBE", "DEL"}, Listen: "SUBSCRIBE",
		Errors: []string{"ERR injected", "LOADING injected", "READONLY injected", "TRYAGAIN injected", "BUSY injected", "NOSCRIPT injected"},
	}
}
