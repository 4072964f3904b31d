package sim

// Drawing has the values that campaigns draw for the clients of a server.
type Drawing struct {
	// Commands are the names of the commands that clients of locks usually send, for rules on
	// messages. Nil: any command that the server knows.
	Commands []string
	// Listen is the command by which a waiter learns of a release; "": there is none.
	Listen string
	// Errors are the texts with which a rule answers in place of the server, the simplest first.
	// Nil: one text.
	Errors []string
}
