package server

import "lockstep/sim"

// Drawing is sim.Parts.Drawing. A client treats all these errors alike. There are six, since
// with a list of another length the seeds would draw other runs.
func (*Server) Drawing() sim.Drawing {
	return sim.Drawing{Errors: []string{"ERR injected", "LOADING injected", "READONLY injected", "TRYAGAIN injected", "BUSY injected", "NOSCRIPT injected"}}
}
