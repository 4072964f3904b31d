package redis

import "lockstep/sim"

// Drawing implements sim.Drawable. The commands run scripts, subscribe and delete.
func (*Server) Drawing() sim.Drawing {
	return sim.Drawing{
		Commands: []string{"EVAL", "EVALSHA", "SUBSCRIBE", "UNSUBSCRIBE", "DEL"}, Listen: "SUBSCRIBE",
		Errors: []string{"ERR injected", "LOADING injected", "READONLY injected", "TRYAGAIN injected", "BUSY injected", "NOSCRIPT injected"},
	}
}
