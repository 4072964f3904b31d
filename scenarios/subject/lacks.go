package subject

// Lacks lists the parts of a scenario that a lock does not offer. A scenario that needs
// one of them does not apply to the lock, and a campaign does not draw them. The zero
// value lacks nothing.
type Lacks struct {
	Leases      bool // a call that asks for a lease of its own
	SingleTry   bool // a try that does not wait
	ForceUnlock bool
	State       bool // the state that the server holds for a lock, which a step reads
}
