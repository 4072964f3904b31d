package server

import "lockstep/sim"

// Drawing implements sim.Drawable. A client takes all these errors alike. There are six, since a
// seed would draw other runs of a list of another length.
func (*Server) Drawing() sim.Drawing {
	return sim.Drawing{Errors: []string{"ERR injected", "LOADING injected", "READONLY injected", "TRYAGAIN injected", "BUSY injected", "NOSCRIPT injected"}}
}
